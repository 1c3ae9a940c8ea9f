"""What a clustering would do, and how the files would lie then: from metadata alone. Pure: no request, no clock.

It is planned in earnest, step by step, by the piece that plans it when it is done; only the files that a step would
write are assumed: as many as it has tasks, of one size, along the stretch of the curve from which their rows are. Where
the table has no boundaries yet, or gets others, these are taken from the bounds of its files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import CURVE, CURVE_HIGH, CURVE_LOW, VERSION, converted, physical_rows
from lakelog.catalog.core.parquet import FILE_LEAST, FILE_MOST
from lakelog.catalog.core.schema import (
    BITS,
    COLUMNS_MAX,
    AtomicType,
    Bounds,
    Curve,
    Ints,
    Metadata,
    Ranks,
    boundaries_below,
    bounds_from,
    curve_of,
    dotted,
    hilbert,
    value_type,
)
from lakelog.catalog.core.state import ClusteringGoal, Group, plan_clustering

_NEW_GENERATION = 1 << 62
_CELLS_BITS = 16
"""Boxes of files are compared by ranks of so many bits, of all columns together."""

_VALUES = 32
"""So many values of a file are assumed between its bounds, where nothing is known of how its rows lie."""

_FAR = 9e18
"""Beyond that there are no 64-bit integers; infinite bounds count as this."""

_STEPS = 50
"""About so many steps are planned at most: of very many small ones, several at once."""

_STEPS_MAX = 1_000


class KeyOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """How many files may have a value of a column, on average over its rows: those that a filter by it reads."""

    column: str
    before: float
    after: float


class ExpectedClustering(msgspec.Struct, frozen=True, kw_only=True):
    """What a clustering would read and write, in about so many `commits`, and what of the table.

    `files` and `size_bytes` are the table's. `paths` are those of its files that would be rewritten, each once, while
    `read_files` counts also what one commit writes and another one reads. `new_boundaries`: first, the key columns of
    some files are read. `keys` are of each column, and `overlap_before` and `overlap_after` how many files a look-up of
    one value of each of them reads, on average. `is_left`: the limit comes before the end.
    """

    columns: tuple[str, ...]
    files: int
    size_bytes: int
    read_files: int = 0
    read_bytes: int = 0
    written_files: int = 0
    written_bytes: int = 0
    deleted_rows: int = 0
    commits: int = 0
    new_boundaries: bool = False
    keys: tuple[KeyOverlap, ...] = ()
    overlap_before: float = 0
    overlap_after: float = 0
    is_left: bool = False
    paths: tuple[str, ...] = ()


def expected(
    files: pa.Table,
    chosen: pa.Table,
    metadata: Metadata,
    goal: ClusteringGoal,
    limit_bytes: int | None,
    *,
    renews: bool,
) -> ExpectedClustering:
    """Return what a clustering of the `chosen` ones of the table's files would do; both have the form of
    `FileSet.chunks`. It `renews` boundaries, where it begins with that."""
    curve = _curve(files, metadata, renews=renews)
    boxes = _Boxes(curve, metadata)
    before, known = boxes.of(files), set(files["path"].to_pylist())
    whole = int(pc.sum(pc.filter(files["size"], pc.greater(files["rows"], 0))).as_py() or 0)
    done, gone = ExpectedClustering(columns=(), files=0, size_bytes=0), set[str]()
    until = 1 << 61
    # Of a table of very many steps, several are planned as one: what is merged is nearly the same.
    step_bytes = max(goal.limit_bytes, whole // _STEPS)
    now = _numbered(chosen)
    is_left = False
    for _ in range(_STEPS_MAX):
        left = step_bytes if limit_bytes is None else min(step_bytes, limit_bytes - done.read_bytes)
        taken, groups = plan_clustering(
            now, metadata, curve, replace(goal, limit_bytes=max(1, left)), until=until
        )
        if not groups:
            break
        if left <= 0:
            is_left = True
            break
        written, first = [], 0
        for group in groups:
            written.append(boxes.written(taken.slice(first, group.files), group, f"{done.commits}-{first}-"))
            first += group.files
        paths = taken["path"].to_pylist()
        gone.update(known.intersection(paths))
        stay = pc.invert(pc.is_in(now["path"], pa.array(paths, pa.string())))
        now = pa.concat_tables([now.filter(stay), *written])
        done = _with(done, groups, written, goal)
    others = files.filter(pc.invert(pc.is_in(files["path"], chosen["path"].combine_chunks())))
    after = boxes.of(now) if not others.num_rows else boxes.of(others).and_(boxes.of(now))
    names = tuple(dotted(metadata.schema.path_of(id)) for id in metadata.clustering)
    return msgspec.structs.replace(
        done,
        columns=names,
        files=files.num_rows,
        size_bytes=int(pc.sum(files["size"]).as_py() or 0),
        new_boundaries=renews,
        keys=tuple(
            KeyOverlap(column=name, before=round(one, 2), after=round(two, 2))
            for name, one, two in zip(names, before.by_column(), after.by_column(), strict=False)
        ),
        overlap_before=round(before.over_points(), 2),
        overlap_after=round(after.over_points(), 2),
        is_left=is_left,
        paths=tuple(sorted(gone)),
    )


def overlap_of(files: pa.Table, metadata: Metadata) -> float | None:
    """Return how many files a look-up of one value of each key column reads, on average; None for a table that is not
    clustered."""
    if not metadata.clustering:
        return None
    curve = _curve(files, metadata, renews=False)
    return round(_Boxes(curve, metadata).of(files).over_points(), 2)


def _with(
    done: ExpectedClustering, groups: Sequence[Group], written: Sequence[pa.Table], goal: ClusteringGoal
) -> ExpectedClustering:
    size = sum(group.size_bytes for group in groups)
    return msgspec.structs.replace(
        done,
        read_files=done.read_files + sum(group.files for group in groups),
        read_bytes=done.read_bytes + size,
        written_files=done.written_files + sum(each.num_rows for each in written),
        written_bytes=done.written_bytes + sum(int(pc.sum(each["size"]).as_py() or 0) for each in written),
        deleted_rows=done.deleted_rows + sum(group.deleted for group in groups),
        commits=done.commits + max(1, -(-size // goal.limit_bytes)),
    )


def _numbered(files: pa.Table) -> pa.Table:
    """Return the files with the columns that a plan looks at."""
    for name in (CURVE, CURVE_LOW, CURVE_HIGH):
        if name not in files.column_names:
            files = files.append_column(name, pa.nulls(files.num_rows, pa.int64()))
    # All were there when it began, and so are those that it writes.
    if VERSION in files.column_names:
        files = files.drop_columns([VERSION])
    return files.filter(pc.greater(files["rows"], 0))


def _curve(files: pa.Table, metadata: Metadata, *, renews: bool) -> Curve:
    """Return the curve that rows would be ordered along."""
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    if curve is not None and not renews:
        return curve
    ids = metadata.clustering[:COLUMNS_MAX]
    columns = []
    for id in ids:
        type = metadata.schema.field_by_id(id).type
        assert isinstance(type, AtomicType), "other types have no order"
        ends = _ends(files, id, metadata)
        columns.append(
            Bounds(id=id, type=type.name)
            if ends is None
            else bounds_from(_between(*ends), id, type, BITS[len(ids)])
        )
    first = _NEW_GENERATION if curve is None else curve.ranks.first
    ranks = Ranks(generation=_NEW_GENERATION, first=first, columns=tuple(columns))
    return Curve(ranks, metadata.schema)


def _ends(files: pa.Table, id: int, metadata: Metadata) -> tuple[pa.Array, pa.Array] | None:
    """Return the least and the greatest values of a column in files; None where none are known."""
    type = value_type(metadata.schema.field_by_id(id).type)
    names = (f"lo{id}", f"hi{id}")
    if type is None or any(name not in files.column_names for name in names):
        return None
    low, high = (converted(files[name].combine_chunks(), type) for name in names)
    return low, high


def _between(low: pa.Array, high: pa.Array) -> pa.Array:
    """Return values that files may have, as the boundaries of these would divide them: some between the two ends of
    each, as far as that is a matter of arithmetic; of decimals the ends alone."""
    type = low.type
    known = pc.and_(low.is_valid(), high.is_valid())
    ends = [low.filter(known), high.filter(known)]
    if pa.types.is_floating(type):
        numbers = [each.cast(pa.float64()).to_numpy() for each in ends]
    elif pa.types.is_integer(type) or pa.types.is_temporal(type):
        same = pa.int32() if pa.types.is_date32(type) else pa.int64()
        numbers = [each.cast(same).cast(pa.int64()).to_numpy().astype(np.float64) for each in ends]
    elif pa.types.is_string(type) or pa.types.is_binary(type):
        texts = zip(*(each.to_pylist() for each in ends), strict=True)
        return pa.concat_arrays([*ends, pa.array([each for pair in texts for each in _texts(*pair)], type)])
    else:
        return pa.concat_arrays(ends)
    one, two = (np.clip(each, -_FAR, _FAR) for each in numbers)
    steps = np.linspace(0, 1, _VALUES)
    spread = (one[:, None] + (two - one)[:, None] * steps).ravel()
    if pa.types.is_floating(type):
        return pa.array(spread).cast(type, safe=False)
    whole = pa.array(np.round(spread).astype(np.int64))
    return whole.cast(same, safe=False).cast(type, safe=False)


def _texts(low: Any, high: Any) -> list[Any]:
    """Return texts between two: by the first letter, or byte, by which these differ."""
    at = next((at for at, (one, two) in enumerate(zip(low, high, strict=False)) if one != two), len(low))
    if at >= len(high):
        return []
    is_text = isinstance(high, str)
    ends = [each[at : at + 1] for each in (low, high)]
    codes = [(ord(each) if is_text else each[0]) if each else 0 for each in ends]
    letters = np.unique(np.linspace(codes[0], codes[1], _VALUES).astype(np.int64)).tolist()
    return [
        high[:at] + (chr(each) if is_text else bytes([each]))
        for each in letters
        if not 0xD7FF < each < 0xE000
    ]


class _Boxes:
    """Boxes of files in the space of coarse ranks, of a curve."""

    def __init__(self, curve: Curve, metadata: Metadata) -> None:
        self.curve, self._metadata = curve, metadata
        count = len(curve.ids)
        self.bits = min(curve.ranks.bits, _CELLS_BITS // count)
        self._drop = curve.ranks.bits - self.bits
        side = 1 << self.bits
        self.side = side
        axes = np.indices((side,) * count).reshape(count, -1).astype(np.int64)
        self._places = hilbert(list(axes), self.bits)
        self._along = axes[:, np.argsort(self._places)]  # the coordinates of each coarse place
        # Which share of the values has a lower coarse rank: where there are few values, most ranks have none.
        self._below = []
        for bounds in curve.bounds:
            ranks = self._rank(np.arange(len(bounds) + 1), bounds)
            counts = np.bincount(ranks, minlength=side)
            self._below.append(np.concatenate([[0], np.cumsum(counts)]) / (len(bounds) + 1))

    def of(self, files: pa.Table) -> _Found:
        """Return the boxes of files: by their bounds, and by the curve for those that are only assumed."""
        files = files.filter(pc.greater(files["rows"], 0))
        lows = np.zeros((len(self.curve.ids), files.num_rows), np.int64)
        highs = np.full_like(lows, self.side - 1)
        shares = np.ones(lows.shape, np.float64)
        for at, (id, bounds) in enumerate(zip(self.curve.ids, self.curve.bounds, strict=True)):
            ends = _ends(files, id, self._metadata)
            if ends is None:
                continue
            known = np.asarray(pc.and_(ends[0].is_valid(), ends[1].is_valid()))
            least, most = (boundaries_below(each, bounds) for each in ends)
            lows[at] = np.where(known, self._rank(least, bounds), lows[at])
            highs[at] = np.where(known, self._rank(most, bounds), highs[at])
            shares[at] = np.where(known, (most - least + 1) / (len(bounds) + 1), 1)
        shift = self._drop * len(self.curve.ids)
        for at, low, high in _assumed(files):
            cells = self._along[:, low >> shift : (high >> shift) + 1]
            lows[:, at], highs[:, at] = cells.min(axis=1), cells.max(axis=1)
            for axis, below in enumerate(self._below):
                shares[axis, at] = below[highs[axis, at] + 1] - below[lows[axis, at]]
        return _Found(lows, highs, shares)

    def _rank(self, boundaries: Ints, bounds: pa.Array) -> Ints:
        """Return the coarse rank of values that so many boundaries are not above."""
        ranks: Ints = boundaries * ((1 << self.curve.ranks.bits) - 1) // max(1, len(bounds)) >> self._drop
        return ranks

    def written(self, files: pa.Table, group: Group, name: str) -> pa.Table:
        """Return the files that would be written in place of a group's."""
        low, high = self._stretch(files)
        edges = _edges(low, high + 1, group.tasks)
        if group.cut is not None and low < group.cut <= high:
            edges = sorted({*edges, group.cut})
        ends = [(one, max(one, two - 1)) for one, two in pairwise(edges)]
        live = pc.multiply(files["size"], pc.divide(files["rows"].cast(pa.float64()), physical_rows(files)))
        share = [(two - one + 1) / sum(b - a + 1 for a, b in ends) for one, two in ends]
        size, rows = float(pc.sum(live).as_py() or 0), group.rows
        made: list[dict[str, Any]] = [
            {
                "path": f"{_ASSUMED}{name}{number}",
                "write": f"{_ASSUMED}{name}",
                "rows": max(1, round(rows * part)),
                "size": max(1, round(size * part)),
                "deleted": 0,
                CURVE: self.curve.ranks.generation,
                CURVE_LOW: one,
                CURVE_HIGH: two,
            }
            for number, ((one, two), part) in enumerate(zip(ends, share, strict=True))
        ]
        found = pa.Table.from_pylist(made, schema=files.schema)
        # Their partition is that of the others. Not by way of Python, which has fewer dates than there are.
        last = files.take([files.num_rows - 1] * len(made))
        for place, key in enumerate(files.column_names):
            if key == "spec" or (key.startswith("p") and key != "path"):
                found = found.set_column(place, files.schema.field(key), last[key])
        return found

    def _stretch(self, files: pa.Table) -> tuple[int, int]:
        """Return between which places of the curve the rows of files are, at most."""
        low, high = self.curve.ranks.places - 1, 0
        shift = self._drop * len(self.curve.ids)
        found = self.of(files)
        generations, lows, highs = (files[name].to_pylist() for name in (CURVE, CURVE_LOW, CURVE_HIGH))
        for at in range(files.num_rows):
            one, two = lows[at], highs[at]
            if generations[at] != self.curve.ranks.generation or one is None or two is None:
                box = tuple(
                    slice(a, b + 1) for a, b in zip(found.lows[:, at], found.highs[:, at], strict=True)
                )
                places = self._places.reshape((self.side,) * len(self.curve.ids))[box]
                one, two = int(places.min()) << shift, ((int(places.max()) + 1) << shift) - 1
            low, high = min(low, one), max(high, two)
            if not low and high == self.curve.ranks.places - 1:
                break
        return low, high


class _Found:
    """Boxes: from the `lows` to the `highs` of coarse ranks, and which share of the values of each column that is."""

    def __init__(self, lows: Ints, highs: Ints, shares: Any) -> None:
        self.lows, self.highs, self.shares = lows, highs, shares

    def and_(self, other: _Found) -> _Found:
        return _Found(
            np.hstack([self.lows, other.lows]),
            np.hstack([self.highs, other.highs]),
            np.hstack([self.shares, other.shares]),
        )

    def by_column(self) -> list[float]:
        """Return how many files may have a value, by column, on average: a rank has about as many rows as another."""
        return [float(each) for each in self.shares.sum(axis=1)]

    def over_points(self) -> float:
        """Return how many files may have values of all columns, on average over all that there may be together."""
        return float(self.shares.prod(axis=0).sum())


_ASSUMED = "\x00"


def _assumed(files: pa.Table) -> list[tuple[int, int, int]]:
    """Return the places of files that are only assumed, and between which places of the curve their rows are."""
    if CURVE_LOW not in files.column_names:
        return []
    places = pc.indices_nonzero(pc.starts_with(files["path"], _ASSUMED))
    ends = (files[name].take(places).to_pylist() for name in (CURVE_LOW, CURVE_HIGH))
    return list(zip(places.to_pylist(), *ends, strict=True))


def _edges(begin: int, end: int, tasks: int) -> list[int]:
    """Return where so many files of a stretch of the curve end: at the border of the largest cell that is near."""
    each, edges = (end - begin) / tasks, [begin]
    while end - edges[-1] > FILE_MOST * each:
        first, last = edges[-1] + max(1, int(FILE_LEAST * each)), edges[-1] + int(FILE_MOST * each)
        if last <= first:
            break
        bits = next(bits for bits in range(first.bit_length(), -1, -1) if -(-first >> bits) << bits <= last)
        edges.append(-(-first >> bits) << bits)
    return [*edges, end]
