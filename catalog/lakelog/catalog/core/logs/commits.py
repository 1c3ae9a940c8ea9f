"""The common parts of commits to a table: tokens, events of changed files, and checks by the conflict matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, assert_never

import msgspec

from lakelog.catalog.core.files import (
    DataFile,
    RemovedFile,
    encode_files,
    encode_removed,
    removed_file,
    with_kept_statistics,
)
from lakelog.catalog.core.logs.cache import LogCache, LogChange
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema import (
    AtomicType,
    Metadata,
    Schema,
    ValuesTaken,
    dotted,
    identity_fields,
    is_beyond,
    not_generated,
    ready,
)
from lakelog.catalog.core.state import (
    ChangeKind,
    FilesChanged,
    IdentityTaken,
    Operation,
    RowsAppended,
    Rule,
    TableState,
    author_of,
    changes,
    rule,
    says_only,
    table_events,
)
from lakelog.catalog.errors import CommitConflict, NoSuchTable, ValuesGone
from lakelog.log import Commit, Draft, View
from lakelog.log.changes import is_same_commit
from lakelog.log.errors import CommitUnknown, FormatError, LakelogError, LogSealed, NotFound, StorageError
from lakelog.log.format import PROPOSALS

SIDECAR_FROM_BYTES = 64 * 1024
SIDECAR_FROM_FILES = 200


class NothingToDo(LakelogError):
    """Ends a commit that would change nothing. No user sees it: the caller of the commit catches it."""

    kind = "nothing-to-do"


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Makes a retry the same request as the first try: the commit id, and each log's version at the first try.

    A client that may have to retry (after a crash of its own, or of the process that answers) gets a token first.
    """

    commit_id: str
    bases: dict[str, int]

    def base(self, tracked: TrackedLog[Any]) -> int:
        """Return the version that the first try knew; 0 for a log that did not exist then."""
        return self.bases.get(tracked.location, 0)


ready(Token)


def new_token(cache: LogCache, logs: Sequence[TrackedLog[Any]]) -> Token:
    """Return a token over those of `logs` whose version is known."""
    bases = {tracked.location: tracked.known.version for tracked in logs if tracked.known is not None}
    return Token(commit_id=cache.new_id(), bases=bases)


def base_of(token: Token | None, tracked: TrackedLog[Any]) -> int | None:
    """Return the version that the first try knew; None where no earlier try is known."""
    return token.base(tracked) if token is not None and tracked.location in token.bases else None


def base_past_seals(token: Token | None, tracked: TrackedLog[Any], view: View[Any]) -> int | None:
    """As `base_of`; where others sealed the log since, and the request is not in a later commit, that seal's version.

    A token has the versions that its client knew, which can be older than a drop and its undrop. Unlike a write of
    rows, a drop or restore does not build on what was there before. Costs nothing where nothing happened since.
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


def commit_changes(logs: LogCache, changes: Sequence[LogChange[Any]], token: Token | None) -> None:
    """Commit all changes, each to a log of its own, or none of them; a single one as a plain commit."""
    commit_id = token.commit_id if token is not None else None
    if len(changes) == 1:
        only = changes[0]
        only.tracked.commit(only.view, only.decide, commit_id=commit_id, base=only.base)
    else:
        logs.commit_together(changes, commit_id=commit_id)


def was_applied(tracked: TrackedLog[Any], token: Token | None) -> bool:
    """Return whether the request of `token` has been committed in this log already. Costs 1 GET if nothing was."""
    if token is None:
        return False
    try:
        head = tracked.current().version
    except NotFound:
        return False
    return tracked.find(token.commit_id, token.base(tracked) + 1, head) is not None


def was_applied_elsewhere(cache: LogCache, tracked: TrackedLog[Any], token: Token | None) -> bool:
    """Return whether the request of `token`, which now leads to `tracked`, was applied to the log it led to at first.

    A log that is not in the token was put at that name since the first try, and must not be changed by the retry when a
    log that is in the token has the commit.
    """
    if token is None or tracked.location in token.bases:
        return False
    return was_applied_anywhere(cache, token)


def was_applied_anywhere(cache: LogCache, token: Token | None) -> bool:
    """Return whether the request of `token` has been committed in any of its logs, wherever names lead now."""
    if cache.is_a_cut:
        return False  # a transaction is retried only as a whole
    locations = token.bases if token is not None else ()
    return any(was_applied(cache.unread(location), token) for location in locations)


def is_final(tracked: TrackedLog[Any], token: Token | None, refusal: LakelogError) -> bool:
    """Return whether the request of `token` can fail with `refusal`, which this log was not asked about; False where it
    has been committed in it.

    An earlier try may have proposed it to other clients, and a later state of the log may allow what this one does not:
    so the log refuses it first. What is decided by a commit itself needs none of this. Costs 1 GET where the log has
    no proposals; else a version. Raises CommitUnknown, StorageError.
    """
    if token is None or tracked.transaction.is_open:
        return True
    if was_applied(tracked, token):
        return False
    known = tracked.known
    if known is None or known.sealed or PROPOSALS not in known.features:
        return True

    def refuse(view: View[Any], passed: Sequence[Commit]) -> Draft:
        raise refusal

    raised_at = refusal.__traceback__
    try:
        tracked.commit(known, refuse, commit_id=token.commit_id, base=token.base(tracked), shared=True)
    except (CommitUnknown, StorageError):
        raise
    except LakelogError as error:
        if isinstance(error, FormatError) and error is not refusal:
            raise  # nothing was put: what follows cannot be read here
        return True  # the log has this refusal now, or an earlier one, or what ends all proposals
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
    operation: Operation,
    added: Sequence[DataFile],
    removed: Sequence[RemovedFile],
    metadata: Metadata,
    filter_text: str | None = None,
    changed: Sequence[tuple[DataFile, DataFile]] = (),
) -> tuple[FilesChanged, tuple[bytes, ...]]:
    """Return the event that adds and removes these files, and the sidecars that it refers to (for many files).

    `changed` files get another vector of deleted rows; each is given before and after the change.
    """
    blobs: list[bytes] = []
    added_sidecar = removed_sidecar = None
    coming = with_kept_statistics([*added, *(after for _, after in changed)], metadata)
    going = [*removed, *(removed_file(before) for before, _ in changed)]
    if _is_bulk(coming):
        added_sidecar = len(blobs)
        blobs.append(encode_files(coming, metadata.schema, metadata.specs))
    if _is_bulk(going):
        removed_sidecar = len(blobs)
        blobs.append(encode_removed(going))
    event = FilesChanged(
        operation=operation.word,
        added=() if added_sidecar is not None else tuple(coming),
        removed=() if removed_sidecar is not None else tuple(going),
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
        deleted_rows=sum(before.rows - after.rows for before, after in changed),
    )
    return event, tuple(blobs)


def _is_bulk(files: Sequence[DataFile] | Sequence[RemovedFile]) -> bool:
    if len(files) <= 1:
        return False
    return len(files) > SIDECAR_FROM_FILES or len(msgspec.json.encode(files)) > SIDECAR_FROM_BYTES


def no_rows(change: ChangeKind) -> str | None:
    """`Written.touched` of operations for which the matrix never checks rows."""
    raise AssertionError(f"the matrix checks no rows where another commit {change.value}")


@dataclass(frozen=True, slots=True)
class Written:
    """The facts of an operation that rules of the matrix check: its base, and what it replaces.

    `replaced` returns whether any of the files (in the form of `FileSet.chunks`) that were added or removed since the
    base may hold rows that the operation replaces; the argument is which of the two. `touched` returns, for an
    operation on rows, why it cannot be rebased over files that were added or removed; None where it can. `schema` is
    that of the files that it wrote, None where it wrote none. `values` are those that it took of identity columns.
    """

    version: int
    schema: Schema | None
    replaced: Callable[[ChangeKind], bool]
    touched: Callable[[ChangeKind], str | None] = no_rows
    values: Sequence[ValuesTaken] = ()


def no_files(change: ChangeKind) -> bool:
    """`Written.replaced` of operations for which the matrix never checks files."""
    raise AssertionError(f"the matrix checks no files where another commit {change.value}")


def check_conflicts(
    operation: Operation, view: View[TableState], passed: Sequence[Commit], written: Written, name: str
) -> None:
    """Check `operation` against all commits since its base. CommitConflict names the other commit and its author."""
    for commit in passed:
        if commit.version > written.version and not says_only(commit, RowsAppended):
            for event in table_events(commit):
                for change in changes(event):
                    _check(rule(operation, change), operation, change, commit, view, written, name)


def _check(
    verdict: Rule,
    operation: Operation,
    change: ChangeKind,
    commit: Commit,
    view: View[TableState],
    written: Written,
    name: str,
) -> None:
    match verdict:
        case Rule.REBASE | Rule.REEVALUATE:
            return
        case Rule.CHECK_SCHEMA:
            schema = view.state.current.schema
            misfit = None if written.schema is None else _misfit(written.schema, schema)
            if misfit is not None:
                raise conflict(operation, change, commit, name, misfit)
        case Rule.CHECK_FILES:
            if written.replaced(change):
                raise conflict(operation, change, commit, name, "with rows that this operation may replace")
        case Rule.CHECK_ROWS:
            why = written.touched(change)
            if why is not None:
                raise conflict(operation, change, commit, name, why)
        case Rule.CHECK_VALUES:
            gone = _gone(view.state, written.values)
            if gone is not None:
                raise ValuesGone(
                    str(conflict(operation, change, commit, name, gone)),
                    version=commit.version,
                    is_for_good=_is_for_good(written.values),
                )
        case Rule.FAIL:
            raise conflict(operation, change, commit, name, None)
        case Rule.GONE:
            raise NoSuchTable(f"there is no table {name}: it was dropped in version {commit.version}")
        case _:
            assert_never(verdict)


def taken_events(view: View[TableState], values: Sequence[ValuesTaken], name: str) -> list[IdentityTaken]:
    """Return the events that record which values a commit to `view` takes. ValuesGone where these are taken already.

    Values of a column that was dropped since are not recorded.
    """
    known = {field.id for field, _ in identity_fields(view.state.current.schema)}
    live = [each for each in values if each.column in known]
    gone = _gone(view.state, live)
    if gone is not None:
        raise ValuesGone(
            f"the write to {name} cannot be committed: {gone}. Run the statement again",
            version=view.version,
            is_for_good=_is_for_good(values),
        )
    return [IdentityTaken(column=each.column, first=each.first, last=each.last) for each in live]


def _is_for_good(values: Sequence[ValuesTaken]) -> bool:
    """Return whether rows with these values cannot get others in their place (see `identity_values.with_values`)."""
    return any(each.given for each in values)


def _gone(state: TableState, values: Sequence[ValuesTaken]) -> str | None:
    """Return which of these values were taken before, None where they are all beyond the taken ones."""
    identities = {
        field.id: (field.name, identity) for field, identity in identity_fields(state.current.schema)
    }
    for each in values:
        if each.column in identities:
            name, identity = identities[each.column]
            last = state.identities.get(each.column)
            if not is_beyond(identity, each.first, last):
                return f"it has values of {name} from {each.first} on, but those up to {last} are taken"
    return None


def conflict(
    operation: Operation, change: ChangeKind, commit: Commit, name: str, why: str | None
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
        f"commit {commit.commit_id} by {author or 'an unknown writer'}. Nothing was changed: run the statement again, "
        "and it will see that version",
        version=commit.version,
        by=author,
    )


def _misfit(base: Schema, current: Schema) -> str | None:
    """Return why files written with the schema `base` do not fit `current`, or None where they do."""
    known = {field.id: field for _, field in base.walk()}
    for path, field in current.walk():
        before = known.get(field.id, field)
        if isinstance(before.type, AtomicType) and before.type != field.type:
            # Bounds and partition values are read by the type of their commit: days would be read as microseconds.
            return f"the column {dotted(path)} is a {field.type} now, and was a {before.type}"
        if before.nullable and not field.nullable:
            return f"the column {dotted(path)} is NOT NULL now"
    generated = not_generated(base, current)
    if generated is not None:
        return f"the column {generated.name} is generated now, and the files do not have its values"
    for field in current.fields:
        if (
            field.id not in known
            and not field.nullable
            and (field.default is None or field.default.exists is None)
        ):
            return f"the column {field.name} is required now, and the files do not have it"
    return None
