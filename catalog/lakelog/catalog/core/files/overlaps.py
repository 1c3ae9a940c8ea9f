"""Leaves that are sorted anew together, so that a partition is in few packs though each commit has files of all.

Each run then has entries of each partition, and runs of `RUN_LIMIT` entries are no longer merged. So a dump takes some
leaves that lie over one another, by the bounds of their partition fields, and writes their entries as one pack, in
order: leaves that have little in common. Which ones says `overlapping`, by what a root says alone: neighbours in time,
so that what is in the order of commits stays near to one another, and those that span most, so that what was sorted
before is left alone until there is as much of it.

Rule: a choice costs time, never truth; entries stay what they are. It ends: what is chosen spans less afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.leaves import Leaf
from lakelog.catalog.core.files.manifest_bounds import MAY_NAN, MAY_NULL, bounds_table

DEPTH_MAX = 24
"""So many packs have entries of one place in the order of partitions, and a dump does something about it."""

FAN_IN = 4
"""Leaves of so many are sorted together: of more, files that came one after another would be in as many more leaves."""

ABOUT_AS_WIDE = 4
GAIN = 2
"""What leaves span one by one is at least so many times what they span together: so much is left out afterwards."""


class _Span(NamedTuple):
    """A leaf, and where it is in the order of partitions: from a place to before another; and among all leaves, of
    which the oldest come first."""

    first: int
    end: int
    age: int
    leaf: Leaf

    @property
    def width(self) -> int:
        return self.end - self.first


def overlapping(leaves: Iterable[Leaf], entries_max: int) -> list[Leaf]:
    """Return leaves of at most so many entries that are to be written as one pack; none where no place is in
    `DEPTH_MAX` packs, or nothing would be gained."""
    bounded = [each for each in leaves if each.bounds is not None]
    if len({each.stored.name for each in bounded}) < DEPTH_MAX:
        return []
    spans = _spans(bounded)
    covering = _deepest(spans)
    if not covering:
        return []
    few = [covering[at : at + FAN_IN] for at in range(len(covering) - FAN_IN + 1)]
    few.sort(key=lambda some: -sum(each.width for each in some))
    middle = max(each.first for each in covering)
    for lines in few:
        chosen = _beside(lines, spans, middle, entries_max)
        if chosen:
            return [each.leaf for each in chosen]
    return []


def _beside(lines: Sequence[_Span], spans: Sequence[_Span], middle: int, entries_max: int) -> Sequence[_Span]:
    """Return those of the same packs as `lines`, and of the same time, that are about as wide, as many as is worth it:
    the nearest to the middle first."""
    widest = max(each.width for each in lines)
    first, last = min(each.age for each in lines), max(each.age for each in lines)
    packs = {each.leaf.stored.name for each in lines}
    wide = [
        each
        for each in spans
        if each.width * ABOUT_AS_WIDE >= widest
        and (first <= each.age <= last or each.leaf.stored.name in packs)
    ]
    wide.sort(key=lambda each: max(each.first - middle, middle + 1 - each.end, 0))
    count = sum(total <= entries_max for total in accumulate(each.leaf.stored.entries for each in wide))
    while count >= FAN_IN:
        chosen = wide[:count]
        if sum(each.width for each in chosen) >= GAIN * _together(chosen):
            return chosen
        count -= 1
    return []


def _deepest(spans: Sequence[_Span]) -> list[_Span]:
    """Return the spans at the place that most packs have entries of; none where those are few."""
    begins: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for each in spans:
        begins.setdefault(each.first, []).append(each.leaf.stored.name)
        ends.setdefault(each.end, []).append(each.leaf.stored.name)
    there, most, place = Counter[str](), DEPTH_MAX - 1, None
    for at in sorted({*begins, *ends}):
        for name in ends.get(at, ()):
            there[name] -= 1
            if not there[name]:
                del there[name]
        there.update(begins.get(at, ()))
        if len(there) > most:
            most, place = len(there), at
    return [] if place is None else [each for each in spans if each.first <= place < each.end]


def _together(spans: Sequence[_Span]) -> int:
    """Return how much some spans cover together."""
    covered, end = 0, 0
    for each in sorted(spans, key=lambda span: span.first):
        covered += max(0, each.end - max(end, each.first))
        end = max(end, each.end)
    return covered


def _spans(leaves: Sequence[Leaf]) -> list[_Span]:
    """Return the leaves that have files of several partitions, of one spec: that of most. Places are numbers, one for
    each value at an end."""
    bounds = bounds_table([each.bounds for each in leaves if each.bounds is not None])
    specs = bounds["specs"].to_pylist()
    spec = Counter(specs).most_common(1)[0][0]
    try:
        fields = [_places(bounds, id) for id in sorted(_fields(bounds))]
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        return []  # of a type that another client has made up
    ends: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {}
    for row, own in enumerate(specs):
        low, high = list[float](), list[float]()
        for lows, highs in fields:
            least, greatest = lows[row], highs[row]
            if least is None or greatest is None:
                break
            low.append(least)
            high.append(greatest)
            if least != greatest:
                break
        if own == spec and low < high:
            # What follows a range of a field may be anything.
            ends[row] = tuple(low), (*high, float("inf"))
    places = {place: at for at, place in enumerate(sorted({end for each in ends.values() for end in each}))}
    return [_Span(places[low], places[high], row, leaves[row]) for row, (low, high) in ends.items()]


def _fields(bounds: pa.Table) -> set[int]:
    return {int(name[4:]) for name in bounds.column_names if name.startswith("pmay")}


def _places(bounds: pa.Table, id: int) -> tuple[list[float | None], list[float | None]]:
    """Return of each leaf the places of its least and greatest value of a partition field among all such values; None
    where nothing is known. NULL and NaN come last, as files are sorted."""
    rows = bounds.num_rows
    low, high = (
        bounds[name] if name in bounds.column_names else pa.chunked_array([pa.nulls(rows, pa.int8())])
        for name in (f"plo{id}", f"phi{id}")
    )
    may = bounds[f"pmay{id}"].to_pylist()
    both = pa.chunked_array([*low.chunks, *high.cast(low.type).chunks], low.type)
    ranks = pc.index_in(both, value_set=pc.unique(both).drop_null().sort()).to_pylist()
    last = len(ranks)
    lows: list[float | None] = []
    highs: list[float | None] = []
    for row, has in enumerate(may):
        if has is None:
            lows.append(None)
            highs.append(None)
            continue
        least, greatest = ranks[row], ranks[rows + row]
        lows.append(last if least is None else least)
        highs.append(last if greatest is None or has & (MAY_NULL | MAY_NAN) else greatest)
    return lows, highs
