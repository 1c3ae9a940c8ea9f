"""Scan planning: which data files a query has to read.

Vectorised over Arrow, which drops the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import BASE_SCHEMA, DataFile, is_planned
from lakelog.catalog.core.files.file_set import FileSet, Specs
from lakelog.catalog.core.files.file_tables import joined
from lakelog.catalog.core.files.leaves import Fetch
from lakelog.catalog.core.files.manifests import FileChoice
from lakelog.catalog.core.planning.bound import Bound, ConstantCondition, of_columns, terms, unknown_parts
from lakelog.catalog.core.planning.file_facts import ManifestFacts, array_of, partition_values, specs_list
from lakelog.catalog.core.planning.pruning import match, may_match
from lakelog.catalog.core.planning.top_rows import TopRows, may_be_first
from lakelog.catalog.core.schema.literals import from_arrow, to_arrow, value_type
from lakelog.catalog.core.schema.partitioning import PartitionField, PartitionSpec
from lakelog.catalog.core.schema.schema import Schema


def plan_scan(
    files: FileSet,
    fetch: Fetch,
    bound_condition: Bound | None,
    specs: Specs,
    *,
    limit: int | None = None,
    statistics: Collection[int] = (),
    top: TopRows | None = None,
    schema: Schema | None = None,
) -> pa.Table:
    """Return the files that may hold matching rows, a row each.

    The columns are path, size, rows, spec, `p<field id>` of every field. Footer, names, constants, deleted,
    deletes, first_row and version are there if any file has them. The version of a file that the present
    transaction has added is 0.

    With `limit`, files stop once the rows that match for certain suffice. `statistics` are ids of columns
    whose `lo`, `hi`, `nulls` and `nans` are returned too, as far as they are known. Without a filter, files
    that have none of the `top` rows of a table of that `schema` are left out.
    """
    file_parts: list[pa.Table] = []
    rows_to_find = limit
    by_order = top if schema is not None and bound_condition in (None, ConstantCondition(True)) else None
    looked_at = {*statistics, *(term.column_id for term in terms(bound_condition or ConstantCondition(True)))}
    if by_order is not None and schema is not None:
        looked_at |= {field.id for field in schema.fields if field.name == by_order.column}
    chunks = files.chunks(fetch, looked_at, choosing(bound_condition, specs))
    if by_order is not None and schema is not None:
        masks = may_be_first(chunks, by_order, schema, specs)
        chunks = [_filtered(chunk, mask) for chunk, mask in zip(chunks, masks, strict=True)]
    for chunk in chunks:
        candidates = (
            chunk if bound_condition is None else _filtered(chunk, may_match(chunk, bound_condition, specs))
        )
        if rows_to_find is not None:
            certain = _certain_rows(candidates, bound_condition, specs)
            stop = pc.index(pc.greater_equal(pc.cumulative_sum(certain), rows_to_find), True).as_py()
            if stop >= 0 or rows_to_find == 0:
                file_parts.append(
                    _projected(candidates.slice(0, stop + 1 if rows_to_find else 0), statistics)
                )
                break
            rows_to_find -= pc.sum(certain, min_count=0).as_py()
        file_parts.append(_projected(candidates, statistics))
    plan = joined(file_parts or [_projected(BASE_SCHEMA.empty_table(), statistics)])
    for field in {field.id: field for spec in specs_list(specs) for field in spec.fields}.values():
        if f"p{field.id}" not in plan.column_names:
            plan = plan.append_column(f"p{field.id}", partition_values(plan, field))
    return plan


def choosing(bound_condition: Bound | None, specs: Specs) -> FileChoice | None:
    """Return how files and manifests are chosen for a filter: those that may hold matching rows."""
    if bound_condition is None or isinstance(bound_condition, ConstantCondition):
        return None
    return FileChoice(
        manifests=lambda bounds: may_match(ManifestFacts(bounds), bound_condition, specs),
        files=lambda files: may_match(files, bound_condition, specs),
        looked_at=frozenset(term.column_id for term in terms(bound_condition)),
    )


def left_out_by_partition(
    files: FileSet, bound_condition: Bound | None, specs: Specs, left_out: int
) -> int | None:
    """Return how many of the files that a plan leaves out are ruled out by conditions on partitioned columns.

    The rest is ruled out by statistics of other columns. Reads nothing. None if a read would be needed, or if
    many files would have to be checked again.
    """
    sources = {field.source_id for spec in specs_list(specs) for field in spec.fields}
    column_ids = {term.column_id for term in terms(bound_condition or ConstantCondition(True))}
    if bound_condition is None or not left_out or not column_ids & sources:
        return 0
    if column_ids <= sources:
        return left_out
    if files.file_count > _COUNTED_MAX:
        return None
    weaker = of_columns(bound_condition, sources)
    try:
        chunks = files.chunks(_read_nothing, column_ids & sources, choosing(weaker, specs))
    except _NotRead:
        return None
    stay: int = sum(pc.sum(may_match(chunk, weaker, specs), min_count=0).as_py() for chunk in chunks)
    return min(left_out, files.file_count - stay)


_COUNTED_MAX = 100_000


class _NotRead(Exception):
    """A list of files would have to be read."""


def _read_nothing(names: Sequence[str]) -> list[bytes]:
    raise _NotRead


def partition_key(file: DataFile, spec: PartitionSpec) -> tuple[object, ...]:
    """Return the partition of a file: its values in the order of the spec's fields, as lakelog writes
    them.
    """
    return tuple(_normal(file.partition.get(field.id), field) for field in spec.fields)


def _normal(value: object, field: PartitionField) -> object:
    """Return a literal as lakelog itself writes it, even if another client wrote it.

    For example, `1.5` as a decimal of two places is `1.50`.
    """
    return from_arrow(to_arrow([value], value_type(field.result)))[0]


def _certain_rows(files: pa.Table, bound_condition: Bound | None, specs: Specs) -> pa.Array:
    rows = array_of(files, "rows") if files.num_rows else pa.array([], pa.int64())
    if bound_condition is None or bound_condition == ConstantCondition(True):
        return rows
    if unknown_parts(bound_condition):
        return pc.multiply(rows, 0)
    return pc.if_else(match(files, bound_condition, specs).all, rows, 0)


def _filtered(files: pa.Table, mask: pa.Array) -> pa.Table:
    return files if pc.all(mask, min_count=0).as_py() else files.filter(mask)


def _projected(files: pa.Table, statistics: Collection[int]) -> pa.Table:
    return files.select([name for name in files.column_names if is_planned(name, statistics)])
