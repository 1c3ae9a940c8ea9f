"""Scan planning: which data files a query has to read. Vectorised over Arrow, which drops the interpreter's lock."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import BASE_SCHEMA, Choice, DataFile, Fetch, FileSet, is_planned, joined
from lakelog.catalog.core.planning.bound import Bound, Constant, of_columns, terms, unknown_parts
from lakelog.catalog.core.planning.file_facts import Together, array_of, partition_values, specs_list
from lakelog.catalog.core.planning.pruning import Specs, match, may_match
from lakelog.catalog.core.planning.top_rows import TopRows, may_be_first
from lakelog.catalog.core.schema import (
    PartitionField,
    PartitionSpec,
    Schema,
    from_arrow,
    to_arrow,
    value_type,
)


def plan_scan(
    files: FileSet,
    fetch: Fetch,
    bound: Bound | None,
    specs: Specs,
    *,
    limit: int | None = None,
    statistics: Collection[int] = (),
    top: TopRows | None = None,
    schema: Schema | None = None,
) -> pa.Table:
    """Return the files that may hold matching rows, a row each: path, size, rows, spec, `p<field id>` of every
    field, and footer, names, constants, deleted, deletes, first_row and version where there are any.

    The version of a file that the transaction at hand has added is 0.

    With `limit`, files stop where the rows that match for certain suffice. `statistics` are ids of columns whose `lo`,
    `hi`, `nulls` and `nans` are wanted too, as far as they are known. Without a filter, files that have none of the
    `top` rows of a table of that `schema` are left out.
    """
    found: list[pa.Table] = []
    missing = limit
    by_order = top if schema is not None and bound in (None, Constant(True)) else None
    looked_at = {*statistics, *(term.column_id for term in terms(bound or Constant(True)))}
    if by_order is not None and schema is not None:
        looked_at |= {field.id for field in schema.fields if field.name == by_order.column}
    chunks = files.chunks(fetch, looked_at, choosing(bound, specs))
    if by_order is not None and schema is not None:
        masks = may_be_first(chunks, by_order, schema, specs)
        chunks = [_filtered(chunk, mask) for chunk, mask in zip(chunks, masks, strict=True)]
    for chunk in chunks:
        kept = chunk if bound is None else _filtered(chunk, may_match(chunk, bound, specs))
        if missing is not None:
            certain = _certain_rows(kept, bound, specs)
            reached = pc.index(pc.greater_equal(pc.cumulative_sum(certain), missing), True).as_py()
            if reached >= 0 or missing == 0:
                found.append(_projected(kept.slice(0, reached + 1 if missing else 0), statistics))
                break
            missing -= pc.sum(certain, min_count=0).as_py()
        found.append(_projected(kept, statistics))
    planned = joined(found or [_projected(BASE_SCHEMA.empty_table(), statistics)])
    for field in {field.id: field for spec in specs_list(specs) for field in spec.fields}.values():
        if f"p{field.id}" not in planned.column_names:
            planned = planned.append_column(f"p{field.id}", partition_values(planned, field))
    return planned


def choosing(bound: Bound | None, specs: Specs) -> Choice | None:
    """Return how files and manifests are chosen for a filter: those that may hold matching rows."""
    if bound is None or isinstance(bound, Constant):
        return None
    return Choice(
        manifests=lambda bounds: may_match(Together(bounds), bound, specs),
        files=lambda files: may_match(files, bound, specs),
        looked_at=frozenset(term.column_id for term in terms(bound)),
    )


def left_out_by_partition(files: FileSet, bound: Bound | None, specs: Specs, left_out: int) -> int | None:
    """Return how many of the files that a plan has left out are so by what `bound` says of partitioned columns.

    The rest is by statistics of other columns. Nothing is read for it: None where that would be needed, or where many
    files would have to be looked at once more.
    """
    sources = {field.source_id for spec in specs_list(specs) for field in spec.fields}
    asked = {term.column_id for term in terms(bound or Constant(True))}
    if bound is None or not left_out or not asked & sources:
        return 0
    if asked <= sources:
        return left_out
    if files.file_count > _COUNTED_MAX:
        return None
    weaker = of_columns(bound, sources)
    try:
        chunks = files.chunks(_read_nothing, asked & sources, choosing(weaker, specs))
    except _NotRead:
        return None
    stay: int = sum(pc.sum(may_match(chunk, weaker, specs), min_count=0).as_py() for chunk in chunks)
    return min(left_out, files.file_count - stay)


_COUNTED_MAX = 100_000


class _NotRead(Exception):
    """A list of files would have to be read."""


def _read_nothing(names: Sequence[str]) -> list[bytes]:
    raise _NotRead


def count_rows(files: FileSet, fetch: Fetch, bound: Bound | None, specs: Specs) -> int | None:
    """Return how many rows match, or None where data has to be read for that."""
    if bound is None:
        return files.row_count
    if unknown_parts(bound):
        return None
    total = 0
    for chunk in files.chunks(fetch, {term.column_id for term in terms(bound)}, choosing(bound, specs)):
        result = match(chunk, bound, specs)
        if not pc.all(pc.or_(result.all, result.none), min_count=0).as_py():
            return None
        # A file of no rows may be both.
        total += pc.sum(chunk.filter(result.all)["rows"], min_count=0).as_py()
    return total


def partition_key(file: DataFile, spec: PartitionSpec) -> tuple[object, ...]:
    """Return the partition of one file: its values in the order of the spec's fields, as lakelog itself writes them."""
    return tuple(_normal(file.partition.get(field.id), field) for field in spec.fields)


def _normal(value: object, field: PartitionField) -> object:
    """Return a literal as lakelog itself writes it, also another client's: `1.5` as a decimal of two places is
    `1.50`."""
    return from_arrow(to_arrow([value], value_type(field.result)))[0]


def _certain_rows(files: pa.Table, bound: Bound | None, specs: Specs) -> pa.Array:
    rows = array_of(files, "rows") if files.num_rows else pa.array([], pa.int64())
    if bound is None or bound == Constant(True):
        return rows
    if unknown_parts(bound):
        return pc.multiply(rows, 0)
    return pc.if_else(match(files, bound, specs).all, rows, 0)


def _filtered(files: pa.Table, mask: pa.Array) -> pa.Table:
    return files if pc.all(mask, min_count=0).as_py() else files.filter(mask)


def _projected(files: pa.Table, statistics: Collection[int]) -> pa.Table:
    return files.select([name for name in files.column_names if is_planned(name, statistics)])
