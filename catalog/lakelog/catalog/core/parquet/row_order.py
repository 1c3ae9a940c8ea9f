"""Rows split by partition, and sorted in the order within files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.curve import ClusteringCurve, Ints
from lakelog.catalog.core.schema.literals import from_arrow
from lakelog.catalog.core.schema.partitioning import IDENTITY, PartitionSpec, SortOrder, Transform
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType


def clusters(
    rows: pa.Table, schema: Schema, spec: PartitionSpec
) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Yield the rows of each partition, with its values as JSON literals in the order of the spec."""
    if not spec.fields:
        yield (), rows
        return
    values = [transformed(rows, schema, field.source_id, field.transform) for field in spec.fields]
    starts = [0]
    if rows.num_rows > 1:
        names = [str(index) for index in range(len(values))]
        order = pc.sort_indices(
            pa.table(values, names=names), sort_keys=[(name, "ascending") for name in names]
        )
        if _moves(order):
            rows, values = rows.take(order), [array.take(order) for array in values]
        starts += _changes(values)
    firsts = [from_arrow(array.take(pa.array(starts, pa.int64()))) for array in values]
    for key, start, end in zip(zip(*firsts, strict=True), starts, [*starts[1:], rows.num_rows], strict=True):
        yield key, rows.slice(start, end - start)


def places_on(curve: ClusteringCurve, rows: pa.Table, schema: Schema) -> Ints:
    """Return the places of the logical `rows` on the curve."""
    return curve.places([transformed(rows, schema, id, IDENTITY) for id in curve.ids])


def sorted_rows(
    rows: pa.Table, schema: Schema, sort_order: SortOrder, places: Ints | None = None
) -> tuple[pa.Table, Ints | None]:
    """Return `rows` by their `places` on a curve, if any, and then in `sort_order`; and their places."""
    if (not sort_order.fields and places is None) or rows.num_rows < 2:
        return rows, places
    keys: list[tuple[str, str]] = []
    columns: dict[str, pa.Array] = {}
    if places is not None:
        columns["place"] = pa.array(places)
        keys.append(("place", "ascending"))
    for index, field in enumerate(sort_order.fields):
        values = transformed(rows, schema, field.source_id, field.transform)
        if values.null_count:
            # Arrow puts all NULLs on the same side, regardless of the direction of each column.
            columns[f"null{index}"] = pc.is_null(values).cast(pa.int8())
            keys.append((f"null{index}", "ascending" if field.nulls == "last" else "descending"))
        columns[f"value{index}"] = values
        keys.append((f"value{index}", "ascending" if field.direction == "asc" else "descending"))
    order = pc.sort_indices(pa.table(columns), sort_keys=keys)
    if not _moves(order):
        return rows, places
    return rows.take(order), None if places is None else places[order.to_numpy()]


def transformed(rows: pa.Table, schema: Schema, column_id: int, transform: Transform) -> pa.Array:
    """Return a transform of a column, which may be a field of structs, for each of the logical `rows`."""
    path = schema.path_of(column_id)
    values = rows.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    source = schema.field_by_id(column_id).type
    assert isinstance(source, AtomicType), "only single values are transformed"
    array = apply_transform(transform, values, source)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _changes(columns: Sequence[pa.Array]) -> list[int]:
    """Return the rows that differ from the previous row; NULL is equal to NULL, and NaN to NaN."""
    is_change: pa.Array = None
    for values in columns:
        current, previous = values.slice(1), values.slice(0, len(values) - 1)
        differs = pc.fill_null(pc.not_equal(current, previous), False)
        if pa.types.is_floating(values.type):
            both = pc.and_(pc.is_nan(current), pc.is_nan(previous))
            differs = pc.and_not(differs, pc.fill_null(both, False))
        differs = pc.or_(differs, pc.xor(pc.is_null(current), pc.is_null(previous)))
        is_change = differs if is_change is None else pc.or_(is_change, differs)
    return [index + 1 for index in pc.indices_nonzero(is_change).to_pylist()]


def _moves(order: pa.Array) -> bool:
    """Return whether the permutation `order` moves anything."""
    current, previous = order.slice(1), order.slice(0, len(order) - 1)
    return bool(pc.any(pc.less(current, previous)).as_py())
