"""Clustering: the columns that rows are clustered by, and the curve along which they are ordered then.

The curve is Hilbert's, over ranks of the values by quantile boundaries.
A value's rank is how many boundaries of its column are not above it; NULL has the lowest rank, NaN the highest. So any
type with an order gives a small number, common prefixes cost no resolution, and a value that is frequent takes one
rank. With one column the curve is that column's order. Pure.
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

from lakelog.catalog.core.schema.literals import Scalar, from_arrow, to_arrow, value_type
from lakelog.catalog.core.schema.partitioning import IDENTITY, SortField, SortOrder, sort_order_from
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.log.grammar import Int32, Number

Ints: TypeAlias = npt.NDArray[np.int64]

COLUMNS_MAX = 4
"""So many columns are ranked; of further ones, rows are only sorted by them where all these are alike."""

BITS = {1: 10, 2: 8, 3: 8, 4: 8}
"""How many bits a rank has, by the number of columns."""

BOUNDS_BYTES_MAX = 8 * 1024
"""About how large the boundaries of one column may be in the log: of long ones, there are fewer."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Boundaries of the values of the column `id`, which had the type `type`, each above the one before.

    Each is a JSON literal; those of texts follow `prefix`, which all of them begin with.
    """

    id: Int32
    type: str
    prefix: str = ""
    values: tuple[Scalar, ...] = ()


class Ranks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One generation of the boundaries of a table's clustering. Those from `first` on are of the same columns."""

    generation: Number
    first: Number
    columns: tuple[Bounds, ...]

    @property
    def bits(self) -> int:
        return BITS[len(self.columns)]

    @property
    def places(self) -> int:
        """How many places the curve has."""
        return 1 << (self.bits * len(self.columns))


def hilbert(axes: Sequence[Ints], bits: int) -> Ints:
    """Return the places on Hilbert's curve of points, given by their coordinates, each below 2 ** bits.

    By J. Skilling, Programming the Hilbert curve (2004). Of one axis, the coordinate.
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
    """Return the rank of each value, from 0 to 2 ** bits - 1: the boundaries are spread over that range evenly.

    Both arrays are of one value type (see `literals`).
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
        found = np.searchsorted(limits, numbers, side="right").astype(np.int64)
        if pa.types.is_floating(values.type):
            found[np.isnan(numbers)] = len(bounds)
    else:
        # A stable sort of the boundaries before the values says of each value how many are not above it.
        order = pc.array_sort_indices(pa.concat_arrays([bounds, values])).to_numpy()
        is_value = order >= len(bounds)
        below = np.cumsum(~is_value)
        found = np.zeros(len(values), np.int64)
        found[order[is_value] - len(bounds)] = below[is_value]
    found[nulls] = 0
    return found


def _numbers(values: pa.Array) -> npt.NDArray[Any] | None:
    """Return values that are numbers as such, with any number for NULL; None for texts, bytes and decimals."""
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


class Curve:
    """The curve of a generation, for a table whose columns may have wider types by now."""

    def __init__(self, ranks: Ranks, schema: Schema) -> None:
        self.ranks = ranks
        self.ids = tuple(column.id for column in ranks.columns)
        self.bounds = tuple(_bounds_as(column, schema) for column in ranks.columns)

    def coordinates(self, columns: Sequence[pa.Array]) -> list[Ints]:
        """Return the ranks of rows, of which `columns` are the values of each column of `ids`."""
        return [
            ranks_of(values, bounds, self.ranks.bits)
            for values, bounds in zip(columns, self.bounds, strict=True)
        ]

    def places(self, columns: Sequence[pa.Array]) -> Ints:
        """Return where rows are on the curve, of which `columns` are the values of each column of `ids`."""
        return hilbert(self.coordinates(columns), self.ranks.bits)


def curve_of(ranks: Ranks | None, clustering: Sequence[int], schema: Schema) -> Curve | None:
    """Return the curve that rows of a table are ordered along: None where it has none yet, or none any more."""
    if ranks is None or not is_of(ranks, clustering):
        return None
    return Curve(ranks, schema)


def is_of(ranks: Ranks, clustering: Sequence[int]) -> bool:
    """Whether ranks are of the columns that the table is clustered by."""
    ids = tuple(column.id for column in ranks.columns)
    return bool(clustering) and tuple(clustering[:COLUMNS_MAX]) == ids


def _bounds_as(bounds: Bounds, schema: Schema) -> pa.Array:
    there, now = value_type(AtomicType(bounds.type)), value_type(schema.field_by_id(bounds.id).type)
    if there is None or now is None:
        raise InvalidInput(f"values of the type {bounds.type} have no order")
    if bounds.prefix:
        return pa.array([bounds.prefix + str(value) for value in bounds.values], there)
    array = to_arrow(bounds.values, there)
    return array if there == now else array.cast(now)


def problem_of(ranks: Ranks, clustering: Sequence[int], schema: Schema) -> str | None:
    """Return why stored ranks cannot be: other code relies on what is checked here."""
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
    """Return the boundaries in full, as JSON literals of the column's present type."""
    return tuple(from_arrow(_bounds_as(bounds, schema)))


def bounds_from(sample: pa.Array, id: int, type: AtomicType, bits: int) -> Bounds:
    """Return boundaries of the values of a column, of which `sample` are some: its quantiles, each once.

    Of texts and bytes, a boundary is the shortest beginning of a value that is above the value before it.
    """
    stored = value_type(type)
    values = sample.drop_null()
    if pa.types.is_floating(values.type):
        # Added to 0, -0.0 is 0.0, which is the same value.
        zero = pa.scalar(0.0, values.type)
        values = pc.add(values.filter(pc.invert(pc.is_nan(values))), zero)
    ordered = values.take(pc.array_sort_indices(values))
    distinct = pc.unique(ordered)
    most = (1 << bits) - 1
    while True:
        chosen = _chosen(distinct, ordered, most)
        bounds = _stored(chosen, id, type, stored)
        if len(msgspec.json.encode(bounds)) <= BOUNDS_BYTES_MAX or most <= 1:
            break
        most //= 2
    if len(msgspec.json.encode(bounds)) > BOUNDS_BYTES_MAX:
        return Bounds(id=id, type=type.name)  # one boundary that long says nothing worth its size
    return bounds


def _chosen(distinct: pa.Array, ordered: pa.Array, most: int) -> pa.Array:
    """Return at most so many values as boundaries: not the lowest, as nothing is below it."""
    if len(distinct) <= most + 1:
        chosen = distinct.slice(1)
    else:
        places = np.unique(np.arange(1, most + 1) * len(ordered) // (most + 1))
        chosen = pc.unique(ordered.take(pa.array(places)))
        chosen = chosen.filter(pc.not_equal(chosen, distinct[0]))
    if not (pa.types.is_string(chosen.type) or pa.types.is_binary(chosen.type)):
        return chosen
    known = distinct.to_pylist()
    at = {value: place for place, value in enumerate(known)}
    return pa.array([_shortest(known[at[value] - 1], value) for value in chosen.to_pylist()], chosen.type)


def _shortest(below: Any, value: Any) -> Any:
    """Return the shortest beginning of `value` that is above `below`."""
    return value[: _common(below, value) + 1]


def _common(one: Any, other: Any) -> int:
    """Return how long the beginning is that two texts have in common."""
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: one[:length] != other[:length])


def _stored(chosen: pa.Array, id: int, type: AtomicType, stored: pa.DataType) -> Bounds:
    if pa.types.is_string(stored) and len(chosen):
        texts: list[str] = chosen.to_pylist()
        prefix = texts[0][: _common(texts[0], texts[-1])] if len(texts) > 1 else ""
        return Bounds(
            id=id, type=type.name, prefix=prefix, values=tuple(text[len(prefix) :] for text in texts)
        )
    return Bounds(id=id, type=type.name, values=tuple(from_arrow(chosen)))


def clustering_from(
    columns: Sequence[str | Sequence[str]], schema: Schema, *, case_sensitive: bool = False
) -> tuple[int, ...]:
    """Return the ids of the columns, each the name of one or the names that lead to a field of structs.

    NoSuchColumn; InvalidInput for one that is named twice, or whose values have no order.
    """
    paths = [[column] if isinstance(column, str) else list(column) for column in columns]
    wanted = [{"transform": IDENTITY.name, "column": path} for path in paths]
    ids = [field.source_id for field in sort_order_from(wanted, schema, case_sensitive=case_sensitive).fields]
    for index, id in enumerate(ids):
        if id in ids[:index]:
            raise InvalidInput(f"the clustering names {dotted(paths[index])} twice: leave one out")
    return tuple(ids)


def order_within_files(clustering: Sequence[int], sort_order: SortOrder) -> SortOrder:
    """Return the order of the rows in a new file: by the clustering first, then as the sort order says."""
    clustered = tuple(SortField(source_id=id) for id in clustering)
    return msgspec.structs.replace(sort_order, fields=(*clustered, *sort_order.fields))
