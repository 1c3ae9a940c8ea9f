"""The effect of a clustering, and the layout of files after it, from metadata alone.

Pure: no request, no clock.

The real planner plans it, step by step. Only the files that a step would write are assumed. There are as many
as the step has tasks, of the same size, along the stretch of the curve that has their rows. If the table has
no boundaries yet, or gets new boundaries, these are taken from the bounds of its files.
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
    ClusteringCurve,
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
from lakelog.catalog.core.state import ClusteringTarget, FileGroup, plan_clustering

_NEW_GENERATION = 1 << 62
_CELLS_BITS = 16
"""Boxes of files are compared by ranks of so many bits, of all columns together."""

_VALUES = 32
"""So many values of a file are assumed between its bounds, if nothing is known about its rows."""

_FAR = 9e18
"""Beyond that there are no 64-bit integers. Infinite bounds count as this."""

_STEPS = 50
"""About so many steps are planned at most. Very many small steps are planned several at once."""

_STEPS_MAX = 1_000


class KeyOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """How many files may have a value of a column, on average over its rows.

    A filter by it reads these files.
    """

    column: str
    before: float
    after: float


class ExpectedClustering(msgspec.Struct, frozen=True, kw_only=True):
    """The expected reads and writes of a clustering, in about so many `commits`, and its effect on the table.

    `files` and `size_bytes` are the table's. `paths` are its files that would be rewritten, each once.
    `read_files` also counts files that a commit writes and another commit reads. `new_boundaries`: first, the
    key columns of some files are read. `keys` has an entry for each column. `overlap_before` and
    `overlap_after` are how many files a look-up of a value of each column reads, on average. `is_left`: the
    limit comes before the end.
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
    chosen_table: pa.Table,
    metadata: Metadata,
    goal: ClusteringTarget,
    limit_bytes: int | None,
    *,
    renews: bool,
) -> ExpectedClustering:
    """Return the effect of a clustering of the `chosen_table` files of a table's files.

    Both have the form of `FileSet.chunks`. With `renews`, it begins with new boundaries.
    """
    curve = _curve(files, metadata, renews=renews)
    boxes = _Boxes(curve, metadata)
    old_boxes, own_paths = boxes.of(files), set(files["path"].to_pylist())
    whole = int(pc.sum(pc.filter(files["size"], pc.greater(files["rows"], 0))).as_py() or 0)
    result, rewritten_paths = ExpectedClustering(columns=(), files=0, size_bytes=0), set[str]()
    until = 1 << 61
    # For very many steps, several are planned together, because their merged result is nearly the same.
    step_bytes = max(goal.limit_bytes, whole // _STEPS)
    current_files = _numbered(chosen_table)
    is_left = False
    for _ in range(_STEPS_MAX):
        remaining_bytes = (
            step_bytes if limit_bytes is None else min(step_bytes, limit_bytes - result.read_bytes)
        )
        planned_files, groups = plan_clustering(
            current_files, metadata, curve, replace(goal, limit_bytes=max(1, remaining_bytes)), until=until
        )
        if not groups:
            break
        if remaining_bytes <= 0:
            is_left = True
            break
        new_files, first = [], 0
        for group in groups:
            new_files.append(
                boxes.written(planned_files.slice(first, group.files), group, f"{result.commits}-{first}-")
            )
            first += group.files
        paths = planned_files["path"].to_pylist()
        rewritten_paths.update(own_paths.intersection(paths))
        stay = pc.invert(pc.is_in(current_files["path"], pa.array(paths, pa.string())))
        current_files = pa.concat_tables([current_files.filter(stay), *new_files])
        result = _with(result, groups, new_files, goal)
    other_files = files.filter(pc.invert(pc.is_in(files["path"], chosen_table["path"].combine_chunks())))
    new_boxes = (
        boxes.of(current_files)
        if not other_files.num_rows
        else boxes.of(other_files).and_(boxes.of(current_files))
    )
    names = tuple(dotted(metadata.schema.path_of(id)) for id in metadata.clustering)
    return msgspec.structs.replace(
        result,
        columns=names,
        files=files.num_rows,
        size_bytes=int(pc.sum(files["size"]).as_py() or 0),
        new_boundaries=renews,
        keys=tuple(
            KeyOverlap(column=name, before=round(old_overlap, 2), after=round(new_overlap, 2))
            for name, old_overlap, new_overlap in zip(
                names, old_boxes.by_column(), new_boxes.by_column(), strict=False
            )
        ),
        overlap_before=round(old_boxes.over_points(), 2),
        overlap_after=round(new_boxes.over_points(), 2),
        is_left=is_left,
        paths=tuple(sorted(rewritten_paths)),
    )


def overlap_of(files: pa.Table, metadata: Metadata) -> float | None:
    """Return how many files a look-up of a value of each key column reads, on average.

    None for a table that is not clustered.
    """
    if not metadata.clustering:
        return None
    curve = _curve(files, metadata, renews=False)
    return round(_Boxes(curve, metadata).of(files).over_points(), 2)


def _with(
    clustering: ExpectedClustering,
    groups: Sequence[FileGroup],
    written_tables: Sequence[pa.Table],
    goal: ClusteringTarget,
) -> ExpectedClustering:
    size = sum(group.size_bytes for group in groups)
    return msgspec.structs.replace(
        clustering,
        read_files=clustering.read_files + sum(group.files for group in groups),
        read_bytes=clustering.read_bytes + size,
        written_files=clustering.written_files + sum(table.num_rows for table in written_tables),
        written_bytes=clustering.written_bytes
        + sum(int(pc.sum(table["size"]).as_py() or 0) for table in written_tables),
        deleted_rows=clustering.deleted_rows + sum(group.deleted for group in groups),
        commits=clustering.commits + max(1, -(-size // goal.limit_bytes)),
    )


def _numbered(files: pa.Table) -> pa.Table:
    """Return the files with the columns that a plan reads."""
    for name in (CURVE, CURVE_LOW, CURVE_HIGH):
        if name not in files.column_names:
            files = files.append_column(name, pa.nulls(files.num_rows, pa.int64()))
    # All files existed at its begin, and so do the files that it writes.
    if VERSION in files.column_names:
        files = files.drop_columns([VERSION])
    return files.filter(pc.greater(files["rows"], 0))


def _curve(files: pa.Table, metadata: Metadata, *, renews: bool) -> ClusteringCurve:
    """Return the curve along which rows would be ordered."""
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
    return ClusteringCurve(ranks, metadata.schema)


def _ends(files: pa.Table, id: int, metadata: Metadata) -> tuple[pa.Array, pa.Array] | None:
    """Return the least and the greatest values of a column in files. None if they are not known."""
    type = value_type(metadata.schema.field_by_id(id).type)
    names = (f"lo{id}", f"hi{id}")
    if type is None or any(name not in files.column_names for name in names):
        return None
    low, high = (converted(files[name].combine_chunks(), type) for name in names)
    return low, high


def _between(low: pa.Array, high: pa.Array) -> pa.Array:
    """Return values that files may have, for computing boundaries: some between the two bounds of each file.

    Values between bounds are computed by arithmetic. For decimals, only the bounds are returned.
    """
    type = low.type
    has_bounds = pc.and_(low.is_valid(), high.is_valid())
    ends = [low.filter(has_bounds), high.filter(has_bounds)]
    if pa.types.is_floating(type):
        numbers = [bound_values.cast(pa.float64()).to_numpy() for bound_values in ends]
    elif pa.types.is_integer(type) or pa.types.is_temporal(type):
        same = pa.int32() if pa.types.is_date32(type) else pa.int64()
        numbers = [
            bound_values.cast(same).cast(pa.int64()).to_numpy().astype(np.float64) for bound_values in ends
        ]
    elif pa.types.is_string(type) or pa.types.is_binary(type):
        texts = zip(*(bound_values.to_pylist() for bound_values in ends), strict=True)
        return pa.concat_arrays(
            [*ends, pa.array([bound_values for pair in texts for bound_values in _texts(*pair)], type)]
        )
    else:
        return pa.concat_arrays(ends)
    least, most = (np.clip(bound_values, -_FAR, _FAR) for bound_values in numbers)
    steps = np.linspace(0, 1, _VALUES)
    spread = (least[:, None] + (most - least)[:, None] * steps).ravel()
    if pa.types.is_floating(type):
        return pa.array(spread).cast(type, safe=False)
    whole = pa.array(np.round(spread).astype(np.int64))
    return whole.cast(same, safe=False).cast(type, safe=False)


def _texts(low: Any, high: Any) -> list[Any]:
    """Return texts between two texts, by the first letter or byte that differs."""
    at = next(
        (
            at
            for at, (low_letter, high_letter) in enumerate(zip(low, high, strict=False))
            if low_letter != high_letter
        ),
        len(low),
    )
    if at >= len(high):
        return []
    is_text = isinstance(high, str)
    ends = [text[at : at + 1] for text in (low, high)]
    codes = [(ord(text) if is_text else text[0]) if text else 0 for text in ends]
    letters = np.unique(np.linspace(codes[0], codes[1], _VALUES).astype(np.int64)).tolist()
    return [
        high[:at] + (chr(text) if is_text else bytes([text]))
        for text in letters
        if not 0xD7FF < text < 0xE000
    ]


class _Boxes:
    """Boxes of files in the space of a curve's coarse ranks."""

    def __init__(self, curve: ClusteringCurve, metadata: Metadata) -> None:
        self.curve, self._metadata = curve, metadata
        count = len(curve.ids)
        self.bits = min(curve.ranks.bits, _CELLS_BITS // count)
        self._drop = curve.ranks.bits - self.bits
        side = 1 << self.bits
        self.side = side
        axes = np.indices((side,) * count).reshape(count, -1).astype(np.int64)
        self._places = hilbert(list(axes), self.bits)
        self._along = axes[:, np.argsort(self._places)]  # the coordinates of each coarse place
        # The share of the values with a lower coarse rank. If there are few values, most ranks have none.
        self._below = []
        for bounds in curve.bounds:
            ranks = self._rank(np.arange(len(bounds) + 1), bounds)
            counts = np.bincount(ranks, minlength=side)
            self._below.append(np.concatenate([[0], np.cumsum(counts)]) / (len(bounds) + 1))

    def of(self, files: pa.Table) -> _Found:
        """Return the boxes of files: by their bounds, and for assumed files by the curve."""
        files = files.filter(pc.greater(files["rows"], 0))
        lows = np.zeros((len(self.curve.ids), files.num_rows), np.int64)
        highs = np.full_like(lows, self.side - 1)
        shares = np.ones(lows.shape, np.float64)
        for at, (id, bounds) in enumerate(zip(self.curve.ids, self.curve.bounds, strict=True)):
            ends = _ends(files, id, self._metadata)
            if ends is None:
                continue
            has_bounds = np.asarray(pc.and_(ends[0].is_valid(), ends[1].is_valid()))
            least, most = (boundaries_below(bound_values, bounds) for bound_values in ends)
            lows[at] = np.where(has_bounds, self._rank(least, bounds), lows[at])
            highs[at] = np.where(has_bounds, self._rank(most, bounds), highs[at])
            shares[at] = np.where(has_bounds, (most - least + 1) / (len(bounds) + 1), 1)
        shift = self._drop * len(self.curve.ids)
        for at, low, high in _assumed(files):
            cells = self._along[:, low >> shift : (high >> shift) + 1]
            lows[:, at], highs[:, at] = cells.min(axis=1), cells.max(axis=1)
            for axis, below in enumerate(self._below):
                shares[axis, at] = below[highs[axis, at] + 1] - below[lows[axis, at]]
        return _Found(lows, highs, shares)

    def _rank(self, boundaries: Ints, bounds: pa.Array) -> Ints:
        """Return the coarse rank of values with so many boundaries at or below them."""
        ranks: Ints = boundaries * ((1 << self.curve.ranks.bits) - 1) // max(1, len(bounds)) >> self._drop
        return ranks

    def written(self, files: pa.Table, group: FileGroup, name: str) -> pa.Table:
        """Return the files that would be written in place of a group's files."""
        low, high = self._stretch(files)
        edges = _edges(low, high + 1, group.tasks)
        if group.cut is not None and low < group.cut <= high:
            edges = sorted({*edges, group.cut})
        ends = [(begin, max(begin, end - 1)) for begin, end in pairwise(edges)]
        live = pc.multiply(files["size"], pc.divide(files["rows"].cast(pa.float64()), physical_rows(files)))
        share = [(end - begin + 1) / sum(b - a + 1 for a, b in ends) for begin, end in ends]
        size, rows = float(pc.sum(live).as_py() or 0), group.rows
        assumed_rows: list[dict[str, Any]] = [
            {
                "path": f"{_ASSUMED}{name}{number}",
                "write": f"{_ASSUMED}{name}",
                "rows": max(1, round(rows * part)),
                "size": max(1, round(size * part)),
                "deleted": 0,
                CURVE: self.curve.ranks.generation,
                CURVE_LOW: begin,
                CURVE_HIGH: end,
            }
            for number, ((begin, end), part) in enumerate(zip(ends, share, strict=True))
        ]
        assumed_files = pa.Table.from_pylist(assumed_rows, schema=files.schema)
        # Their partition is the others' partition. It is not copied through Python, which has fewer dates
        # than Arrow.
        last = files.take([files.num_rows - 1] * len(assumed_rows))
        for place, key in enumerate(files.column_names):
            if key == "spec" or (key.startswith("p") and key != "path"):
                assumed_files = assumed_files.set_column(place, files.schema.field(key), last[key])
        return assumed_files

    def _stretch(self, files: pa.Table) -> tuple[int, int]:
        """Return the places of the curve between which the rows of files are, at most."""
        low, high = self.curve.ranks.places - 1, 0
        shift = self._drop * len(self.curve.ids)
        boxes = self.of(files)
        generations, lows, highs = (files[name].to_pylist() for name in (CURVE, CURVE_LOW, CURVE_HIGH))
        for at in range(files.num_rows):
            begin, end = lows[at], highs[at]
            if generations[at] != self.curve.ranks.generation or begin is None or end is None:
                box = tuple(
                    slice(a, b + 1) for a, b in zip(boxes.lows[:, at], boxes.highs[:, at], strict=True)
                )
                places = self._places.reshape((self.side,) * len(self.curve.ids))[box]
                begin, end = int(places.min()) << shift, ((int(places.max()) + 1) << shift) - 1
            low, high = min(low, begin), max(high, end)
            if not low and high == self.curve.ranks.places - 1:
                break
        return low, high


class _Found:
    """Boxes, from the `lows` to the `highs` of coarse ranks, and their share of the values of each column."""

    def __init__(self, lows: Ints, highs: Ints, shares: Any) -> None:
        self.lows, self.highs, self.shares = lows, highs, shares

    def and_(self, other: _Found) -> _Found:
        return _Found(
            np.hstack([self.lows, other.lows]),
            np.hstack([self.highs, other.highs]),
            np.hstack([self.shares, other.shares]),
        )

    def by_column(self) -> list[float]:
        """Return how many files may have a value, by column, on average. All ranks have about as many rows."""
        return [float(share) for share in self.shares.sum(axis=1)]

    def over_points(self) -> float:
        """Return how many files may have values of all columns, on average over all possible combinations."""
        return float(self.shares.prod(axis=0).sum())


_ASSUMED = "\x00"


def _assumed(files: pa.Table) -> list[tuple[int, int, int]]:
    """Return the places of assumed files, and the curve places between which their rows are."""
    if CURVE_LOW not in files.column_names:
        return []
    places = pc.indices_nonzero(pc.starts_with(files["path"], _ASSUMED))
    ends = (files[name].take(places).to_pylist() for name in (CURVE_LOW, CURVE_HIGH))
    return list(zip(places.to_pylist(), *ends, strict=True))


def _edges(begin: int, end: int, tasks: int) -> list[int]:
    """Return where each file of a stretch of the curve ends: at the border of the largest cell nearby."""
    file_places, edges = (end - begin) / tasks, [begin]
    while end - edges[-1] > FILE_MOST * file_places:
        first, last = (
            edges[-1] + max(1, int(FILE_LEAST * file_places)),
            edges[-1] + int(FILE_MOST * file_places),
        )
        if last <= first:
            break
        bits = next(bits for bits in range(first.bit_length(), -1, -1) if -(-first >> bits) << bits <= last)
        edges.append(-(-first >> bits) << bits)
    return [*edges, end]
