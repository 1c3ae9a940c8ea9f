"""Logs as a transaction sees them: all at the same cut, with the transaction's own changes on top.

No other client sees these changes. A change is not written but folded into the current view, and kept with
its decision. At the end, `decide` is called again, on the state that the log has by then. So all code that
changes a catalog works in a transaction too.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from lakelog.catalog.core.logs.cache import JointLogChange, LogCache
from lakelog.catalog.core.logs.commits import NothingToDo
from lakelog.catalog.core.logs.consistent_cut import ConsistentCut
from lakelog.catalog.core.logs.name_path import read_path
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.tracked_log import TrackedLog, as_seen_in
from lakelog.catalog.core.logs.transaction_steps import (
    TransactionStep,
    check_same,
    commit_of,
    folded,
    goes_back,
    merged_drafts,
    met_by_joined,
)
from lakelog.catalog.core.logs.writer_now import facts_now, write_as
from lakelog.catalog.core.schema.filters import Filter
from lakelog.catalog.core.state.events import TableMoved
from lakelog.catalog.core.state.namespace_state import NAMESPACE, NamespaceState
from lakelog.catalog.core.state.statement_text import full
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.state.writer import STATEMENT, author_of
from lakelog.catalog.errors import BatchCommitted
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, CommittedChange, Draft, Json, LogView
from lakelog.log.errors import AlreadyExists, LogSealed, NotFound, Unsupported
from lakelog.log.placing import Decide
from lakelog.log.view import empty_view

T = TypeVar("T")
S = TypeVar("S")


_MOVE = TableMoved.__struct_config__.tag

Validate: TypeAlias = "Callable[[TransactionLog[Any], LogView[Any], Sequence[Commit]], None]"
"""Raises CommitConflict if rows or names of a log that a transaction has read have changed since."""


@dataclass(frozen=True, slots=True)
class LogCreation:
    """A log that does not exist yet: its first draft, and the ids that it will be created with."""

    draft: Draft
    log_id: str
    commit_id: str


class TransactionLog(TrackedLog[S]):
    """A log in a transaction.

    `start` is its view at the cut; `known` has the transaction's own changes too. Views between steps have
    the version of `start`, and `steps` counts the drafts that are folded onto it.
    """

    def __init__(self, under: TrackedLog[S], logs: TransactionLogs) -> None:
        super().__init__(under.log, under.location, under.store, under.prefix, lambda time_us: None)
        self.under = under
        self.start: LogView[S] | None = None
        self.creation: LogCreation | None = None
        self.steps: list[TransactionStep[S]] = []
        self._decided: list[Draft] = []
        """The drafts of the steps when they were last decided, after other clients' commits."""
        self._all = weakref.ref(logs)
        self.transaction: OwnPart[S] = OwnPart(self)

    @property
    def _logs(self) -> TransactionLogs:
        """The transaction's logs, which refer to this log, as all its users do."""
        logs = self._all()
        assert logs is not None, "a log of a transaction is used with the transaction's logs"
        return logs

    @property
    def outside(self) -> TrackedLog[S]:
        return self.under

    def current(self) -> LogView[S]:
        self._logs.check_open()
        with self._logs.changing:
            if self._view is None:
                self.start = self._view = self._logs.cut.view_of(
                    self.under, fresh=self._logs.is_fresh(self.location)
                )
            return self._view

    def offer(self, view: LogView[S]) -> LogView[S]:
        return self.current()

    def at_least(self, version: int) -> LogView[S]:
        return self.current()

    def anew(self) -> LogView[S]:
        return self.current()

    def settled(self) -> LogView[S]:
        return self.current()

    def at_its_place(self) -> LogView[S]:
        # No walk led here, so the log was not read for this request yet.
        self._logs.is_stale(self.location)
        return self.current()

    def read(self, view: LogView[S], look: Callable[[LogView[S]], T]) -> T:
        try:
            with naming(self.log.location):
                return look(view)
        except NotFound:
            # Expiry has replaced parts of the view: the same version, read again, has the same steps on top.
            fresh = self.log.view_at(view.version)
            if fresh.hash != view.hash:
                raise
            is_start = self.start is not None and self.start.hash == view.hash
            drafts = [step.draft for step in self.steps] if is_start else self._decided
            for draft in drafts[: view.steps]:
                fresh = folded(self.log, fresh, draft)
            return look(as_seen_in(view, fresh))

    def view_at(self, version: int) -> LogView[S]:
        start = self.start or self.current()
        if self.creation is not None or version > start.version:
            raise NotFound(f"{self.log.location} has no version {version} at the moment that is shown")
        return start if version == start.version else self.log.view_at(version)

    def version_at_time(self, time_us: int) -> int:
        start = self.start or self.current()
        if self.creation is not None:
            raise NotFound(f"{self.log.location} has no version yet: it is created by this transaction")
        return min(self.log.version_at_time(time_us), start.version)

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        return None  # a transaction is retried as a whole

    def create(
        self, draft: Draft, *, log_id: str, commit_id: str | None = None, first: bool = False
    ) -> LogView[S]:
        assert not first, "the place of what a transaction creates is its own"
        self._logs.check_writable()
        if not self.location:
            # The root of an empty warehouse: its set-up changes nothing that a client can see.
            self.under.create(draft, log_id=log_id, commit_id=commit_id)
            return self.current()
        with self._logs.changing:
            self._check_free()
            view = replace(empty_view(self.log.projection), log_id=log_id, version=1)
            if self.start is not None:
                view = replace(view, version=self.start.version + 1)
            self.creation = LogCreation(draft, log_id, commit_id or self._logs.new_id())
            self.steps = [TransactionStep(lambda _view, _passed: draft, draft, facts_now(), commit_id)]
            self._view = folded(self.log, view, draft)
            return self._view

    def _check_free(self) -> None:
        if self._view is None:
            try:
                self.current()
            except NotFound:
                return
        if self._view is not None and not self._view.sealed:
            raise AlreadyExists(f"there is a log at {self.log.location} already; use another location")
        if self.creation is None and self.steps:
            raise Unsupported(
                f"the table at {self.log.location} is dropped in the same transaction, so that no new one can be "
                "created at its place before that is committed: replace it instead, or use another location"
            )

    def commit(
        self,
        view: LogView[S],
        decide: Decide[S],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> CommittedChange[S]:
        self._logs.check_writable()
        with self._logs.changing:
            current_view = self.current()
            earlier_commits = self._passed_before(commit_id, base)
            if earlier_commits is None:
                return CommittedChange(current_view, current_view.version)
            draft = decide(current_view, earlier_commits)
            if current_view.sealed and not draft.restores:
                raise LogSealed(f"{self.log.location} was dropped")
            if current_view.sealed and current_view is not self.start:
                raise Unsupported(
                    f"{self.log.location} was dropped in the same transaction: roll the transaction back instead"
                )
            if draft.seals and self.start is not None and self.start.sealed and self.creation is None:
                raise Unsupported(
                    f"{self.log.location} was restored in the same transaction: roll the transaction back instead"
                )

            def decide_after(view: LogView[S], passed_commits: Sequence[Commit]) -> Draft:
                return decide(view, (*earlier_commits, *passed_commits))

            self.steps.append(TransactionStep(decide_after, draft, facts_now(), commit_id))
            self._view = folded(self.log, current_view, draft)
            return CommittedChange(self._view, self._view.version)

    def _passed_before(self, commit_id: str | None, base: int | None) -> tuple[Commit, ...] | None:
        """Return the commits between the base of a change and the cut, which conflict rules check too.

        None if the change itself was committed there, or is a step already. Raises LogSealed or ConflictError
        as a commit does.
        """
        if commit_id is not None and any(step.commit_id == commit_id for step in self.steps):
            return None
        if self.start is None or self.creation is not None or base is None or base >= self.start.version:
            return ()
        start = self.start

        def never(view: LogView[S], passed_commits: Sequence[Commit]) -> Draft:
            raise AssertionError("a commit that is only looked up is not decided")

        cursor = self.log.cursor(start, never, commit_id or self._logs.new_id(), base)
        return None if cursor.asked_before() is not None else tuple(cursor.passed)

    def undo_to(self, steps: int, view: LogView[S] | None) -> None:
        """Undo the newest steps, down to `steps` of them."""
        del self.steps[steps:]
        self._view = view

    # At the end

    def decide_all(self, view: LogView[S], passed_commits: Sequence[Commit]) -> Draft:
        """Decide all changes again, each on the state after the one before, and return them as one draft."""
        self._logs.validate_written(self, view, passed_commits)
        write_as(self.all_facts())
        self._decided = drafts = []
        for step in self.steps:
            self.transaction.is_moved = False
            try:
                draft = step.decide(view, passed_commits)
            except (NothingToDo, BatchCommitted):
                # Another client did the same, perhaps with other ids than later steps refer to.
                draft = Draft()
            check_same(
                step,
                draft,
                alone=len(self.steps) == 1,
                moved=self.transaction.is_moved,
                went_back=goes_back(passed_commits),
                title=self._logs.title_of(self),
                version=view.version,
                by=author_of(passed_commits[-1] if passed_commits else None),
            )
            drafts.append(draft)
            passed_commits = met_by_joined(passed_commits, draft)
            view = folded(self.log, view, draft)
        return merged_drafts(drafts)

    def release_decisions(self) -> None:
        """Keep the changes of the steps without their decisions, because they are not decided again."""
        self.steps = [replace(step, decide=_decided_already) for step in self.steps]

    def all_facts(self) -> dict[str, Json]:
        """Return the facts of the writer of all steps, with the statements one after another."""
        by_step = [step.facts for step in self.steps]
        facts = {key: value for step_facts in by_step for key, value in step_facts.items()}
        statements = list(
            dict.fromkeys(str(step_facts[STATEMENT]) for step_facts in by_step if step_facts.get(STATEMENT))
        )
        return {**facts, STATEMENT: full("; ".join(statements))} if statements else facts

    def first_draft(self) -> Draft:
        """Return the draft that creates the log with all of the transaction's changes but moves elsewhere."""
        whole = merged_drafts([step.draft for step in self.steps])
        if self.moves() is None:
            return whole
        return replace(whole, events=tuple(event for event in whole.events if event["event"] != _MOVE))

    def moves(self) -> Draft | None:
        """Return the draft that moves the log to a namespace whose folder does not hold it.

        None if it does not move. It belongs to the commit of the transaction. A log that is left behind
        without it belongs to the namespace in whose folder vacuum finds it. That namespace can say for good
        that nothing will lead to the log.
        """
        events = [event for step in self.steps for event in step.draft.events]
        move_events = [event for event in events if event["event"] == _MOVE]
        if not move_events or move_events[-1].get("namespace") == events[0].get("namespace"):
            return None
        return Draft(events=(move_events[-1],))


class OwnPart(Generic[S]):
    """The changes of a transaction in a log, and its reads of the log (see `InTransaction`)."""

    def __init__(self, log: TransactionLog[S]) -> None:
        self.rows_read: list[Filter | None] = []
        self.lines_read: list[tuple[str, str, Filter | None]] = []
        self.names_read: set[tuple[str, str | None]] = set()
        self.is_moved = False
        self._staged: dict[str, LogView[S]] = {}
        self._whole = weakref.ref(log)

    @property
    def _log(self) -> TransactionLog[S]:
        log = self._whole()
        assert log is not None, "a part of a log is used with the log"
        return log

    @property
    def is_open(self) -> bool:
        return True

    @property
    def creates_log(self) -> bool:
        return self._log.creation is not None

    def own_since(self, view: LogView[S]) -> Sequence[Commit]:
        current = self._log.current()
        return [commit_of(current, step.draft) for step in self._log.steps[view.steps :]]

    def note_staged(self, commit_id: str, view: LogView[S]) -> None:
        self._staged[commit_id] = view

    def own_since_staged(self, commit_id: str) -> Sequence[Commit]:
        return self.own_since(self._staged[commit_id]) if commit_id in self._staged else ()

    def note_moved(self) -> None:
        self.is_moved = True

    def note_rows_read(self, predicate: Filter | None) -> None:
        if predicate not in self.rows_read:
            self.rows_read.append(predicate)

    def note_rows_of_line_read(self, name: str, id: str, predicate: Filter | None) -> None:
        if (name, id, predicate) not in self.lines_read:
            self.lines_read.append((name, id, predicate))

    def note_name_read(self, space: str, name: str | None) -> None:
        self.names_read.add((space, name))


class TransactionLogs(LogCache):
    """All logs at the same cut, over the logs that the process knows.

    `refusal` is why no change is allowed; None if changes are allowed.
    """

    def __init__(self, under: LogCache, cut: ConsistentCut, *, refusal: str | None = None) -> None:
        super().__init__(under.places, under.writer, under.log_options)
        self.observe, self.log_options = under.observe, under.log_options
        self.under = under
        self.cut = cut
        self.refusal = refusal
        self.closed: str | None = None
        self.validate_written: Validate = _valid
        self.changing = threading.RLock()
        """Held by a step: two at once, in threads of a session, would each build on the state before both."""
        self._fresh: set[str] = set()
        self._seen_namespaces: dict[str, TransactionLog[NamespaceState]] = {}
        self._seen_tables: dict[str, TransactionLog[TableState]] = {}

    def namespace(self, location: str) -> TrackedLog[NamespaceState]:
        own_log = self._seen_namespaces.get(location)
        if own_log is None:
            own_log = self._seen_namespaces.setdefault(
                location, TransactionLog(self.under.namespace(location), self)
            )
        return own_log

    def table(self, location: str) -> TrackedLog[TableState]:
        own_log = self._seen_tables.get(location)
        if own_log is None:
            own_log = self._seen_tables.setdefault(location, TransactionLog(self.under.table(location), self))
        return own_log

    @property
    def namespaces(self) -> list[TransactionLog[NamespaceState]]:
        return list(self._seen_namespaces.values())

    @property
    def tables(self) -> list[TransactionLog[TableState]]:
        return list(self._seen_tables.values())

    @property
    def is_a_cut(self) -> bool:
        return True

    def title_of(self, log: TrackedLog[Any]) -> str:
        """Return the name of a log, by the namespaces that were read; its place if none has it."""
        if not log.location:
            return "the root namespace"
        level: list[tuple[Identifier, str]] = [((), "")]
        met: set[str] = set()
        while level:
            path, location = level.pop()
            if location in met:
                continue
            met.add(location)
            parent = self._seen_namespaces.get(location)
            for view in (parent.start, parent.known) if parent is not None else ():
                for space, name, entry in view.state.all_logs() if view is not None else ():
                    if entry.location == log.location:
                        return quoted((*path, name))
                    if space == NAMESPACE:
                        level.append(((*path, name), entry.location))
        return self.under.url(log.location)

    def is_fresh(self, location: str) -> bool:
        return location in self._fresh

    def is_stale(self, location: str) -> None:
        """Note that the known view of a log was not read for the current request."""
        self._fresh.discard(location)

    @contextmanager
    def validating(self, validate: Validate) -> Iterator[None]:
        """Have commits validated until the block ends, because the validator keeps these logs alive."""
        self.validate_written = validate
        try:
            yield
        finally:
            self.validate_written = _valid

    def close(self, how: str) -> None:
        """Refuse all later requests, and release the decisions of the steps with their arguments."""
        self.closed = how
        logs: list[TransactionLog[Any]] = [*self.namespaces, *self.tables]
        for log in logs:
            log.release_decisions()

    def check_open(self) -> None:
        if self.closed is not None:
            raise Unsupported(self.closed)

    def check_writable(self) -> None:
        self.check_open()
        if self.refusal is not None:
            raise Unsupported(self.refusal)

    def refresh(self, logs: Sequence[TrackedLog[Any]]) -> None:
        """Do nothing, because a cut does not move."""

    def prepare_path(self, namespace: Identifier, table: str | None) -> None:
        """Read the levels of the path that this cut does not have, if it is made of heads.

        See `read_path`.
        """
        self.check_open()
        self.cut.begin_batch()
        self._fresh = set()
        if not self.cut.is_saved:
            self._fresh = read_path(
                self.under, namespace, table, is_read=lambda tracked: self._has(tracked.location)
            )

    def check_cut(self) -> None:
        self.cut.check()

    def _has(self, location: str) -> bool:
        own_log = self._seen_tables.get(location) or self._seen_namespaces.get(location)
        return own_log is not None and own_log.known is not None

    def commit_together(
        self,
        changes: Sequence[JointLogChange[Any]],
        *,
        commit_id: str | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        """Keep all of the changes as steps, or none of them."""
        with self.changing:
            own_logs = [change.tracked for change in changes if isinstance(change.tracked, TransactionLog)]
            saved_states = [(own_log, len(own_log.steps), own_log.known) for own_log in own_logs]
            try:
                for change in changes:
                    change.tracked.commit(change.view, change.decide, commit_id=commit_id, base=change.base)
            except Exception:
                for changed_log, steps, view in saved_states:
                    changed_log.undo_to(steps, view)
                raise


def _valid(seen: TransactionLog[Any], view: LogView[Any], passed_commits: Sequence[Commit]) -> None:
    """Validate nothing, for snapshot isolation: rows that were read may have changed since."""


def _decided_already(view: LogView[Any], passed_commits: Sequence[Commit]) -> Draft:
    raise AssertionError("a transaction that has ended decides nothing")
