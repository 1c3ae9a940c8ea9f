"""Rollback: a table gets the contents of an earlier version, as a new version. Later versions are not lost.

The history of a table is a line, so a rollback makes it longer. A rollback restores the whole table: rows,
columns, partitioning, order, properties. Setting the current version restores only the rows, read by the
present columns. Either can also go forward again, to a version that an earlier rollback undid.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.logs.commits import NothingToDo, OperationFacts, Token, check_conflicts, no_files
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.proofs import new_checks
from lakelog.catalog.core.planning.pruning import may_fail
from lakelog.catalog.core.schema.generated import not_generated
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import with_former_schema
from lakelog.catalog.core.schema.schema import (
    Schema,
    dotted,
    equal_keys,
    required_field_without_values,
    returned_field,
)
from lakelog.catalog.core.schema.type_widening import is_widening
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.events import RolledBack, TableEvent, encode
from lakelog.catalog.core.state.refs import check_no_branches
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.file_changes import moved_files
from lakelog.catalog.core.writes.files_since import only_moved
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import InvalidInput, NotFound

_SHARED = ("schema", "constraints", "generation")
"""The parts of the metadata that the rows of branches fit, and would no longer fit if a part were rolled
back."""


def go_back(
    head: TableHead, operation: OperationKind, past_view: LogView[TableState], token: Token | None
) -> TableHead:
    """Make the table (ROLLBACK), or its rows (SET_CURRENT), equal to `past_view`, and return the newest version.

    Raises NotFound if `past_view` expires before the commit, and InvalidInput if its rows do not fit the present
    table.
    """
    version, metadata_then, name = past_view.version, past_view.state.current, head.name

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        metadata_now = view.state.current
        check_conflicts(
            operation, view, passed_commits, OperationFacts(head.version, head.schema, no_files), name
        )
        if view.state.expired > version:
            raise NotFound(f"{name} cannot be rolled back to version {version}: the version has expired")
        metadata = None
        if operation is OperationKind.ROLLBACK:
            metadata = _restored(metadata_now, metadata_then)
            if any(getattr(metadata, part) != getattr(metadata_now, part) for part in _SHARED):
                check_no_branches(view.state.branches, name, "rolled back to other columns")
        files_to_add, files_to_remove = head.at(view).replaced_by(past_view)
        if operation is not OperationKind.ROLLBACK:
            check_fits(metadata_now, metadata_then, files_to_add, version, name)
        if only_moved(passed_commits, head.version):
            # The same rows are replaced as when a transaction made this step, but in other files.
            head.tracked.transaction.note_moved()
        if not files_to_add.num_rows and not files_to_remove.num_rows and metadata in (None, metadata_now):
            raise NothingToDo("nothing to change")
        events: list[TableEvent] = [RolledBack(version=version, metadata=metadata)]
        blobs: tuple[bytes, ...] = ()
        if files_to_add.num_rows or files_to_remove.num_rows:
            event, blobs = moved_files(operation, files_to_add, files_to_remove, metadata or metadata_now)
            events.append(event)
        return Draft(events=encode(events), blobs=blobs)

    return head.commit_or_refresh(decide, token)


def check_fits(metadata: Metadata, past_metadata: Metadata, added: pa.Table, version: int, name: str) -> None:
    """Raise InvalidInput unless the rows of a version fit the present table. `added` are those that are not
    live now."""
    _check_rows_fit(metadata, past_metadata, version, name)
    _check_conditions(added, metadata, past_metadata, version, name)


def _restored(current_metadata: Metadata, past_metadata: Metadata) -> Metadata:
    """Return `past_metadata` as the table's metadata again. Ids that were assigned since are never assigned again."""
    spec_ids = {spec.id for spec in past_metadata.specs}
    schema = msgspec.structs.replace(
        past_metadata.schema, last_id=max(current_metadata.schema.last_id, past_metadata.schema.last_id)
    )
    return msgspec.structs.replace(
        past_metadata,
        schema=schema,
        specs=(
            *(
                with_former_schema(spec, schema, current_metadata.schema)
                for spec in current_metadata.specs
                if spec.id not in spec_ids
            ),
            *past_metadata.specs,
        ),
        own_location=current_metadata.own_location,
        generation=current_metadata.generation
        if current_metadata.generation == past_metadata.generation
        else 0,
    )


def _check_rows_fit(metadata: Metadata, past_metadata: Metadata, version: int, name: str) -> None:
    back = "roll back all of the table with rollback_to_version, or keep its present rows"
    if metadata.generation != past_metadata.generation:
        raise InvalidInput(
            f"{name} was replaced after version {version}, whose rows have none of its present columns: {back}"
        )
    misfit = (
        _missing_value(past_metadata.schema, metadata.schema)
        or wider_type(past_metadata.schema, metadata.schema)
        or _returned_column(past_metadata.schema, metadata.schema)
        or equal_keys(past_metadata.schema, metadata.schema)
    )
    if misfit is not None:
        raise InvalidInput(f"the rows of version {version} do not fit {name} as it is now: {misfit}; {back}")


def _check_conditions(
    added: pa.Table, metadata: Metadata, past_metadata: Metadata, version: int, name: str
) -> None:
    """Raise InvalidInput unless the restored rows are proven to satisfy the CHECKs that were added since."""
    for requirement in new_checks(past_metadata, metadata):
        if pc.any(may_fail(added, requirement.condition, metadata.specs), min_count=0).as_py():
            raise InvalidInput(
                f"rows of version {version} may violate {requirement.words}, which {name} did not have then: drop that "
                "constraint, or roll back all of the table with rollback_to_version"
            )


def _missing_value(past_schema: Schema, schema: Schema) -> str | None:
    """Return the column that must have values now, but may lack some in rows of `past_schema`. Returns None if there
    is none."""
    generated_field = not_generated(past_schema, schema)
    if generated_field is not None:
        return f"the column {dotted((generated_field.name,))} is generated now, and was not then"
    required_path = required_field_without_values(past_schema, schema)
    if required_path is not None:
        return f"the column {dotted(required_path)} is required now, and did not exist then"
    for path, field in schema.walk():
        if not field.nullable and past_schema.has_id(field.id) and past_schema.field_by_id(field.id).nullable:
            return f"the column {dotted(path)} is NOT NULL now, and was not then"
    return None


def _returned_column(past_schema: Schema, schema: Schema) -> str | None:
    """Return a column that had been dropped in `past_schema`. A rollback has brought it back since. None without one.

    Some files of the past version may have its values. They may be of another type, if it had widened before. Files
    that were written without the column have none. So the values would depend on maintenance.
    """
    path = returned_field(past_schema, schema)
    if path is None:
        return None
    return (
        f"the column {dotted(path)} had been dropped then, so they have no values of it, or lost them since"
    )


def wider_type(past_schema: Schema, schema: Schema) -> str | None:
    """Return the column that may have values too wide for its present type, or None.

    Types only widen, but a rollback restores earlier types. Rows that were written in between have the wider
    types.
    """
    for path, field in schema.walk():
        if isinstance(field.type, AtomicType) and past_schema.has_id(field.id):
            old = past_schema.field_by_id(field.id).type
            if not isinstance(old, AtomicType) or not is_widening(old, field.type):
                return (
                    f"the column {dotted(path)} is of type {field.type} now, and was of the wider type {old}"
                )
    return None
