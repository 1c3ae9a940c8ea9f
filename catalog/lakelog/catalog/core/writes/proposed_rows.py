"""Appends of a few rows each by many processes: if others keep winning, rows are proposed instead of files.

The combining process writes everyone's rows as a single file for each partition, so that a version of a
thousand appends adds few files. It checks each append against the table's constraints, and gives values of
identity columns. It leaves out rows that do not fit, and their author finds the reason on its own. As between
threads (`joint_appends`), each append has its id, author and outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.logs.changed import TableCommit
from lakelog.catalog.core.logs.commits import (
    Token,
    files_event,
    gone_as_no_such_table,
    is_final,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.ingest import RowChecks, rows_written_in
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.parquet.row_bytes import decoded_all, encoded_rows
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.events import IdentityTaken, RowsAppended, TableEvent, encode
from lakelog.catalog.core.state.row_counts import RowCounts
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.identity_values import known_taken
from lakelog.log import Commit, Draft, GatheredChanges, LogOptions, LogView, WriteRef
from lakelog.log.errors import CommitUnknown, FormatError, LakelogError, StorageError
from lakelog.log.rounds.waiting import unknown
from lakelog.log.stores import ObjectStore

ROWS_PROPOSED_MAX = 256 * 1024
"""Bytes of an append whose rows are proposed."""


class _TableChanged(Exception):
    """The rows must be encoded again for the changed table. This is no conflict, and no client sees it."""


def append_proposed(
    head: TableHead, rows: pa.Table, given_token: Token | None, by_itself: Callable[[Token | None], TableHead]
) -> TableHead:
    """Append rows by a proposal, under the `given_token` token, if any. Return the newest version.

    `by_itself` appends them without a proposal, also as a retry after a proposal. Raises the errors of an
    append.
    """
    if was_applied_elsewhere(head.logs, head.tracked, given_token):
        return head.refreshed()
    base = head.newest_known()
    schema, log = base.schema, base.tracked
    # Errors in the rows are found before anything is proposed. The values of identity columns are only
    # provisional.
    checks = RowChecks(base.metadata, IdentityNumbering(schema, known_taken(base)))
    data = encoded_rows(checks.proposed(rows))
    if len(data) > ROWS_PROPOSED_MAX:
        return by_itself(given_token)
    token = given_token or Token(commit_id=log.log.options.new_id(), bases={log.location: base.version})

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        base.check_name(view)
        if view.state.current.schema != schema or view.state.current.generation != base.metadata.generation:
            raise _TableChanged
        return Draft(rows=data)

    since = min(base.version, token.base(log))
    with gone_as_no_such_table(base.name):
        proposal_result = log.log.propose(
            base.view, decide, commit_id=token.commit_id, base=since, retried=given_token is not None
        )
    if proposal_result is not None:
        log.offer_committed(proposal_result.view)
        return head.after(
            TableCommit(proposal_result.view, proposal_result.version, RowCounts(inserted=rows.num_rows))
        )
    try:
        return by_itself(token)
    except CommitUnknown:
        raise
    except (StorageError, FormatError) as error:
        # This try had no outcome, for example because this client could not read later versions. The rows may
        # still be in a version.
        raise unknown(token.commit_id, log.log.location, str(error)) from error
    except LakelogError as error:
        if is_final(log, token, error):
            raise
        return head.refreshed()


def gathered_rows(
    store: ObjectStore,
    prefix: str,
    options: LogOptions,
    view: LogView[TableState],
    rows: Sequence[bytes],
) -> GatheredChanges[TableState] | None:
    """Write the rows of several appends, in this order, as files of the table at `store` and `prefix`.

    Returns None if the table has columns or constraints whose values are not known here. Raises StorageError.
    """
    metadata, identities = view.state.current, view.state.identities
    try:
        tables = list(decoded_all(rows, metadata.schema))
        checked_rows = _checked_at_once(metadata, identities, tables) or _checked_each(
            metadata, identities, tables
        )
    except LakelogError:
        return None
    identity_numbers, parts, counts = checked_rows
    events = [None if count is None else encode([RowsAppended(rows=count)]) for count in counts]
    write = WriteRef(id=options.new_id(), version=view.version)
    files = rows_written_in(store, prefix, options, metadata, write, parts) if parts else []

    def again(view: LogView[TableState]) -> Draft | None:
        state = view.state
        if view.fence > write.version or state.current != metadata or state.identities != identities:
            return None
        event, blobs = files_event(OperationKind.APPEND, with_ids(files, state.next_row), (), metadata)
        identity_events: list[TableEvent] = [
            IdentityTaken(column=entry.column, first=entry.first, last=entry.last)
            for entry in identity_numbers.taken()
        ]
        append_event = msgspec.structs.replace(event, of_changes=len(counts) - counts.count(None))
        return Draft(events=encode([*identity_events, append_event]), blobs=blobs, write=write)

    def discard() -> None:
        with suppress(StorageError):  # then vacuum finds them
            if files:
                store.delete([f"{prefix}/{file.path}" if prefix else file.path for file in files])

    draft = again(view)
    assert draft is not None
    return GatheredChanges(events, draft, again, discard)


_Checked: TypeAlias = tuple[IdentityNumbering, list[pa.Table], list[int | None]]
"""Rows ready to be written, and each append's row count. The count is None if its rows do not fit."""


def _checked_at_once(
    metadata: Metadata, identities: Mapping[int, int], given_table: Sequence[pa.Table | None]
) -> _Checked | None:
    """Return the rows of all appends, far faster than one by one. Returns None if some do not fit."""
    identity_numbers = IdentityNumbering(metadata.schema, identities)
    checks = RowChecks(metadata, identity_numbers)
    if not given_table or any(table is None for table in given_table):
        return None
    try:
        rows = checks.new(pa.concat_tables(given_table).combine_chunks())
    except Exception:
        return None  # the append with the error is found one by one
    return identity_numbers, [rows], [table.num_rows for table in given_table if table is not None]


def _checked_each(
    metadata: Metadata, identities: Mapping[int, int], given_table: Sequence[pa.Table | None]
) -> _Checked:
    identity_numbers = IdentityNumbering(metadata.schema, identities)
    checks = RowChecks(metadata, identity_numbers)
    parts: list[pa.Table] = []
    counts: list[int | None] = []
    for table in given_table:
        try:
            part = None if table is None else checks.new(table)
        except Exception:
            part = None  # any client can have written them
        counts.append(None if part is None else part.num_rows)
        if part is not None:
            parts.append(part)
    return identity_numbers, parts, counts
