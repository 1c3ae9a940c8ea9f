"""Appends of a few rows each by many processes: where others keep winning, rows are proposed in place of files.

Who combines writes the rows of all as one file for each partition, so that a version of a thousand appends adds few.
It holds each against the table's constraints, gives values of identity columns, and leaves alone what does not fit:
its author finds out why by itself. As between threads (`joint_appends`), each append has its id, author and outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import with_ids
from lakelog.catalog.core.logs import (
    Changed,
    TableHead,
    Token,
    files_event,
    gone_as_no_such_table,
    is_final,
    was_applied_elsewhere,
)
from lakelog.catalog.core.parquet import Numbering, RowChecks, decoded_all, encoded_rows, rows_written_in
from lakelog.catalog.core.schema import Metadata
from lakelog.catalog.core.state import (
    IdentityTaken,
    Operation,
    RowCounts,
    RowsAppended,
    TableEvent,
    TableState,
    encode,
)
from lakelog.catalog.core.writes.identity_values import known_taken
from lakelog.log import Commit, Draft, Gathered, LogOptions, View, WriteRef
from lakelog.log.errors import CommitUnknown, FormatError, LakelogError, StorageError
from lakelog.log.proposals.waiting import unknown
from lakelog.log.stores import ObjectStore

ROWS_PROPOSED_MAX = 256 * 1024
"""Bytes of an append whose rows are proposed."""


class _TableChanged(Exception):
    """The rows are to be shaped anew for what the table is now: no conflict, and no client learns of it."""


def append_proposed(
    head: TableHead, rows: pa.Table, given: Token | None, by_itself: Callable[[Token | None], TableHead]
) -> TableHead:
    """Append rows by a proposal, under the `given` token, if any; return the newest version. `by_itself` appends them
    without one, also as a retry of what may have been proposed. Raises as an append does."""
    if was_applied_elsewhere(head.logs, head.tracked, given):
        return head.refreshed()
    base = head.newest_known()
    schema, tracked = base.schema, base.tracked
    # What is wrong with them is found before anything is proposed. The values of identity columns are not these.
    checks = RowChecks(base.metadata, Numbering(schema, known_taken(base)))
    data = encoded_rows(checks.proposed(rows))
    if len(data) > ROWS_PROPOSED_MAX:
        return by_itself(given)
    token = given or Token(commit_id=tracked.log.options.new_id(), bases={tracked.location: base.version})

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        base.check_name(view)
        if view.state.current.schema != schema or view.state.current.generation != base.metadata.generation:
            raise _TableChanged
        return Draft(rows=data)

    since = min(base.version, token.base(tracked))
    with gone_as_no_such_table(base.name):
        done = tracked.log.propose(
            base.view, decide, commit_id=token.commit_id, base=since, retried=given is not None
        )
    if done is not None:
        tracked.offer_committed(done.view)
        return head.after(Changed(done.view, done.version, RowCounts(inserted=rows.num_rows)))
    try:
        return by_itself(token)
    except CommitUnknown:
        raise
    except (StorageError, FormatError) as error:
        # Nothing came of this try: this client could not read what follows, for one. The rows may be in a version yet.
        raise unknown(token.commit_id, tracked.log.location, str(error)) from error
    except LakelogError as error:
        if is_final(tracked, token, error):
            raise
        return head.refreshed()


def gathered_rows(
    store: ObjectStore,
    prefix: str,
    options: LogOptions,
    view: View[TableState],
    rows: Sequence[bytes],
) -> Gathered[TableState] | None:
    """Write the rows of several appends, in this order, as files of the table at `store` and `prefix`.

    None where the table has columns or constraints whose values are not known here. Raises StorageError.
    """
    metadata, identities = view.state.current, view.state.identities
    try:
        given = list(decoded_all(rows, metadata.schema))
        found = _checked_at_once(metadata, identities, given) or _checked_each(metadata, identities, given)
    except LakelogError:
        return None
    numbering, parts, counts = found
    events = [None if count is None else encode([RowsAppended(rows=count)]) for count in counts]
    write = WriteRef(id=options.new_id(), version=view.version)
    files = rows_written_in(store, prefix, options, metadata, write, parts) if parts else []

    def again(now: View[TableState]) -> Draft | None:
        state = now.state
        if now.fence > write.version or state.current != metadata or state.identities != identities:
            return None
        event, blobs = files_event(Operation.APPEND, with_ids(files, state.next_row), (), metadata)
        taken: list[TableEvent] = [
            IdentityTaken(column=each.column, first=each.first, last=each.last) for each in numbering.taken()
        ]
        changed = msgspec.structs.replace(event, of_changes=len(counts) - counts.count(None))
        return Draft(events=encode([*taken, changed]), blobs=blobs, write=write)

    def discard() -> None:
        with suppress(StorageError):  # then vacuum finds them
            if files:
                store.delete([f"{prefix}/{file.path}" if prefix else file.path for file in files])

    draft = again(view)
    assert draft is not None
    return Gathered(events, draft, again, discard)


_Checked: TypeAlias = tuple[Numbering, list[pa.Table], list[int | None]]
"""Rows as they are to be written, and how many each append has; None for one whose rows do not fit."""


def _checked_at_once(
    metadata: Metadata, identities: Mapping[int, int], given: Sequence[pa.Table | None]
) -> _Checked | None:
    """Return the rows of all, in a fraction of the time that they take one by one; None where some do not fit."""
    numbering = Numbering(metadata.schema, identities)
    checks = RowChecks(metadata, numbering)
    if not given or any(each is None for each in given):
        return None
    try:
        rows = checks.new(pa.concat_tables(given).combine_chunks())
    except Exception:
        return None  # whose these are is found one by one
    return numbering, [rows], [each.num_rows for each in given if each is not None]


def _checked_each(
    metadata: Metadata, identities: Mapping[int, int], given: Sequence[pa.Table | None]
) -> _Checked:
    numbering = Numbering(metadata.schema, identities)
    checks = RowChecks(metadata, numbering)
    parts: list[pa.Table] = []
    counts: list[int | None] = []
    for each in given:
        try:
            part = None if each is None else checks.new(each)
        except Exception:
            part = None  # any client can have written them
        counts.append(None if part is None else part.num_rows)
        if part is not None:
            parts.append(part)
    return numbering, parts, counts
