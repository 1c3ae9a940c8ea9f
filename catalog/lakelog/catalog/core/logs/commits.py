"""The common parts of commits to a table: tokens, events of changed files, and conflict checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, assert_never

import msgspec

from lakelog.catalog.core.files.data_file import (
    DataFile,
    RemovedFile,
    encode_files,
    encode_removed,
    removed_file,
)
from lakelog.catalog.core.files.kept_statistics import with_kept_statistics
from lakelog.catalog.core.logs.cache import JointLogChange, LogCache
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.generated import not_generated
from lakelog.catalog.core.schema.identity import ValuesTaken, identity_fields, is_beyond
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.schema import (
    Schema,
    dotted,
    equal_keys,
    required_field_without_values,
    returned_field,
)
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.catalog.core.state.conflicts import ChangeKind, ConflictRule, OperationKind, changes, rule
from lakelog.catalog.core.state.decoded_events import says_only, table_events
from lakelog.catalog.core.state.events import FilesChanged, IdentityTaken, RowsAppended
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.state.writer import author_of
from lakelog.catalog.errors import CommitConflict, NoSuchTable, ValuesGone
from lakelog.catalog.next_step import start_over
from lakelog.log import Commit, Draft, LogView
from lakelog.log.changes import is_same_commit
from lakelog.log.errors import CommitUnknown, FormatError, LakelogError, LogSealed, NotFound, StorageError
from lakelog.log.format import PROPOSALS

SIDECAR_FROM_BYTES = 64 * 1024
SIDECAR_FROM_FILES = 200


class NothingToDo(LakelogError):
    """Ends a commit that would change nothing.

    No user sees it, because the caller of the commit catches it.
    """

    kind = "nothing-to-do"


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Makes a retry the same request as the first attempt.

    It has the commit id, and each log's version at the first attempt. A client that may have to retry (after
    a crash of its own, or of the process that answers) gets a token first.
    """

    commit_id: str
    bases: dict[str, int]

    def base(self, tracked: TrackedLog[Any]) -> int:
        """Return the version that the first attempt knew; 0 for a log that did not exist then."""
        return self.bases.get(tracked.location, 0)


ready(Token)


def new_token(cache: LogCache, logs: Sequence[TrackedLog[Any]]) -> Token:
    """Return a token over those of `logs` whose version is known."""
    bases = {
        tracked_log.location: tracked_log.known.version
        for tracked_log in logs
        if tracked_log.known is not None
    }
    return Token(commit_id=cache.new_id(), bases=bases)


def base_of(token: Token | None, tracked: TrackedLog[Any]) -> int | None:
    """Return the version that the first attempt knew; None if no earlier attempt is known."""
    return token.base(tracked) if token is not None and tracked.location in token.bases else None


def base_past_seals(token: Token | None, tracked: TrackedLog[Any], view: LogView[Any]) -> int | None:
    """Return `base_of`, or the version of the last seal since then.

    The seal counts if the request is not in a later commit. A token has the versions that its client knew,
    which can be older than a drop and its undrop. Unlike a write of rows, a drop or restore does not build on
    the earlier state. Costs nothing if nothing happened since.
    """
    base = base_of(token, tracked)
    if token is None or base is None or base >= view.version:
        return base
    seal = base
    for commit in tracked.log.commits(first=base + 1, last=view.version, newest_first=True):
        if is_same_commit(commit, token.commit_id):
            return base
        if commit.seals:
            seal = max(seal, commit.version)
    return seal


def commit_changes(logs: LogCache, changes: Sequence[JointLogChange[Any]], token: Token | None) -> None:
    """Commit all changes, each to a log of its own, or none of them. A single change is a plain commit."""
    commit_id = token.commit_id if token is not None else None
    # The first attempt may have known a later version than the view that this process has known since before.
    changes = [
        replace(change, view=change.tracked.current())
        if change.base is not None and change.base > change.view.version
        else change
        for change in changes
    ]
    if len(changes) == 1:
        only = changes[0]
        only.tracked.commit(only.view, only.decide, commit_id=commit_id, base=only.base)
    else:
        logs.commit_together(changes, commit_id=commit_id)


def was_applied(tracked: TrackedLog[Any], token: Token | None) -> bool:
    """Return whether the request of `token` has been committed in this log already.

    Costs a GET if nothing was.
    """
    if token is None:
        return False
    try:
        head = tracked.current().version
    except NotFound:
        return False
    return tracked.find(token.commit_id, token.base(tracked) + 1, head) is not None


def was_applied_elsewhere(cache: LogCache, tracked: TrackedLog[Any], token: Token | None) -> bool:
    """Return whether the request of `token` was applied to the log that its name led to at first.

    The name now leads to `tracked`. A log that is not in the token was put at that name since the first
    attempt. The retry must not change it if a log that is in the token has the commit.
    """
    if token is None or tracked.location in token.bases:
        return False
    return was_applied_anywhere(cache, token)


def was_applied_anywhere(cache: LogCache, token: Token | None) -> bool:
    """Return whether the request of `token` was committed in any of its logs, wherever names lead now."""
    if cache.is_a_cut:
        return False  # a transaction is retried only as a whole
    locations = token.bases if token is not None else ()
    return any(was_applied(cache.unread(location), token) for location in locations)


def or_applied(cache: LogCache, token: Token | None, work: Callable[[], None]) -> None:
    """Do `work`, or nothing if a name leads nowhere and the request of `token` was applied before.

    The names of a request may be gone when it is retried, by a later change. Raises the error of `work`
    otherwise.
    """
    try:
        work()
    except NotFound:
        if not was_applied_anywhere(cache, token):
            raise


def is_final(tracked: TrackedLog[Any], token: Token | None, refusal: LakelogError) -> bool:
    """Return whether the request of `token` can fail with `refusal`, which was decided without this log.

    False if the request has been committed in the log. An earlier attempt may have proposed it to other
    clients, and a later state of the log may allow it although this state does not. So the log refuses it
    first. A refusal by the commit itself needs none of this. Costs a GET if the log has no proposals,
    otherwise a version. Raises CommitUnknown or StorageError.
    """
    if token is None or tracked.transaction.is_open:
        return True
    if was_applied(tracked, token):
        return False
    known_view = tracked.known
    if known_view is None or known_view.sealed or PROPOSALS not in known_view.writer_features:
        return True

    def refuse(view: LogView[Any], passed_commits: Sequence[Commit]) -> Draft:
        raise refusal

    raised_at = refusal.__traceback__
    try:
        tracked.commit(known_view, refuse, commit_id=token.commit_id, base=token.base(tracked), shared=True)
    except (CommitUnknown, StorageError):
        raise
    except LakelogError as error:
        if isinstance(error, FormatError) and error is not refusal:
            raise  # nothing was put, because this process cannot read the versions that follow
        return (
            True  # the log has this refusal now, or an earlier refusal, or a commit that ends all proposals
        )
    finally:
        refusal.__traceback__ = raised_at
    return False


@contextmanager
def gone_as_no_such_table(name: str) -> Iterator[None]:
    """Inside, a log that turns out to be sealed means that the table was dropped."""
    try:
        yield
    except LogSealed as error:
        raise NoSuchTable(f"there is no table {name}: it was dropped") from error


def files_event(
    operation: OperationKind,
    added: Sequence[DataFile],
    removed: Sequence[RemovedFile],
    metadata: Metadata,
    filter_text: str | None = None,
    changed: Sequence[tuple[DataFile, DataFile]] = (),
) -> tuple[FilesChanged, tuple[bytes, ...]]:
    """Return the event that adds and removes these files, and its sidecars if there are many files.

    `changed` files get another vector of deleted rows; each is given before and after the change.
    """
    blobs: list[bytes] = []
    added_sidecar = removed_sidecar = None
    new_entries = with_kept_statistics([*added, *(new_file for _, new_file in changed)], metadata)
    old_entries = [*removed, *(removed_file(old_file) for old_file, _ in changed)]
    if _is_bulk(new_entries):
        added_sidecar = len(blobs)
        blobs.append(encode_files(new_entries, metadata.schema, metadata.specs))
    if _is_bulk(old_entries):
        removed_sidecar = len(blobs)
        blobs.append(encode_removed(old_entries))
    event = FilesChanged(
        operation=operation.word,
        added=() if added_sidecar is not None else tuple(new_entries),
        removed=() if removed_sidecar is not None else tuple(old_entries),
        added_sidecar=added_sidecar,
        removed_sidecar=removed_sidecar,
        added_files=len(added),
        added_rows=sum(file.rows for file in added),
        added_bytes=sum(file.size_bytes for file in added),
        removed_files=len(removed),
        removed_rows=sum(file.rows for file in removed),
        removed_bytes=sum(file.size_bytes for file in removed),
        filter=filter_text,
        changed_files=len(changed),
        deleted_rows=sum(old_file.rows - new_file.rows for old_file, new_file in changed),
    )
    return event, tuple(blobs)


def _is_bulk(files: Sequence[DataFile] | Sequence[RemovedFile]) -> bool:
    if len(files) <= 1:
        return False
    return len(files) > SIDECAR_FROM_FILES or len(msgspec.json.encode(files)) > SIDECAR_FROM_BYTES


def no_rows(change: ChangeKind) -> str | None:
    """Raise an error: `OperationFacts.touched` of operations for which the matrix never checks rows."""
    raise AssertionError(f"the matrix checks no rows where another commit {change.value}")


@dataclass(frozen=True, slots=True)
class OperationFacts:
    """The facts of an operation that rules of the matrix check: its base, and the rows that it replaces.

    `replaced` returns whether any of the files (in the form of `FileSet.chunks`) that were added or removed
    since the base may hold rows that the operation replaces. Its argument says whether they were added or
    removed. `touched` returns, for an operation on rows, why it cannot be rebased over files that were added
    or removed; None if it can.

    `schema` is the schema of the files that the operation wrote, None if it wrote none. `values` are the
    values of identity columns that it took.
    """

    version: int
    schema: Schema | None
    replaced: Callable[[ChangeKind], bool]
    touched: Callable[[ChangeKind], str | None] = no_rows
    values: Sequence[ValuesTaken] = ()


def no_files(change: ChangeKind) -> bool:
    """Raise an error: `OperationFacts.replaced` of operations for which the matrix never checks files."""
    raise AssertionError(f"the matrix checks no files where another commit {change.value}")


def check_conflicts(
    operation: OperationKind,
    view: LogView[TableState],
    passed_commits: Sequence[Commit],
    operation_facts: OperationFacts,
    name: str,
) -> None:
    """Check `operation` against all commits since its base.

    Raises CommitConflict, which names the other commit and its author.
    """
    for commit in passed_commits:
        if commit.version > operation_facts.version and not says_only(commit, RowsAppended):
            for event in table_events(commit):
                for change in changes(event):
                    _check(rule(operation, change), operation, change, commit, view, operation_facts, name)


def _check(
    verdict: ConflictRule,
    operation: OperationKind,
    change: ChangeKind,
    commit: Commit,
    view: LogView[TableState],
    operation_facts: OperationFacts,
    name: str,
) -> None:
    match verdict:
        case ConflictRule.REBASE | ConflictRule.REEVALUATE:
            return
        case ConflictRule.CHECK_SCHEMA:
            schema = view.state.current.schema
            copies = operation is not OperationKind.APPEND
            base = operation_facts.schema
            misfit = None if base is None else _misfit(base, schema, copies_rows=copies)
            if misfit is not None:
                raise conflict(operation, change, commit, name, misfit)
        case ConflictRule.CHECK_FILES:
            if operation_facts.replaced(change):
                raise conflict(operation, change, commit, name, "with rows that this operation may replace")
        case ConflictRule.CHECK_ROWS:
            why = operation_facts.touched(change)
            if why is not None:
                raise conflict(operation, change, commit, name, why)
        case ConflictRule.CHECK_VALUES:
            taken_text = _gone(view.state, operation_facts.values)
            if taken_text is not None:
                raise ValuesGone(
                    str(conflict(operation, change, commit, name, taken_text)),
                    version=commit.version,
                    is_for_good=_is_for_good(operation_facts.values),
                )
        case ConflictRule.FAIL:
            raise conflict(operation, change, commit, name, None)
        case ConflictRule.GONE:
            raise NoSuchTable(f"there is no table {name}: it was dropped in version {commit.version}")
        case _:
            assert_never(verdict)


def taken_events(view: LogView[TableState], values: Sequence[ValuesTaken], name: str) -> list[IdentityTaken]:
    """Return the events that record which values a commit to `view` takes.

    Values of a column that was dropped since are not recorded. Raises ValuesGone if any value is taken
    already.
    """
    identity_ids = {field.id for field, _ in identity_fields(view.state.current.schema)}
    live = [value for value in values if value.column in identity_ids]
    taken_text = _gone(view.state, live)
    if taken_text is not None:
        raise ValuesGone(
            f"the write to {name} cannot be committed: {taken_text}. Nothing was changed: {start_over()}",
            version=view.version,
            is_for_good=_is_for_good(values),
        )
    return [IdentityTaken(column=value.column, first=value.first, last=value.last) for value in live]


def _is_for_good(values: Sequence[ValuesTaken]) -> bool:
    """Return whether rows with these values cannot get other values instead.

    See `identity_values.with_values`.
    """
    return any(value.given for value in values)


def _gone(state: TableState, values: Sequence[ValuesTaken]) -> str | None:
    """Return which of these values were taken before, None if they are all beyond the taken values."""
    identities = {
        field.id: (field.name, identity) for field, identity in identity_fields(state.current.schema)
    }
    for value in values:
        if value.column in identities:
            name, identity = identities[value.column]
            last = state.identities.get(value.column)
            if not is_beyond(identity, value.first, last):
                return f"it has values of {name} from {value.first} on, but those up to {last} are taken"
    return None


def conflict(
    operation: OperationKind, change: ChangeKind, commit: Commit, name: str, why: str | None
) -> CommitConflict:
    author = author_of(commit)
    reason = f" ({why})" if why else ""
    if not commit.commit_id:
        return CommitConflict(
            f"the {operation.word} of {name} conflicts with an earlier change in the same transaction, which "
            f"{change.value}{reason}: it was prepared before that change. Load the table again in the transaction",
            version=commit.version,
        )
    return CommitConflict(
        f"the {operation.word} of {name} conflicts with version {commit.version}, which {change.value}{reason}; "
        f"commit {commit.commit_id} by {author or 'an unknown writer'}. Nothing was changed: {start_over()}",
        version=commit.version,
        by=author,
    )


def _misfit(base: Schema, current: Schema, *, copies_rows: bool) -> str | None:
    """Return why files written with the schema `base` do not fit `current`, or None if they do.

    With `copies_rows`, they may have rows of older files. A rollback gave these a dropped column again.
    """
    returned_path = returned_field(base, current) if copies_rows else None
    if returned_path is not None:
        return f"the column {dotted(returned_path)} is there again, and the files lack its values"
    old_fields = {field.id: field for _, field in base.walk()}
    for path, field in current.walk():
        old_field = old_fields.get(field.id, field)
        if isinstance(old_field.type, AtomicType) and old_field.type != field.type:
            # Bounds and partition values are read by the type of their commit: days would be read as
            # microseconds.
            return f"the column {dotted(path)} is a {field.type} now, and was a {old_field.type}"
        if old_field.nullable and not field.nullable:
            return f"the column {dotted(path)} is NOT NULL now"
    generated_field = not_generated(base, current)
    if generated_field is not None:
        return f"the column {generated_field.name} is generated now, and the files do not have its values"
    required_path = required_field_without_values(base, current)
    if required_path is not None:
        return f"the column {dotted(required_path)} is required now, and the files do not have it"
    return equal_keys(base, current)
