"""Which files may hold the first rows of an order: statistics rule the other files out.

Never a guess. Bounds need not be values for that. The files with the lowest upper bounds are taken until they
have enough rows for certain. A value above all of these bounds is in none of the first rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.file_set import Specs
from lakelog.catalog.core.planning.bound import BoundTerm
from lakelog.catalog.core.planning.file_facts import array_of, facts_of, specs_list
from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType

_ORDERED = frozenset(
    ("boolean", "byte", "short", "integer", "long", "decimal", "date", "timestamp", "timestamp_ntz", "string")
)
"""The families of types for which Arrow has Spark's order: not floating point, whose NaN is above all."""


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first `limit` rows by a column of the schema; rows with an equal value are in any order."""

    column: str
    ascending: bool
    nulls_first: bool
    limit: int


def may_be_first(chunks: Sequence[pa.Table], top: TopRows, schema: Schema, specs: Specs) -> list[pa.Array]:
    """Return for each file of each chunk whether it may hold any of the first rows.

    False is a proof that none is.
    """
    all_files = [pa.repeat(pa.scalar(True), chunk.num_rows) for chunk in chunks]
    field = next(field for field in schema.fields if field.name == top.column)
    if not isinstance(field.type, AtomicType) or field.type.family not in _ORDERED or not chunks:
        return all_files
    term = BoundTerm(field.id, (field.name,), field.type, value_type(field.type))
    facts = [facts_of(chunk, term, specs_list(specs)) for chunk in chunks]
    bounds = pa.chunked_array(
        [facts_of_chunk.hi if top.ascending else facts_of_chunk.lo for facts_of_chunk in facts]
    ).combine_chunks()
    certain = pa.chunked_array([_certain(chunk, term) for chunk in chunks]).combine_chunks()
    certain = pc.if_else(pc.is_valid(bounds), certain, 0)
    order = pc.array_sort_indices(bounds, order="ascending" if top.ascending else "descending")
    enough = pc.index(pc.greater_equal(pc.cumulative_sum(certain.take(order)), top.limit), True).as_py()
    if enough < 0:
        return all_files
    last = bounds[order[enough].as_py()]
    masks = []
    for facts_of_chunk in facts:
        beyond = pc.greater(facts_of_chunk.lo, last) if top.ascending else pc.less(facts_of_chunk.hi, last)
        may = pc.and_(facts_of_chunk.may_value, pc.invert(pc.fill_null(beyond, False)))
        masks.append(pc.or_(may, facts_of_chunk.may_null) if top.nulls_first else may)
    return masks


def _certain(files: pa.Table, term: BoundTerm) -> pa.Array:
    """Return how many live rows of each file certainly have a value: all deleted rows may have had one."""
    rows, name = array_of(files, "rows"), f"nulls{term.column_id}"
    if name not in files.column_names:
        return pc.multiply(rows, 0)
    values = pc.subtract(rows, array_of(files, name))
    return pc.fill_null(pc.max_element_wise(values, 0), 0)
