"""Logs as a transaction sees them: each at one cut, with the transaction's own changes on top, which no other client
sees.

A change is not written but folded into the current view, and kept with its decision: `decide` is called again at the
end, on the state that the log has by then. So all code that changes a catalog works in a transaction too.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from lakelog.catalog.core.logs.cache import LogCache, LogChange
from lakelog.catalog.core.logs.commits import NothingToDo
from lakelog.catalog.core.logs.consistent_cut import Cut
from lakelog.catalog.core.logs.name_path import read_path
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.tracked_log import TrackedLog, as_seen_in
from lakelog.catalog.core.logs.transaction_steps import (
    Step,
    check_same,
    commit_of,
    folded,
    goes_back,
    merged_drafts,
    met_by_joined,
)
from lakelog.catalog.core.logs.writer_now import facts_now, write_as
from lakelog.catalog.core.schema import Filter
from lakelog.catalog.core.state import (
    NAMESPACE,
    STATEMENT,
    NamespaceMoved,
    NamespaceState,
    TableMoved,
    TableState,
    author_of,
    full,
)
from lakelog.catalog.errors import BatchCommitted
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Committed, Draft, Json, View
from lakelog.log.errors import AlreadyExists, LogSealed, NotFound, Unsupported
from lakelog.log.placing import Decide
from lakelog.log.view import empty_view

T = TypeVar("T")
S = TypeVar("S")


_MOVES = frozenset((str(NamespaceMoved.__struct_config__.tag), str(TableMoved.__struct_config__.tag)))

Validate: TypeAlias = "Callable[[TransactionLog[Any], View[Any], Sequence[Commit]], None]"
"""Raises CommitConflict where what a transaction has read of a log has changed since."""


@dataclass(frozen=True, slots=True)
class Creation:
    """A log that does not exist yet: its first draft, and the ids that it will be created with."""

    draft: Draft
    log_id: str
    commit_id: str


class TransactionLog(TrackedLog[S]):
    """One log in a transaction. `start` is its view at the cut; `known` has the transaction's own changes too.

    Views between steps have the version of `start`, and `steps` counts the drafts that are folded onto it.
    """

    def __init__(self, under: TrackedLog[S], logs: TransactionLogs) -> None:
        super().__init__(under.log, under.location, under.store, under.prefix, lambda time_us: None)
        self.under = under
        self.start: View[S] | None = None
        self.creation: Creation | None = None
        self.steps: list[Step[S]] = []
        self._decided: list[Draft] = []
        """The drafts of the steps when they were last decided, after other clients' commits."""
        self._all = weakref.ref(logs)
        self.transaction: OwnPart[S] = OwnPart(self)

    @property
    def _logs(self) -> TransactionLogs:
        """The transaction's logs, which keep this one, as all do that use it."""
        logs = self._all()
        assert logs is not None, "a log of a transaction is used with the transaction's logs"
        return logs

    @property
    def outside(self) -> TrackedLog[S]:
        return self.under

    def current(self) -> View[S]:
        self._logs.check_open()
        with self._logs.changing:
            if self._view is None:
                self.start = self._view = self._logs.cut.view_of(
                    self.under, fresh=self._logs.is_fresh(self.location)
                )
            return self._view

    def offer(self, view: View[S]) -> View[S]:
        return self.current()

    def at_least(self, version: int) -> View[S]:
        return self.current()

    def anew(self) -> View[S]:
        return self.current()

    def settled(self) -> View[S]:
        return self.current()

    def at_its_place(self) -> View[S]:
        # No walk led here, so the log was not read for this request yet.
        self._logs.is_stale(self.location)
        return self.current()

    def read(self, view: View[S], look: Callable[[View[S]], T]) -> T:
        try:
            with naming(self.log.location):
                return look(view)
        except NotFound:
            # Expiry has replaced parts of the view: the same version, read anew, has the same steps on top.
            fresh = self.log.view_at(view.version)
            if fresh.hash != view.hash:
                raise
            is_start = self.start is not None and self.start.hash == view.hash
            drafts = [step.draft for step in self.steps] if is_start else self._decided
            for draft in drafts[: view.steps]:
                fresh = folded(self.log, fresh, draft)
            return look(as_seen_in(view, fresh))

    def view_at(self, version: int) -> View[S]:
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
    ) -> View[S]:
        assert not first, "the place of what a transaction creates is its own"
        self._logs.check_writable()
        if not self.location:
            # The root of an empty warehouse: to set it up changes nothing that a client can see.
            self.under.create(draft, log_id=log_id, commit_id=commit_id)
            return self.current()
        with self._logs.changing:
            self._check_free()
            view = replace(empty_view(self.log.projection), log_id=log_id, version=1)
            if self.start is not None:
                view = replace(view, version=self.start.version + 1)
            self.creation = Creation(draft, log_id, commit_id or self._logs.new_id())
            self.steps = [Step(lambda _view, _passed: draft, draft, facts_now(), commit_id)]
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
        view: View[S],
        decide: Decide[S],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> Committed[S]:
        self._logs.check_writable()
        with self._logs.changing:
            now = self.current()
            before = self._passed_before(commit_id, base)
            if before is None:
                return Committed(now, now.version)
            draft = decide(now, before)
            if now.sealed and not draft.restores:
                raise LogSealed(f"{self.log.location} was dropped")
            if now.sealed and now is not self.start:
                raise Unsupported(
                    f"{self.log.location} was dropped in the same transaction: roll the transaction back instead"
                )
            if draft.seals and self.start is not None and self.start.sealed and self.creation is None:
                raise Unsupported(
                    f"{self.log.location} was restored in the same transaction: roll the transaction back instead"
                )

            def decide_after(view: View[S], passed: Sequence[Commit]) -> Draft:
                return decide(view, (*before, *passed))

            self.steps.append(Step(decide_after, draft, facts_now(), commit_id))
            self._view = folded(self.log, now, draft)
            return Committed(self._view, self._view.version)

    def _passed_before(self, commit_id: str | None, base: int | None) -> tuple[Commit, ...] | None:
        """Return the commits between the base of a change and the cut, which conflict rules check too; None where the
        change itself was committed there, or is a step already. LogSealed, ConflictError as for a commit."""
        if commit_id is not None and any(step.commit_id == commit_id for step in self.steps):
            return None
        if self.start is None or self.creation is not None or base is None or base >= self.start.version:
            return ()
        start = self.start

        def never(view: View[S], passed: Sequence[Commit]) -> Draft:
            raise AssertionError("a commit that is only looked up is not decided")

        placing = self.log.placing(start, never, commit_id or self._logs.new_id(), base)
        return None if placing.asked_before() is not None else tuple(placing.passed)

    def undo_to(self, steps: int, view: View[S] | None) -> None:
        """Undo the newest steps, down to `steps` of them."""
        del self.steps[steps:]
        self._view = view

    # At the end

    def decide_all(self, view: View[S], passed: Sequence[Commit]) -> Draft:
        """Decide all changes again, each on the state after the one before, and return them as one draft."""
        self._logs.validate_written(self, view, passed)
        write_as(self.all_facts())
        self._decided = drafts = []
        for step in self.steps:
            self.transaction.is_moved = False
            try:
                draft = step.decide(view, passed)
            except (NothingToDo, BatchCommitted):
                # Another client did the same, perhaps with other ids than later steps refer to.
                draft = Draft()
            check_same(
                step,
                draft,
                alone=len(self.steps) == 1,
                moved=self.transaction.is_moved,
                went_back=goes_back(passed),
                title=self._logs.title_of(self),
                version=view.version,
                by=author_of(passed[-1] if passed else None),
            )
            drafts.append(draft)
            passed = met_by_joined(passed, draft)
            view = folded(self.log, view, draft)
        return merged_drafts(drafts)

    def release_decisions(self) -> None:
        """Keep of the steps what they have changed; they are not decided again."""
        self.steps = [replace(step, decide=_decided_already) for step in self.steps]

    def all_facts(self) -> dict[str, Json]:
        """Return the facts of the writer of all steps, with the statements one after another."""
        by_step = [step.facts for step in self.steps]
        facts = {key: value for each in by_step for key, value in each.items()}
        statements = list(dict.fromkeys(str(each[STATEMENT]) for each in by_step if each.get(STATEMENT)))
        return {**facts, STATEMENT: full("; ".join(statements))} if statements else facts

    def first_draft(self) -> Draft:
        """Return the draft that creates the log with all of the transaction's changes but moves elsewhere."""
        whole = merged_drafts([step.draft for step in self.steps])
        if self.moves() is None:
            return whole
        return replace(whole, events=tuple(event for event in whole.events if event["event"] not in _MOVES))

    def moves(self) -> Draft | None:
        """Return the draft that moves the log to a namespace in whose folder it is not, None where it does not move.

        It belongs to the commit of the transaction. A log that is left behind without it belongs to the namespace in
        whose folder vacuum finds it, which can say for good that nothing will lead to it.
        """
        events = [event for step in self.steps for event in step.draft.events]
        moved = [event for event in events if event["event"] in _MOVES]
        if not moved or _home(moved[-1]) == _home(events[0]):
            return None
        return Draft(events=(moved[-1],))


class OwnPart(Generic[S]):
    """What a transaction has done in one log, and what it has read of it (see `InTransaction`)."""

    def __init__(self, log: TransactionLog[S]) -> None:
        self.rows_read: list[Filter | None] = []
        self.lines_read: list[tuple[str, str, Filter | None]] = []
        self.names_read: set[tuple[str, str | None]] = set()
        self.is_moved = False
        self._staged: dict[str, View[S]] = {}
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

    def own_since(self, view: View[S]) -> Sequence[Commit]:
        current = self._log.current()
        return [commit_of(current, step.draft) for step in self._log.steps[view.steps :]]

    def note_staged(self, commit_id: str, view: View[S]) -> None:
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
    """All logs at one cut, over those that the process knows. `refusal` is why no change is allowed; None: it is."""

    def __init__(self, under: LogCache, cut: Cut, *, refusal: str | None = None) -> None:
        super().__init__(under.places, under.writer, under.log_options)
        self.observe, self.log_options = under.observe, under.log_options
        self.under = under
        self.cut = cut
        self.refusal = refusal
        self.closed: str | None = None
        self.validate_written: Validate = _valid
        self.changing = threading.RLock()
        """Held by a step: two at once, in threads of one session, would each build on the state before both."""
        self._fresh: set[str] = set()
        self._seen_namespaces: dict[str, TransactionLog[NamespaceState]] = {}
        self._seen_tables: dict[str, TransactionLog[TableState]] = {}

    def namespace(self, location: str) -> TrackedLog[NamespaceState]:
        seen = self._seen_namespaces.get(location)
        if seen is None:
            seen = self._seen_namespaces.setdefault(
                location, TransactionLog(self.under.namespace(location), self)
            )
        return seen

    def table(self, location: str) -> TrackedLog[TableState]:
        seen = self._seen_tables.get(location)
        if seen is None:
            seen = self._seen_tables.setdefault(location, TransactionLog(self.under.table(location), self))
        return seen

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
        """Return the name of a log in the catalog, by the namespaces that were read; its place if none has it."""
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
                for space, names in view.state.entries.items() if view is not None else ():
                    for name, entry in names.items():
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
        """Have what is committed validated, until the block ends: what validates keeps these logs."""
        self.validate_written = validate
        try:
            yield
        finally:
            self.validate_written = _valid

    def close(self, how: str) -> None:
        """Refuse all that follows, and release the decisions of the steps, which keep what they were made with."""
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
        """Nothing to do: a cut does not move."""

    def prepare_path(self, namespace: Identifier, table: str | None) -> None:
        """Read the levels of the path that this cut does not have (see `read_path`), if it is made of heads."""
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
        seen = self._seen_tables.get(location) or self._seen_namespaces.get(location)
        return seen is not None and seen.known is not None

    def commit_together(
        self,
        changes: Sequence[LogChange[Any]],
        *,
        commit_id: str | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        """Keep all of the changes as steps, or none of them."""
        with self.changing:
            seen = [change.tracked for change in changes if isinstance(change.tracked, TransactionLog)]
            before = [(each, len(each.steps), each.known) for each in seen]
            try:
                for change in changes:
                    change.tracked.commit(change.view, change.decide, commit_id=commit_id, base=change.base)
            except Exception:
                for tracked, steps, view in before:
                    tracked.undo_to(steps, view)
                raise


def _home(event: Mapping[str, Json]) -> Json:
    return event.get("namespace", event.get("parent"))


def _valid(seen: TransactionLog[Any], view: View[Any], passed: Sequence[Commit]) -> None:
    """Validate nothing, for snapshot isolation: what was read may have changed since."""


def _decided_already(view: View[Any], passed: Sequence[Commit]) -> Draft:
    raise AssertionError("a transaction that has ended decides nothing")
