"""Leaves that are sorted again together, so that a partition is in few packs.

If each commit has files of all partitions, each run has entries of each partition, and runs of `RUN_LIMIT`
entries are no longer merged. So a dump takes some leaves that lie over each other, by the bounds of their
partition fields. It writes their entries as a single pack, in order, as leaves that have little in common.

`overlapping` chooses the leaves, by the facts in a root alone. It takes neighbours in time, so that entries
in the order of commits stay near to each other. It takes the leaves that span most, so that sorted leaves are
left alone until there are as many again.

Rule: a choice costs time, never truth; entries stay as they are. It ends, because the chosen leaves span less
afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.leaves import ManifestLeaf
from lakelog.catalog.core.files.manifest_bounds import MAY_NAN, MAY_NULL, bounds_table

DEPTH_MAX = 24
"""If so many packs have entries of the same place in the order of partitions, a dump sorts some of them."""

FAN_IN = 4
"""Leaves of so many packs are sorted together.

With more, files of consecutive commits would be in more leaves.
"""

ABOUT_AS_WIDE = 4
GAIN = 2
"""The spans of single leaves add up to at least so many times their joint span.

A plan leaves out that much after the sort.
"""


class _Span(NamedTuple):
    """A leaf, and its place in the order of partitions: from a place to before another.

    `age` is its place among all leaves, of which the oldest come first.
    """

    first: int
    end: int
    age: int
    leaf: ManifestLeaf

    @property
    def width(self) -> int:
        return self.end - self.first


def overlapping(leaves: Iterable[ManifestLeaf], entries_max: int) -> list[ManifestLeaf]:
    """Return leaves of at most so many entries that are to be written as a single pack.

    There are none if no place is in `DEPTH_MAX` packs, or nothing would be gained.
    """
    bounded_leaves = [leaf for leaf in leaves if leaf.bounds is not None]
    if len({leaf.stored.name for leaf in bounded_leaves}) < DEPTH_MAX:
        return []
    spans = _spans(bounded_leaves)
    deepest_spans = _deepest(spans)
    if not deepest_spans:
        return []
    few = [deepest_spans[at : at + FAN_IN] for at in range(len(deepest_spans) - FAN_IN + 1)]
    few.sort(key=lambda some: -sum(span.width for span in some))
    middle = max(span.first for span in deepest_spans)
    for lines in few:
        chosen_spans = _beside(lines, spans, middle, entries_max)
        if chosen_spans:
            return [span.leaf for span in chosen_spans]
    return []


def _beside(lines: Sequence[_Span], spans: Sequence[_Span], middle: int, entries_max: int) -> Sequence[_Span]:
    """Return leaves of the same packs as `lines`, or of the same time, that are about as wide.

    There are as many as is worth it, the nearest to the middle first.
    """
    widest = max(span.width for span in lines)
    first, last = min(span.age for span in lines), max(span.age for span in lines)
    packs = {span.leaf.stored.name for span in lines}
    wide = [
        span
        for span in spans
        if span.width * ABOUT_AS_WIDE >= widest
        and (first <= span.age <= last or span.leaf.stored.name in packs)
    ]
    wide.sort(key=lambda each: max(each.first - middle, middle + 1 - each.end, 0))
    count = sum(total <= entries_max for total in accumulate(span.leaf.stored.entries for span in wide))
    while count >= FAN_IN:
        candidates = wide[:count]
        if sum(span.width for span in candidates) >= GAIN * _together(candidates):
            return candidates
        count -= 1
    return []


def _deepest(spans: Sequence[_Span]) -> list[_Span]:
    """Return the spans at the place that most packs have entries of; none if those are few."""
    begins: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for span in spans:
        begins.setdefault(span.first, []).append(span.leaf.stored.name)
        ends.setdefault(span.end, []).append(span.leaf.stored.name)
    pack_counts, most, place = Counter[str](), DEPTH_MAX - 1, None
    for at in sorted({*begins, *ends}):
        for name in ends.get(at, ()):
            pack_counts[name] -= 1
            if not pack_counts[name]:
                del pack_counts[name]
        pack_counts.update(begins.get(at, ()))
        if len(pack_counts) > most:
            most, place = len(pack_counts), at
    return [] if place is None else [span for span in spans if span.first <= place < span.end]


def _together(spans: Sequence[_Span]) -> int:
    """Return how much some spans cover together."""
    total, end = 0, 0
    for leaf_span in sorted(spans, key=lambda span: span.first):
        total += max(0, leaf_span.end - max(end, leaf_span.first))
        end = max(end, leaf_span.end)
    return total


def _spans(leaves: Sequence[ManifestLeaf]) -> list[_Span]:
    """Return the spans of leaves that have files of several partitions, all of the most common spec.

    Places are numbers; each value at an end has a number.
    """
    bounds = bounds_table([leaf.bounds for leaf in leaves if leaf.bounds is not None])
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
            # After a range of a field, any value may follow.
            ends[row] = tuple(low), (*high, float("inf"))
    places = {
        place: at
        for at, place in enumerate(sorted({end for span_ends in ends.values() for end in span_ends}))
    }
    return [_Span(places[low], places[high], row, leaves[row]) for row, (low, high) in ends.items()]


def _fields(bounds: pa.Table) -> set[int]:
    return {int(name[4:]) for name in bounds.column_names if name.startswith("pmay")}


def _places(bounds: pa.Table, id: int) -> tuple[list[float | None], list[float | None]]:
    """Return for each leaf the ranks of its least and greatest value of a partition field.

    The ranks are among all such values; None if nothing is known. NULL and NaN come last, as files are
    sorted.
    """
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
