"""Transactions: several changes of any namespaces and tables that happen together or not at all.

    with catalog.transaction() as tx:
        tx.load_table("bank.savings").append(less)
        tx.load_table("bank.checking").append(more)

A transaction is a catalog at a cut of all logs, plus its own changes. Before the commit it writes only data
files, logs that no name leads to, and the values of identity columns that it takes. The commit decides every
change again on the newest state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, NoReturn

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import (
    ConsistentCut,
    JointLogChange,
    LineLog,
    LogCache,
    OfThisProcess,
    TableHead,
    TransactionLog,
    TransactionLogs,
    advising,
    observed,
    run_transaction,
    seen_on,
    write_as,
    writing_as,
)
from lakelog.catalog.core.planning import bind
from lakelog.catalog.core.schema import ISOLATION, SERIALIZABLE, SNAPSHOT, Filter, as_predicate
from lakelog.catalog.core.state import PROPERTIES, NamespaceState, TableDropped, TableState, author_of, encode
from lakelog.catalog.core.writes import changed_rows
from lakelog.catalog.errors import CommitConflict, LocationTaken, NoSuchRef
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.outside_only import OutsideOnly
from lakelog.log import Commit, Draft, LogView, each_change
from lakelog.log.errors import (
    AlreadyExists,
    CommitUnknown,
    FormatError,
    InvalidInput,
    LakelogError,
    LogSealed,
    NotFound,
    StorageError,
)


@observed(lambda transaction: transaction._overlay)
@explaining
class Transaction(CatalogNames, OutsideOnly, OfThisProcess):
    """A catalog as of now, with changes that no other reader sees before `commit`.

    Made by `Catalog.begin`.

    `isolation` is snapshot or serializable. None leaves it to the property `lakelog.isolation` of each table.
    Under serializable, the commit fails if anything that the transaction read has changed: rows, names,
    columns, properties. Lists of dropped objects, and numbers and times of versions, do not count. Under
    snapshot, the commit fails if anything that it writes has changed in a way that the conflict matrix does
    not allow.
    """

    _instead: ClassVar[str] = "begin another one there, or give it the catalog"

    def __init__(self, under: LogCache, isolation: str | None = None) -> None:
        self._isolation = isolation
        if isolation not in (None, SNAPSHOT, SERIALIZABLE):
            raise InvalidInput(f"{isolation!r} is not an isolation level: use {SNAPSHOT} or {SERIALIZABLE}")
        self._cut = ConsistentCut(under, waits=partial(_is_serializable, isolation))
        self._overlay = TransactionLogs(under, self._cut)
        super().__init__(self._overlay)
        self._under = under
        self._is_unknown = False
        self.commit_id = under.new_id()
        """Identifies the transaction's commit in every log that it changes."""

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._overlay.closed is not None:
            return
        if kind is None:
            self.commit()
        elif not self._is_unknown:
            self.rollback()
        # Else the caller gets CommitUnknown, and can still find out the outcome by committing again.

    @property
    def is_open(self) -> bool:
        return self._overlay.closed is None

    def rollback(self) -> None:
        """Discard all changes. Data files that were written for them are left for vacuum."""
        self._overlay.check_open()
        if self._is_unknown:
            raise InvalidInput(
                f"it is not known whether commit {self.commit_id} of this transaction happened, so it cannot be rolled "
                "back: commit it again to find out"
            )
        self._close("rolled back")

    def commit(self) -> None:
        """Make all changes visible at the same moment, or none of them.

        Raises CommitConflict, NoSuchTable, TableExists and others if another client's commit does not allow a
        change. Nothing has happened then. After CommitUnknown, and only then, the same transaction may be
        committed again. It happens once.

        Under serializable, a transaction that only reads can fail too: if others have changed some of its
        tables while it was reading them. So rely on its rows only once the commit has succeeded.
        """
        self._overlay.check_open()
        was_unknown, self._is_unknown = self._is_unknown, True
        self._overlay.refusal = (
            f"commit {self.commit_id} of this transaction was begun: nothing else can be changed in it"
        )
        try:
            with (
                writing_as({}),
                advising(run_transaction()),
                self._overlay.validating(self._validate_written),
            ):
                self._commit(was_unknown)
        except CommitUnknown:
            raise
        except (StorageError, FormatError) as error:
            if was_unknown:
                # This attempt has not happened, but an earlier attempt may have, perhaps in a version before that of
                # a newer client, which this one cannot read.
                raise self._still_unknown(error) from error
            self._close("not committed: it failed")
            raise
        except Exception:
            self._close("not committed: it failed")
            raise
        self._close("committed")

    def _commit(self, was_unknown: bool) -> None:
        linked_ids = _linked(self._overlay.namespaces)
        logs: list[TransactionLog[Any]] = [*self._overlay.namespaces, *self._overlay.tables]
        new_logs = [log for log in logs if log.creation is not None and log.creation.log_id in linked_ids]
        changed_logs = [log for log in logs if log.creation is None and log.steps]
        read_logs = [
            log for log in logs if not log.steps and log.creation is None and self._is_validated(log)
        ]
        if not changed_logs:
            if len(read_logs) > 1 and self._cut.has_moved():
                self._validate_read(read_logs)
            return
        if was_unknown and self._has_happened(changed_logs[0]):
            return
        try:
            self._create(new_logs)
            self._commit_changed(
                changed_logs, read_logs, [move for log in new_logs if (move := _moving(log)) is not None]
            )
        except CommitUnknown:
            raise
        except Exception as error:
            if not (was_unknown and isinstance(error, StorageError | FormatError)):
                for log in new_logs:
                    _give_up(log)
            raise

    def _still_unknown(self, error: LakelogError) -> CommitUnknown:
        return CommitUnknown(
            f"it is still not known whether commit {self.commit_id} happened: {error}; retry",
            commit_id=self.commit_id,
            location=error.location if isinstance(error, StorageError) else self._under.warehouse,
        )

    def _has_happened(self, log: TransactionLog[Any]) -> bool:
        """Return whether a log that this transaction changes has its commit. If not, it may still be under way."""
        assert log.start is not None
        head = log.under.settled()
        return log.log.find(self.commit_id, log.start.version + 1, head.version) is not None

    def _create(self, created: Sequence[TransactionLog[Any]]) -> None:
        if created:
            self._under.log_options.in_parallel([_creating(log) for log in created])

    def _commit_changed(
        self,
        changed: Sequence[TransactionLog[Any]],
        read: Sequence[TransactionLog[Any]],
        moved: Sequence[JointLogChange[Any]],
    ) -> None:
        changes = [
            JointLogChange(log.under, log.start, log.decide_all, log.start.version)
            for log in changed
            if log.start is not None
        ]
        assert len(changes) == len(changed), "a changed log has a start"
        changes += moved
        try:
            if len(changes) == 1 and not read:
                single_change = changes[0]
                single_change.tracked.commit(
                    single_change.view,
                    single_change.decide,
                    commit_id=self.commit_id,
                    base=single_change.base,
                )
            else:
                self._under.commit_together(
                    changes,
                    commit_id=self.commit_id,
                    validate=(lambda: self._validate_read(read)) if read else None,
                )
        except LogSealed as error:
            sealed_logs = [(log, view) for log in changed if (view := log.under.current()).sealed]
            titles = (
                ", ".join(self._overlay.title_of(log) for log, _ in sealed_logs) or "a table or namespace"
            )
            by = self._author(*sealed_logs[0]) if sealed_logs else ""
            raise CommitConflict(
                f"the transaction changes {titles}, which was dropped since it began, by {by or 'an unknown writer'} "
                f"({error}). Nothing was changed: run the transaction again",
                version=sealed_logs[0][1].version if sealed_logs else 0,
                by=by,
            ) from error

    def _close(self, how: str) -> None:
        self._overlay.close(f"this transaction was {how}: begin another one")

    # Isolation

    def _is_validated(self, log: TransactionLog[Any]) -> bool:
        if log.start is None or not _is_serializable(self._isolation, log.start):
            return False
        # A transaction that loaded a table has read its columns and properties. It has read only certain
        # names of a namespace.
        return isinstance(log.start.state, TableState) or bool(log.transaction.names_read)

    def _validate_read(self, read: Sequence[TransactionLog[Any]]) -> None:
        """Validate logs that were only read, between the last intent and the decision."""
        for log in read:
            assert log.start is not None
            self._validate(log, log.under.settled())

    def _validate_written(
        self, log: TransactionLog[Any], view: LogView[Any], passed: Sequence[Commit]
    ) -> None:
        if passed and self._is_validated(log):
            self._validate(log, view)

    def _validate(self, log: TransactionLog[Any], now: LogView[Any]) -> None:
        start_view = log.start
        assert start_view is not None
        if now.version <= start_view.version:
            return
        if now.log_id != start_view.log_id or now.sealed != start_view.sealed:
            self._changed(log, now, "was dropped")
        if isinstance(start_view.state, NamespaceState):
            for space, name in log.transaction.names_read:
                old_part, new_part = (_named(view.state, space, name) for view in (start_view, now))
                if old_part != new_part:
                    self._changed(
                        log, now, f"has other {space} now" if name is None else f"has another {name} now"
                    )
        else:

            def passed() -> Iterable[Commit]:
                return log.log.commits(first=start_view.version + 1, last=now.version)

            if start_view.state.current != now.state.current:
                self._changed(log, now, "has other columns or properties, or was replaced")
            for predicate in log.transaction.rows_read:
                bound_predicate = (
                    None
                    if predicate is None
                    else bind(as_predicate(predicate), start_view.state.current.schema)
                )
                if changed_rows(self._head(log, start_view), self._head(log, now), bound_predicate, passed):
                    self._changed(log, now, "has other rows now")
            for name, id, predicate in log.transaction.lines_read:
                self._validate_line(log, start_view, now, name, id, predicate)

    def _head(self, log: TransactionLog[TableState], view: LogView[TableState]) -> TableHead:
        return TableHead.at_place(self._overlay, log, view)

    def _validate_line(
        self,
        log: TransactionLog[Any],
        then: LogView[TableState],
        now: LogView[TableState],
        name: str,
        id: str,
        predicate: Filter | None,
    ) -> None:
        start_ref = then.state.refs.get(name)
        if start_ref is None or start_ref.id != id:
            return  # the transaction has made it itself
        try:
            old_view, new_view = seen_on(then, name, id), seen_on(now, name, id)
        except NoSuchRef:
            self._changed(log, now, f"no longer has the {start_ref.kind} {name}")
        bound_predicate = (
            None if predicate is None else bind(as_predicate(predicate), old_view.state.current.schema)
        )
        line = LineLog(log.under, name, id)

        def passed() -> Iterable[Commit]:
            return map(line.seen_here, log.log.commits(first=then.version + 1, last=now.version))

        if changed_rows(self._head(log, old_view), self._head(log, new_view), bound_predicate, passed):
            self._changed(log, now, f"has other rows on {name} now")

    def _author(self, log: TransactionLog[Any], now: LogView[Any]) -> str:
        """Return the author of the newest commit of a log. Empty if it is not known."""
        first = log.start.version + 1 if log.start is not None else 1
        try:
            newest = next(iter(log.log.commits(first=first, last=now.version, newest_first=True)), None)
            return author_of(
                None if newest is None else next(iter(each_change(newest, newest_first=True)), None)
            )
        except NotFound:
            return ""  # the commit has expired

    def _changed(self, log: TransactionLog[Any], now: LogView[Any], what: str) -> NoReturn:
        assert log.start is not None
        by = self._author(log, now)
        raise CommitConflict(
            f"{self._overlay.title_of(log)}, which this serializable transaction read at version "
            f"{log.start.version}, {what} (version {now.version}, by {by or 'an unknown writer'}). Nothing was "
            "changed: run the transaction again",
            version=now.version,
            by=by,
        )


def _is_serializable(isolation: str | None, view: LogView[Any]) -> bool:
    """Return whether a log is read at the serializable level. None takes the table's level."""
    if isolation is not None:
        return isolation == SERIALIZABLE
    state = view.state
    return (
        isinstance(state, TableState)
        and state.metadata is not None
        and ISOLATION.of(state.metadata.properties) == SERIALIZABLE
    )


def _named(state: NamespaceState, space: str, name: str | None) -> Any:
    """Return the part of a namespace that a transaction has read under this note."""
    if space == PROPERTIES:
        return state.properties
    if name is None:
        return state.entries.get(space, {})
    return state.entries.get(space, {}).get(name)


def _linked(namespaces: Sequence[TransactionLog[NamespaceState]]) -> set[str]:
    """Return the ids that the transaction's own view of the catalog leads to."""
    return {
        entry.id
        for namespace in namespaces
        if namespace.known is not None and not namespace.known.sealed
        for _, _, entry in namespace.known.state.all_logs()
    }


def _creating(log: TransactionLog[Any]) -> Any:
    creation = log.creation
    assert creation is not None

    def create() -> None:
        with writing_as(log.all_facts()):
            try:
                log.under.create(log.first_draft(), log_id=creation.log_id, commit_id=creation.commit_id)
            except AlreadyExists as error:
                raise LocationTaken(
                    f"there is a table's log at {log.log.location} already, which was created since the transaction "
                    "began: choose another place"
                ) from error

    return create


def _moving(log: TransactionLog[Any]) -> JointLogChange[Any] | None:
    """Return the change that moves a new log. None if the log stays in its namespace."""
    draft = log.moves()
    if draft is None:
        return None

    def decide(view: LogView[Any], passed: Sequence[Commit]) -> Draft:
        write_as(log.all_facts())
        return draft

    view = log.under.current()
    return JointLogChange(log.under, view, decide, view.version)


def _give_up(log: TransactionLog[Any]) -> None:
    """Release the place of a log that no name will ever lead to. If this fails, vacuum does it later."""
    assert log.creation is not None
    if not isinstance(log.log.projection.initial(), TableState):
        return
    try:
        view = log.under.current()
        if view.log_id == log.creation.log_id and not view.sealed:
            draft = Draft(events=encode([TableDropped()]), seals=True)
            log.under.commit(view, lambda _view, _passed: draft)
    except LakelogError:
        return
