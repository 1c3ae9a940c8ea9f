"""Whether all rows of a table are as a change of its definition needs them: a new CHECK, or NOT NULL where NULL was.

Statistics prove it where they can, file by file. Where they cannot, somebody has to look at the rows of one version,
and then the files that were added since need a proof. So it is asked again on every state that the change is put on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow.compute as pc

from lakelog.catalog.errors import CommitConflict, RowsUnproven
from lakelog.catalog.logs import TableHead, seen_on
from lakelog.catalog.planning import Bound, Unevaluable, bind, may_fail
from lakelog.catalog.schema import Check, Column, Constraint, Predicate, Schema, StructType, dotted
from lakelog.catalog.state import TableState
from lakelog.log import View
from lakelog.log.errors import Unsupported


class _Defined(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...


@dataclass(frozen=True, slots=True)
class Requirement:
    """What all rows have to be: `condition` is not false for any. `words` say it to people."""

    condition: Bound
    words: str


def required(before: _Defined, after: _Defined) -> list[Requirement]:
    """Return what `after` needs of the rows that `before` did not need already."""
    found = new_checks(before, after)
    for path, field in after.schema.walk():
        if (
            not field.nullable
            and before.schema.has_id(field.id)
            and before.schema.field_by_id(field.id).nullable
        ):
            found.append(Requirement(_not_null(after.schema, field.id), f"{dotted(path)} IS NOT NULL"))
    return found


def new_checks(before: _Defined, after: _Defined) -> list[Requirement]:
    """Return the CHECKs that `after` has and `before` does not."""
    return [
        Requirement(condition_of(check, after.schema), f"CHECK ({check.sql})")
        for check in after.constraints
        if isinstance(check, Check) and check not in before.constraints
    ]


def condition_of(check: Check, schema: Schema) -> Bound:
    """Return what lakelog understands of a CHECK; of a column of type CHAR it is left to Spark, which pads."""
    padded = any(_family(schema, id) == "char" for id in check.columns)
    if check.predicate is None or padded:
        return Unevaluable(check.sql)
    return bind(Predicate.from_json(check.predicate), schema)


def check_rows(
    head: TableHead, looked_at: View[TableState] | None, requirements: Sequence[Requirement]
) -> None:
    """Raise unless all rows of `head` are proven to be so; those of `looked_at` are, as somebody says who looked.

    RowsUnproven when nobody looked, Unsupported for rows of a branch; CommitConflict for files that came since then.
    """
    if not requirements:
        return
    name = head.name
    for branch in head.state.branches:
        # Nobody has looked at these: whoever asks has seen main.
        _check_branch(head, branch, requirements)
    if looked_at is None:
        files = head.all_files()
    elif looked_at.hash == head.view.hash:
        return
    else:
        files = head.files_only_here(looked_at)
    for requirement in requirements:
        if not pc.any(may_fail(files, requirement.condition, head.metadata.specs), min_count=0).as_py():
            continue
        if looked_at is None:
            raise RowsUnproven(
                f"rows of {name} may violate {requirement.words}: the statistics of its files do not prove that none "
                "does. ALTER TABLE in Spark SQL, in a session with lakelog's extension, looks at the rows themselves"
            )
        raise CommitConflict(
            f"{requirement.words} holds for {name} as of version {looked_at.version}, but rows were added since, which "
            "may violate it. Nothing was changed: run the statement again, and it will look at those rows too",
            version=head.version,
        )


def _check_branch(head: TableHead, branch: str, requirements: Sequence[Requirement]) -> None:
    name, files = head.name, head.at(seen_on(head.view, branch)).all_files()
    for requirement in requirements:
        if pc.any(may_fail(files, requirement.condition, head.metadata.specs), min_count=0).as_py():
            # Looking at all rows of the table, as engines do where rows are unproven, would not help.
            raise Unsupported(
                f"rows of the branch {branch} of {name} may violate {requirement.words}: the statistics of its files "
                "do not prove that none does. Drop the branch first, or rewrite its rows"
            )


def _not_null(schema: Schema, id: int) -> Bound:
    path = schema.path_of(id)
    if any(not isinstance(schema.find(path[:length]).type, StructType) for length in range(1, len(path))):
        # Nothing is known of what is in arrays and maps.
        return Unevaluable(f"{dotted(path)} IS NOT NULL")
    return bind(Predicate("IS_NOT_NULL", (Column(path),)), schema)


def _family(schema: Schema, id: int) -> str | None:
    type = schema.field_by_id(id).type
    return getattr(type, "family", None)
