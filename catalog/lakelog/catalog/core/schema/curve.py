"""Clustering: the columns that rows are clustered by, and the curve that then orders them. Pure.

The curve is Hilbert's, over ranks of the values by quantile boundaries. A value's rank is how many boundaries
of its column are not above it. NULL has the lowest rank, NaN the highest. So any ordered type gives a small
number, common prefixes cost no resolution, and a frequent value takes only a single rank. With one column the
curve is that column's order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.literals import from_arrow, to_arrow, value_type
from lakelog.catalog.core.schema.partitioning import IDENTITY, SortField, SortOrder, sort_order_from
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import (
    AtomicType,
    Scalar,
)
from lakelog.catalog.names import check_list
from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.log.grammar import Int32, Number

Ints: TypeAlias = npt.NDArray[np.int64]

COLUMNS_MAX = 4
"""At most this many columns are ranked. Further columns only sort the rows whose ranked columns are all
equal."""

BITS = {1: 10, 2: 8, 3: 8, 4: 8}
"""The bits of a rank, by the number of columns."""

BOUNDS_BYTES_MAX = 8 * 1024
"""The approximate limit of a column's boundaries in the log. Columns with long boundaries have fewer of
them."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Boundaries of the values of the column `id`, which had the type `type`, in ascending order.

    Each boundary is a JSON literal. String boundaries omit their common `prefix`.
    """

    id: Int32
    type: str
    prefix: str = ""
    values: tuple[Scalar, ...] = ()


class Ranks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A generation of the boundaries of a table's clustering. All generations from `first` on have the same
    columns."""

    generation: Number
    first: Number
    columns: tuple[Bounds, ...]

    @property
    def bits(self) -> int:
        return BITS[len(self.columns)]

    @property
    def places(self) -> int:
        """The number of places on the curve."""
        return 1 << (self.bits * len(self.columns))


def hilbert(axes: Sequence[Ints], bits: int) -> Ints:
    """Return the places of points on Hilbert's curve. The points' coordinates are each below 2 ** bits.

    By J. Skilling, Programming the Hilbert curve (2004). With a single axis the place is the coordinate.
    """
    if len(axes) == 1:
        return axes[0].astype(np.int64)
    x = [axis.astype(np.int64) for axis in axes]
    q = 1 << (bits - 1)
    while q > 1:
        p = q - 1
        for i in range(len(x)):
            inverts = (x[i] & q) != 0
            t = np.where(inverts, 0, (x[0] ^ x[i]) & p)
            x[0] = np.where(inverts, x[0] ^ p, x[0] ^ t)
            if i:
                x[i] = x[i] ^ t
        q >>= 1
    for i in range(1, len(x)):
        x[i] = x[i] ^ x[i - 1]
    t = np.zeros_like(x[0])
    q = 1 << (bits - 1)
    while q > 1:
        t = np.where((x[-1] & q) != 0, t ^ (q - 1), t)
        q >>= 1
    x = [axis ^ t for axis in x]
    place = np.zeros_like(x[0])
    for bit in range(bits - 1, -1, -1):
        for axis in x:
            place = (place << 1) | ((axis >> bit) & 1)
    return place


def ranks_of(values: pa.Array, bounds: pa.Array, bits: int) -> Ints:
    """Return the rank of each value, from 0 to 2 ** bits - 1. The boundaries spread evenly over that range.

    Both arrays have the same value type (see `literals`).
    """
    count = boundaries_below(values, bounds)
    spread: Ints = count * ((1 << bits) - 1) // max(1, len(bounds))
    return spread


def boundaries_below(values: pa.Array, bounds: pa.Array) -> Ints:
    """Return how many boundaries are not above each value: none for NULL, all for NaN."""
    if not len(bounds):
        return np.zeros(len(values), np.int64)
    nulls = np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False))
    numbers = _numbers(values)
    if numbers is not None:
        limits = _numbers(bounds)
        assert limits is not None, "both are of one type"
        counts = np.searchsorted(limits, numbers, side="right").astype(np.int64)
        if pa.types.is_floating(values.type):
            counts[np.isnan(numbers)] = len(bounds)
    else:
        # In a stable sort with the boundaries before the values, every boundary that precedes a value is not
        # above it.
        order = pc.array_sort_indices(pa.concat_arrays([bounds, values])).to_numpy()
        is_value = order >= len(bounds)
        below = np.cumsum(~is_value)
        counts = np.zeros(len(values), np.int64)
        counts[order[is_value] - len(bounds)] = below[is_value]
    counts[nulls] = 0
    return counts


def _numbers(values: pa.Array) -> npt.NDArray[Any] | None:
    """Return numeric values as numbers, with any number for NULL. Returns None for strings, bytes and
    decimals."""
    type = values.type
    if pa.types.is_boolean(type):
        values = values.cast(pa.int8())
    elif pa.types.is_date32(type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type) or pa.types.is_time64(type):
        values = values.cast(pa.int64())
    elif not (pa.types.is_integer(type) or pa.types.is_floating(type)):
        return None
    zero = pa.scalar(0).cast(values.type)
    return np.asarray(pc.fill_null(values, zero).to_numpy(zero_copy_only=False))


class ClusteringCurve:
    """The curve of a generation. The table's columns may have wider types than the boundaries."""

    def __init__(self, ranks: Ranks, schema: Schema) -> None:
        self.ranks = ranks
        self.ids = tuple(column.id for column in ranks.columns)
        self.bounds = tuple(_bounds_as(column, schema) for column in ranks.columns)

    def coordinates(self, columns: Sequence[pa.Array]) -> list[Ints]:
        """Return the ranks of rows. `columns` has their values of each column of `ids`."""
        return [
            ranks_of(values, bounds, self.ranks.bits)
            for values, bounds in zip(columns, self.bounds, strict=True)
        ]

    def places(self, columns: Sequence[pa.Array]) -> Ints:
        """Return the rows' places on the curve. `columns` has their values of each column of `ids`."""
        return hilbert(self.coordinates(columns), self.ranks.bits)


def curve_of(ranks: Ranks | None, clustering: Sequence[int], schema: Schema) -> ClusteringCurve | None:
    """Return the curve that orders a table's rows. Returns None if `ranks` is None or has other columns."""
    if ranks is None or not is_of(ranks, clustering):
        return None
    return ClusteringCurve(ranks, schema)


def is_of(ranks: Ranks, clustering: Sequence[int]) -> bool:
    """Return whether the ranks have the columns that the table is clustered by."""
    ids = tuple(column.id for column in ranks.columns)
    return bool(clustering) and tuple(clustering[:COLUMNS_MAX]) == ids


def _bounds_as(bounds: Bounds, schema: Schema) -> pa.Array:
    stored_type, current_type = (
        value_type(AtomicType(bounds.type)),
        value_type(schema.field_by_id(bounds.id).type),
    )
    if stored_type is None or current_type is None:
        raise InvalidInput(f"values of the type {bounds.type} have no order")
    if bounds.prefix:
        return pa.array([bounds.prefix + str(value) for value in bounds.values], stored_type)
    array = to_arrow(bounds.values, stored_type)
    return array if stored_type == current_type else array.cast(current_type)


def problem_of(ranks: Ranks, clustering: Sequence[int], schema: Schema) -> str | None:
    """Return why stored ranks are invalid, or None. Other code relies on these checks."""
    if not 1 <= len(ranks.columns) <= COLUMNS_MAX:
        return f"its clustering has ranks of {len(ranks.columns)} columns"
    if tuple(clustering[:COLUMNS_MAX]) != tuple(column.id for column in ranks.columns):
        return "its ranks are of other columns than its clustering"
    for column in ranks.columns:
        if not schema.has_id(column.id):
            return f"its ranks are of column {column.id}, which it does not have"
        if len(column.values) >= 1 << ranks.bits:
            return f"column {column.id} has {len(column.values)} boundaries"
        try:
            _bounds_as(column, schema)
        except (LakelogError, pa.ArrowException) as error:
            return f"the boundaries of column {column.id} are not of its type: {error}"
    return None


def bounds_now(bounds: Bounds, schema: Schema) -> tuple[Scalar, ...]:
    """Return the full boundaries, as JSON literals of the column's present type."""
    return tuple(from_arrow(_bounds_as(bounds, schema)))


def bounds_from(sample: pa.Array, id: int, type: AtomicType, bits: int) -> Bounds:
    """Return boundaries of a column's values: the quantiles of `sample`, each once.

    For strings and bytes, a boundary is the shortest prefix of a value that is above the value before it.
    """
    arrow_type = value_type(type)
    values = sample.drop_null()
    if pa.types.is_floating(values.type):
        # The sum of -0.0 and 0 is 0.0, which is the same value.
        zero = pa.scalar(0.0, values.type)
        values = pc.add(values.filter(pc.invert(pc.is_nan(values))), zero)
    sorted_values = values.take(pc.array_sort_indices(values))
    distinct = pc.unique(sorted_values)
    limit = (1 << bits) - 1
    while True:
        boundaries = _chosen(distinct, sorted_values, limit)
        bounds = _stored(boundaries, id, type, arrow_type)
        if len(msgspec.json.encode(bounds)) <= BOUNDS_BYTES_MAX or limit <= 1:
            break
        limit //= 2
    if len(msgspec.json.encode(bounds)) > BOUNDS_BYTES_MAX:
        return Bounds(id=id, type=type.name)  # a single boundary of that length is not worth its size
    return bounds


def _chosen(distinct: pa.Array, ordered_array: pa.Array, most: int) -> pa.Array:
    """Return at most `most` values as boundaries. The lowest value is no boundary, because nothing is below
    it."""
    if len(distinct) <= most + 1:
        boundaries = distinct.slice(1)
    else:
        places = np.unique(np.arange(1, most + 1) * len(ordered_array) // (most + 1))
        boundaries = pc.unique(ordered_array.take(pa.array(places)))
        boundaries = boundaries.filter(pc.not_equal(boundaries, distinct[0]))
    if not (pa.types.is_string(boundaries.type) or pa.types.is_binary(boundaries.type)):
        return boundaries
    distinct_values = distinct.to_pylist()
    index_of = {value: place for place, value in enumerate(distinct_values)}
    return pa.array(
        [_shortest(distinct_values[index_of[value] - 1], value) for value in boundaries.to_pylist()],
        boundaries.type,
    )


def _shortest(below: Any, value: Any) -> Any:
    """Return the shortest prefix of `value` that is above `below`."""
    return value[: _common(below, value) + 1]


def _common(one: Any, other: Any) -> int:
    """Return the length of the common prefix of two strings."""
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: one[:length] != other[:length])


def _stored(chosen_array: pa.Array, id: int, type: AtomicType, stored_data_type: pa.DataType) -> Bounds:
    if pa.types.is_string(stored_data_type) and len(chosen_array):
        texts: list[str] = chosen_array.to_pylist()
        prefix = texts[0][: _common(texts[0], texts[-1])] if len(texts) > 1 else ""
        return Bounds(
            id=id, type=type.name, prefix=prefix, values=tuple(text[len(prefix) :] for text in texts)
        )
    return Bounds(id=id, type=type.name, values=tuple(from_arrow(chosen_array)))


def clustering_from(
    columns: Sequence[str | Sequence[str]], schema: Schema, *, case_sensitive: bool = False
) -> tuple[int, ...]:
    """Return the column ids. A column is a name, or the path of a field of structs.

    Raises NoSuchColumn. Raises InvalidInput if a column is named twice, or if its values have no order.
    """
    check_list(columns, "columns")
    paths = [[column] if isinstance(column, str) else list(column) for column in columns]
    statements = [{"transform": IDENTITY.name, "column": path} for path in paths]
    ids = [
        field.source_id for field in sort_order_from(statements, schema, case_sensitive=case_sensitive).fields
    ]
    for index, id in enumerate(ids):
        if id in ids[:index]:
            raise InvalidInput(f"the clustering names {dotted(paths[index])} twice: leave one out")
    return tuple(ids)


def order_within_files(clustering: Sequence[int], sort_order: SortOrder) -> SortOrder:
    """Return the order of the rows in a new file: by the clustering first, then by the sort order."""
    clustering_fields = tuple(
        SortField(source_id=id, transform=IDENTITY, direction="asc", nulls="first") for id in clustering
    )
    return msgspec.structs.replace(sort_order, fields=(*clustering_fields, *sort_order.fields))
