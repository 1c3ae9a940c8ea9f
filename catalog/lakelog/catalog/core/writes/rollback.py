"""Rollback: a table gets the contents of an earlier version, as a new version. Later versions are not lost.

The history of a table is a line, so a rollback makes it longer. A rollback restores all of the table: rows, columns,
partitioning, order, properties. Setting the current version restores the rows only, read by the present columns. Either
can also go forward again, to a version that an earlier rollback undid.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs import NothingToDo, TableHead, Token, Written, check_conflicts, no_files
from lakelog.catalog.core.parquet import new_checks
from lakelog.catalog.core.planning import may_fail
from lakelog.catalog.core.schema import AtomicType, Metadata, Schema, dotted, is_widening, not_generated
from lakelog.catalog.core.state import (
    Operation,
    RolledBack,
    TableEvent,
    TableState,
    check_no_branches,
    encode,
)
from lakelog.catalog.core.writes.file_changes import moved_files
from lakelog.catalog.core.writes.files_since import only_moved
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import InvalidInput, NotFound

_SHARED = ("schema", "constraints", "generation")
"""The parts of the metadata that the rows of branches fit, and would no longer fit if one of them were rolled back."""


def go_back(head: TableHead, operation: Operation, then: View[TableState], token: Token | None) -> TableHead:
    """Make the table (ROLLBACK), or its rows (SET_CURRENT), those of `then`, and return the newest version.

    NotFound where `then` expires meanwhile, InvalidInput where its rows do not fit the table as it is.
    """
    version, before, name = then.version, then.state.current, head.name

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        now = view.state.current
        check_conflicts(operation, view, passed, Written(head.version, head.schema, no_files), name)
        if view.state.expired > version:
            raise NotFound(f"{name} cannot be rolled back to version {version}: the version has expired")
        metadata = None
        if operation is Operation.ROLLBACK:
            metadata = _restored(now, before)
            if any(getattr(metadata, part) != getattr(now, part) for part in _SHARED):
                check_no_branches(view.state.branches, name, "rolled back to other columns")
        added, removed = head.at(then).files_only_here(view), head.at(view).files_only_here(then)
        if operation is not Operation.ROLLBACK:
            check_fits(now, before, added, version, name)
        if only_moved(passed, head.version):
            # The same rows go as when a transaction made this step, in other files.
            head.tracked.transaction.note_moved()
        if not added.num_rows and not removed.num_rows and metadata in (None, now):
            raise NothingToDo("nothing to change")
        events: list[TableEvent] = [RolledBack(version=version, metadata=metadata)]
        blobs: tuple[bytes, ...] = ()
        if added.num_rows or removed.num_rows:
            event, blobs = moved_files(operation, added, removed, metadata or now)
            events.append(event)
        return Draft(events=encode(events), blobs=blobs)

    return head.commit_or_refresh(decide, token)


def check_fits(now: Metadata, then: Metadata, added: pa.Table, version: int, name: str) -> None:
    """Raise InvalidInput unless the rows of a version, of which those `added` are not live now, fit the table now."""
    _check_rows_fit(now, then, version, name)
    _check_conditions(added, now, then, version, name)


def _restored(now: Metadata, then: Metadata) -> Metadata:
    """Return `then` as the table's metadata again: ids that were assigned since are never assigned again."""
    known = {spec.id for spec in then.specs}
    schema = msgspec.structs.replace(then.schema, last_id=max(now.schema.last_id, then.schema.last_id))
    return msgspec.structs.replace(
        then,
        schema=schema,
        specs=(*(spec for spec in now.specs if spec.id not in known), *then.specs),
        own_location=now.own_location,
        generation=now.generation if now.generation == then.generation else 0,
    )


def _check_rows_fit(now: Metadata, then: Metadata, version: int, name: str) -> None:
    back = "roll back all of the table with rollback_to_version, or keep its present rows"
    if now.generation != then.generation:
        raise InvalidInput(
            f"{name} was replaced after version {version}, whose rows have none of its present columns: {back}"
        )
    misfit = _missing_value(then.schema, now.schema) or wider_type(then.schema, now.schema)
    if misfit is not None:
        raise InvalidInput(f"the rows of version {version} do not fit {name} as it is now: {misfit}; {back}")


def _check_conditions(added: pa.Table, now: Metadata, then: Metadata, version: int, name: str) -> None:
    """Raise unless the restored rows are proven to satisfy the CHECKs that were added since."""
    for requirement in new_checks(then, now):
        if pc.any(may_fail(added, requirement.condition, now.specs), min_count=0).as_py():
            raise InvalidInput(
                f"rows of version {version} may violate {requirement.words}, which {name} did not have then: drop that "
                "constraint, or roll back all of the table with rollback_to_version"
            )


def _missing_value(then: Schema, now: Schema) -> str | None:
    """Return which column has to have values now, and might have none in rows of `then`; None where all have."""
    generated = not_generated(then, now)
    if generated is not None:
        return f"the column {dotted((generated.name,))} is generated now, and was not then"
    parents = {path: field.id for path, field in now.walk()}
    for path, field in now.walk():
        if field.nullable:
            continue
        if not then.has_id(field.id):
            parent = parents.get(path[:-1])
            has_default = field.default is not None and field.default.exists is not None
            if not has_default and (parent is None or then.has_id(parent)):
                return f"the column {dotted(path)} is required now, and did not exist then"
        elif then.field_by_id(field.id).nullable:
            return f"the column {dotted(path)} is NOT NULL now, and was not then"
    return None


def wider_type(then: Schema, now: Schema) -> str | None:
    """Return which column may have values that its present type cannot hold; None where there is none.

    Types only widen, but a rollback restores earlier ones: rows that were written in between have the wider types.
    """
    for path, field in now.walk():
        if isinstance(field.type, AtomicType) and then.has_id(field.id):
            old = then.field_by_id(field.id).type
            if not isinstance(old, AtomicType) or not is_widening(old, field.type):
                return (
                    f"the column {dotted(path)} is of type {field.type} now, and was of the wider type {old}"
                )
    return None
