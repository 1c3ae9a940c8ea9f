"""Proofs that all rows satisfy a new requirement of the table's definition: a new CHECK, or a new NOT NULL.

Statistics prove it if they can, file by file. If they cannot, an engine has to scan the rows of a version,
and then the files that were added since need a proof. So it is checked for every version that the change is
applied to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs.branch_log import seen_on
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound, OpaqueCondition
from lakelog.catalog.core.planning.pruning import may_fail
from lakelog.catalog.core.schema.constraints import CheckConstraint, Constraint
from lakelog.catalog.core.schema.predicate import Column, Predicate
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field, StructType, Type, walk
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import CommitConflict, RowsUnproven
from lakelog.log import LogView
from lakelog.log.errors import Unsupported


class _Defined(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...


@dataclass(frozen=True, slots=True)
class RowRequirement:
    """A requirement on all rows: `condition` is not false for any. `words` are its text in messages.

    `columns` has the ids of the columns that it is about.
    """

    condition: Bound
    words: str
    columns: tuple[int, ...]


def required(before: _Defined, after: _Defined) -> list[RowRequirement]:
    """Return the requirements on rows that `after` has and `before` does not."""
    requirements = new_checks(before, after)
    for path, field in after.schema.walk():
        if (
            not field.nullable
            and before.schema.has_id(field.id)
            and before.schema.field_by_id(field.id).nullable
        ):
            requirements.append(
                RowRequirement(_not_null(after.schema, field.id), f"{dotted(path)} IS NOT NULL", (field.id,))
            )
    return requirements


def new_checks(before: _Defined, after: _Defined) -> list[RowRequirement]:
    """Return the CHECKs that `after` has and `before` does not, or had for columns of other types."""
    return [
        RowRequirement(condition_of(check, after.schema), f"CHECK ({check.sql})", check.columns)
        for check in after.constraints
        if isinstance(check, CheckConstraint)
        and not (check in before.constraints and _has_same_types(check, before.schema, after.schema))
    ]


def _has_same_types(check: CheckConstraint, old_schema: Schema, schema: Schema) -> bool:
    """Return whether a CHECK compares values of the same types. Blanks count in a VARCHAR, not in a CHAR."""
    parts = [part for _, part in walk(tuple(schema.field_by_id(id) for id in check.columns))]
    return not any(
        isinstance(part.type, AtomicType)
        and old_schema.has_id(part.id)
        and old_schema.field_by_id(part.id).type != part.type
        for part in parts
    )


def condition_of(check: CheckConstraint, schema: Schema) -> Bound:
    """Return a CHECK as lakelog understands it.

    A CHECK on a column of type CHAR is left to Spark, which pads.
    """
    has_char = any(_family(schema, id) == "char" for id in check.columns)
    if check.predicate is None or has_char:
        return OpaqueCondition(check.sql)
    return bind(Predicate.from_json(check.predicate), schema)


def check_rows(
    head: TableHead, looked_at: LogView[TableState] | None, requirements: Sequence[RowRequirement]
) -> None:
    """Raise unless all rows of `head` are proven to satisfy `requirements`.

    An engine has checked those of `looked_at`, by the names and types of columns there. Raises RowsUnproven if the
    rows were not checked, Unsupported for rows of a branch, and CommitConflict if files were added, or the columns
    changed, since the check.
    """
    if not requirements:
        return
    name = head.name
    for branch in head.state.branches:
        # Rows of branches were never checked: the engine has read main.
        _check_branch(head, branch, requirements)
    if looked_at is None:
        files = head.all_files()
        for requirement in requirements:
            if _may_be_violated(head, files, requirement):
                raise RowsUnproven(
                    f"rows of {name} may violate {requirement.words}: the statistics of its files do not prove that "
                    "all satisfy it. Use ALTER TABLE in Spark SQL, in a session with lakelog's extension, which scans "
                    "the rows"
                )
        return
    # Each list of files is read once, and only if a requirement needs it.
    all_files, new_files = cache(head.all_files), cache(partial(head.files_only_here, looked_at))
    for requirement in requirements:
        if not _has_same_columns(requirement.columns, looked_at.state.current.schema, head.schema):
            # The engine has compared other values than those of the columns that have these names now.
            if _may_be_violated(head, all_files(), requirement):
                raise _outdated(head, looked_at, requirement, "its columns were changed since")
        elif not looked_at.is_same(head.view) and _may_be_violated(head, new_files(), requirement):
            raise _outdated(head, looked_at, requirement, "rows were added since that may violate it")


def _may_be_violated(head: TableHead, files: pa.Table, requirement: RowRequirement) -> bool:
    mask = may_fail(files, requirement.condition, head.metadata.specs)
    return bool(pc.any(mask, min_count=0).as_py())


def _outdated(
    head: TableHead, looked_at: LogView[TableState], requirement: RowRequirement, why: str
) -> CommitConflict:
    return CommitConflict(
        f"{requirement.words} holds for {head.name} as of version {looked_at.version}, but {why}. Nothing was "
        "changed: run the statement again, which also scans those rows",
        version=head.version,
    )


def _has_same_columns(ids: Sequence[int], old_schema: Schema, schema: Schema) -> bool:
    """Return whether a condition on columns reads the same values by the names and types of an older schema."""
    return all(
        old_schema.has_id(id)
        and old_schema.path_of(id) == schema.path_of(id)
        and _parts(old_schema.field_by_id(id)) == _parts(schema.field_by_id(id))
        for id in ids
    )


def _parts(field: Field) -> list[tuple[tuple[str, ...], int, Type | None]]:
    """Return the path, the id and the type of each value in a column. A type that has parts is left out."""
    return [
        (path, part.id, part.type if isinstance(part.type, AtomicType) else None)
        for path, part in walk((field,))
    ]


def _check_branch(head: TableHead, branch: str, requirements: Sequence[RowRequirement]) -> None:
    name, files = head.name, head.at(seen_on(head.view, branch)).all_files()
    for requirement in requirements:
        if _may_be_violated(head, files, requirement):
            # A scan of all rows of the table, which engines make if rows are unproven, would not help.
            raise Unsupported(
                f"rows of the branch {branch} of {name} may violate {requirement.words}: the statistics of its files "
                "do not prove that all satisfy it. Drop the branch first, or rewrite its rows"
            )


def _not_null(schema: Schema, id: int) -> Bound:
    path = schema.path_of(id)
    if any(not isinstance(schema.find(path[:length]).type, StructType) for length in range(1, len(path))):
        # There are no statistics of values in arrays and maps.
        return OpaqueCondition(f"{dotted(path)} IS NOT NULL")
    return bind(Predicate("IS_NOT_NULL", (Column(path),)), schema)


def _family(schema: Schema, id: int) -> str | None:
    type = schema.field_by_id(id).type
    return getattr(type, "family", None)
