"""A table's metadata: everything except its files, such as columns, partitioning, order and properties.
Pure."""

from __future__ import annotations

import msgspec

from lakelog.catalog.core.schema.constraints import Constraint
from lakelog.catalog.core.schema.curve import Ranks, problem_of
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder, Transform, result_type
from lakelog.catalog.core.schema.schema import DEPTH_LIMIT, FIELD_LIMIT, NAME_LIMIT_BYTES, Schema
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.schema.types import children
from lakelog.log.errors import FormatError, LakelogError
from lakelog.log.grammar import Int32, Number


class Metadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything about a table except its files.

    `specs` holds every partition spec that files may have. The current spec is the last. `generation` is the
    version of the create or replace that began this metadata. Writes that started in another generation are
    for another table. `clustering` has the ids of the columns by which writes cluster their rows. `ranks` has
    the boundaries of their values, if there are any.
    """

    schema: Schema
    specs: tuple[PartitionSpec, ...]
    sort_order: SortOrder
    properties: dict[str, str]
    provider: str | None = None
    comment: str | None = None
    own_location: bool = False
    generation: Number = 0
    constraints: tuple[Constraint, ...] = ()
    clustering: tuple[Int32, ...] = ()
    ranks: Ranks | None = None

    def __repr__(self) -> str:
        """Return what people ask of a table: its columns, partitioning, properties and constraints."""
        facts = {
            "Partitioned by": ", ".join(field.name for field in self.spec.fields),
            "Constraints": ", ".join(constraint.name for constraint in self.constraints),
            "Comment": "" if self.comment is None else repr(self.comment),
            "Properties": "".join(f"\n  {key} = {value!r}" for key, value in self.properties.items()),
        }
        return "\n".join([repr(self.schema), *(f"{name}: {said}" for name, said in facts.items() if said)])

    @property
    def spec(self) -> PartitionSpec:
        return self.specs[-1]

    @property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        return {spec.id: spec for spec in self.specs}


PART_NAME_LIMIT = DEPTH_LIMIT * (NAME_LIMIT_BYTES + 1) + 32
"""The name of a partition field has its column's path and its transform."""


def check_metadata(metadata: Metadata) -> None:
    """Raise FormatError for stored metadata that no change of a table can have made. All rooms rely on these
    rules.

    Ids are unique, columns are within their limits, and partitions and orders apply to single values.
    """
    schema = metadata.schema
    problem = _problem_of(schema)
    for spec in metadata.specs:
        for part in spec.fields:
            if len(part.name) > PART_NAME_LIMIT:
                problem = problem or f"a partition field's name is longer than {PART_NAME_LIMIT} characters"
            problem = problem or _misfit(schema, part.source_id, part.transform)
    for order in metadata.sort_order.fields:
        problem = problem or _misfit(schema, order.source_id, order.transform)
    if problem is None and (not metadata.specs or len(metadata.specs_by_id) < len(metadata.specs)):
        problem = "it has no partition spec, or two of one id"
    if problem is None and metadata.ranks is not None:
        problem = problem_of(metadata.ranks, metadata.clustering, schema)
    if problem is not None:
        raise FormatError(
            f"the log has metadata of a table that cannot be: {problem}; find out which client wrote it"
        )


def _problem_of(schema: Schema) -> str | None:
    ids: set[int] = set()
    level, depth = [schema.fields], 0
    while level:
        depth += 1
        if depth > DEPTH_LIMIT:
            return f"its columns are nested deeper than {DEPTH_LIMIT} levels"
        fields = [field for fields_of_level in level for field in fields_of_level]
        new_ids = {field.id for field in fields}
        if (
            len(new_ids) < len(fields)
            or new_ids & ids
            or min(new_ids, default=1) < 1
            or max(new_ids, default=0) > schema.last_id
        ):
            return f"an id is given twice, or is not from 1 to {schema.last_id}"
        if any(max(len(field.name), len(field.physical)) > NAME_LIMIT_BYTES for field in fields):
            return f"a column's name is longer than {NAME_LIMIT_BYTES} characters"
        ids |= new_ids
        if len(ids) > FIELD_LIMIT:
            return f"it has more than {FIELD_LIMIT} columns and nested fields"
        level = [below for field in fields if (below := children(field.type))]
    return None


def _misfit(schema: Schema, source_id: int, transform: Transform) -> str | None:
    if not schema.has_id(source_id):
        return None  # of a column that was dropped
    try:
        result_type(transform, schema.field_by_id(source_id).type)
    except LakelogError as error:
        return error.message
    return None


ready(Metadata)
