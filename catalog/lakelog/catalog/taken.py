"""Logs as a transaction sees them: each at one cut, with the transaction's own changes on top, which nobody else sees.

A change is not written but folded into the view at hand, and kept as the decision that it is: `decide` is asked again
at the end, on whatever state the log has by then. So all that changes a catalog works in a transaction as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from lakelog.catalog.cut import Cut
from lakelog.catalog.log_cache import Change, LogCache, TrackedLog, facts_now, write_as
from lakelog.catalog.names import Identifier
from lakelog.catalog.namespace_state import NAMESPACE, RELATION, NamespaceState
from lakelog.catalog.predicate import Filter
from lakelog.catalog.statement_text import full
from lakelog.catalog.table_state import TableState
from lakelog.catalog.writer import STATEMENT
from lakelog.log import Commit, Committed, Draft, Json, Log, View
from lakelog.log.errors import AlreadyExists, LakelogError, LogSealed, NotFound, Unsupported
from lakelog.log.format import FORMAT
from lakelog.log.placing import Decide
from lakelog.log.view import empty_view

S = TypeVar("S")

_SIDECAR_INDEXES = ("added_sidecar", "removed_sidecar")


@dataclass(frozen=True, slots=True)
class Creation:
    """A log that does not exist yet: its first draft, and the ids that it will be made with."""

    draft: Draft
    log_id: str
    commit_id: str


class TakenLog(TrackedLog[S]):
    """One log in a transaction. `start` is what the cut has; `known` has the transaction's own changes too."""

    def __init__(self, under: TrackedLog[S], logs: TakenLogs) -> None:
        super().__init__(under.log, under.location, under.store, under.prefix, lambda time_us: None)
        self.under = under
        self.start: View[S] | None = None
        self.creation: Creation | None = None
        self.steps: list[Decide[S]] = []
        self.facts: list[Mapping[str, Json]] = []
        self.rows_read: list[Filter | None] = []
        self.names_read: set[tuple[str, str | None]] = set()
        self._logs = logs

    @property
    def is_new(self) -> bool:
        return self.creation is not None

    def current(self) -> View[S]:
        self._logs.check_open()
        if self._view is None:
            self.start = self._view = self._logs.cut.take(
                self.under, fresh=self._logs.is_fresh(self.location)
            )
        return self._view

    def offer(self, view: View[S]) -> View[S]:
        return self.current()

    def at_least(self, version: int) -> View[S]:
        return self.current()

    def anew(self) -> View[S]:
        return self.current()

    def at_its_place(self) -> View[S]:
        return self.current()

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        return None  # a transaction is asked again as a whole

    def create(self, draft: Draft, *, log_id: str, commit_id: str | None = None) -> View[S]:
        self._logs.check_writable()
        if not self.location:
            # The root of an empty warehouse: to set it up changes nothing that anybody can see.
            self.under.create(draft, log_id=log_id, commit_id=commit_id)
            return self.current()
        view = empty_view(self.log.projection)
        try:
            there = self.under.at_its_place()
        except NotFound:
            pass
        else:
            if not there.sealed or self.known is not None:
                raise AlreadyExists(f"there is a log at {self.log.location} already; use another location")
            view = replace(view, version=there.version)
        with self._logs.changing:
            self.creation = Creation(draft, log_id, commit_id or self._logs.new_id())
            self._view = folded(self.log, replace(view, log_id=log_id, version=view.version + 1), draft)
            self.facts.append(facts_now())
            return self._view

    def commit(
        self, view: View[S], decide: Decide[S], *, commit_id: str | None = None, base: int | None = None
    ) -> Committed[S]:
        self._logs.check_writable()
        with self._logs.changing:
            now = self.current()
            draft = decide(now, ())
            if now.sealed and not draft.restores:
                raise LogSealed(f"{self.log.location} was dropped")
            if now.sealed and now is not self.start:
                raise Unsupported(
                    f"{self.log.location} was dropped in this very transaction: roll it back instead"
                )
            if draft.seals and self.start is not None and self.start.sealed:
                raise Unsupported(
                    f"{self.log.location} was restored in this very transaction: roll it back instead"
                )
            self._view = folded(self.log, now, draft)
            self.steps.append(decide)
            self.facts.append(facts_now())
            return Committed(self._view, self._view.version)

    def note_rows_read(self, predicate: Filter | None) -> None:
        if predicate not in self.rows_read:
            self.rows_read.append(predicate)

    def note_name_read(self, space: str, name: str | None) -> None:
        self.names_read.add((space, name))

    # At the end

    def decide_all(self, view: View[S], passed: Sequence[Commit]) -> Draft:
        """Ask for all changes again, each on the state that the one before leaves, and return them as one."""
        self._logs.validate_written(self, view, passed)
        write_as(self.all_facts())
        drafts = []
        for decide in self.steps:
            draft = decide(view, passed)
            view = folded(self.log, view, draft)
            drafts.append(draft)
        return merged(drafts)

    def all_facts(self) -> dict[str, Json]:
        """Return what was said of the writer at each step, the statements one after another."""
        facts = {key: value for each in self.facts for key, value in each.items()}
        statements = list(dict.fromkeys(str(each[STATEMENT]) for each in self.facts if each.get(STATEMENT)))
        return {**facts, STATEMENT: full("; ".join(statements))} if statements else facts

    def first_draft(self) -> Draft:
        """Return the draft that creates the log with all that the transaction did to it."""
        assert self.creation is not None
        view = replace(empty_view(self.log.projection), log_id=self.creation.log_id, version=1)
        view = folded(self.log, view, self.creation.draft)
        drafts = [self.creation.draft]
        for decide in self.steps:
            draft = decide(view, ())
            view = folded(self.log, view, draft)
            drafts.append(draft)
        return merged(drafts)


class TakenLogs(LogCache):
    """All logs at one cut, over those that the process knows. `refusal` is why nothing can be changed, if so."""

    def __init__(self, under: LogCache, cut: Cut, *, refusal: str | None = None) -> None:
        super().__init__(under.places, under.writer, under.log_options)
        self.under = under
        self.cut = cut
        self.refusal = refusal
        self.closed: str | None = None
        self.validate_written: Callable[[TakenLog[Any], View[Any], Sequence[Commit]], None] = _valid
        self.changing = threading.RLock()
        """Held by a step: two at once, in threads of one session, would each build on what was there before both."""
        self._fresh: set[str] = set()
        self._taken_namespaces: dict[str, TakenLog[NamespaceState]] = {}
        self._taken_tables: dict[str, TakenLog[TableState]] = {}

    def namespace(self, location: str) -> TrackedLog[NamespaceState]:
        taken = self._taken_namespaces.get(location)
        if taken is None:
            taken = self._taken_namespaces.setdefault(
                location, TakenLog(self.under.namespace(location), self)
            )
        return taken

    def table(self, location: str) -> TrackedLog[TableState]:
        taken = self._taken_tables.get(location)
        if taken is None:
            taken = self._taken_tables.setdefault(location, TakenLog(self.under.table(location), self))
        return taken

    @property
    def namespaces(self) -> list[TakenLog[NamespaceState]]:
        return list(self._taken_namespaces.values())

    @property
    def tables(self) -> list[TakenLog[TableState]]:
        return list(self._taken_tables.values())

    @property
    def is_a_cut(self) -> bool:
        return True

    def is_fresh(self, location: str) -> bool:
        return location in self._fresh

    def check_open(self) -> None:
        if self.closed is not None:
            raise Unsupported(self.closed)

    def check_writable(self) -> None:
        self.check_open()
        if self.refusal is not None:
            raise Unsupported(self.refusal)

    def refresh(self, logs: Sequence[TrackedLog[Any]]) -> None:
        """Nothing to do: a cut does not move."""

    def take_path(self, namespace: Identifier, table: str | None) -> None:
        """Read all levels of the path that the process knows, and this cut does not have, in one round."""
        self.check_open()
        self.cut.begin_batch()
        path: list[TrackedLog[Any]] = []
        tracked: TrackedLog[NamespaceState] = self.under.namespace("")
        for part in namespace:
            path.append(tracked)
            entry = tracked.known.state.entry(NAMESPACE, part) if tracked.known is not None else None
            if entry is None:
                break
            tracked = self.under.namespace(entry.location)
        else:
            path.append(tracked)
            entry = None
            if table is not None and tracked.known is not None:
                entry = tracked.known.state.entry(RELATION, table)
            if entry is not None:
                path.append(self.under.table(entry.location))
        wanted = [each for each in path if each.known is not None and not self._has(each.location)]
        self.under.refresh(wanted)
        self._fresh = {each.location for each in wanted}

    def _has(self, location: str) -> bool:
        taken = self._taken_tables.get(location) or self._taken_namespaces.get(location)
        return taken is not None and taken.known is not None

    def commit_together(
        self,
        changes: Sequence[Change[Any]],
        *,
        commit_id: str | None = None,
        validate: Callable[[], None] | None = None,
    ) -> None:
        """Take note of all of the changes, or of none."""
        with self.changing:
            taken = [change.tracked for change in changes if isinstance(change.tracked, TakenLog)]
            before = [(each, each._view, len(each.steps), len(each.facts)) for each in taken]
            try:
                for change in changes:
                    change.tracked.commit(change.view, change.decide)
            except LakelogError:
                for tracked, view, steps, facts in before:
                    tracked._view = view
                    del tracked.steps[steps:]
                    del tracked.facts[facts:]
                raise


def _valid(taken: TakenLog[Any], view: View[Any], passed: Sequence[Commit]) -> None:
    """Snapshot isolation: what was read may have changed since."""


def folded(log: Log[S], view: View[S], draft: Draft) -> View[S]:
    """Return the view with what `draft` would do, of the same version: nothing of it is committed."""
    commit = Commit(
        format=FORMAT,
        log_id=view.log_id,
        version=view.version,
        commit_id="",
        attempt_id="",
        base=view.version,
        prev=view.hash,
        time_us=view.time_us,
        write=draft.write,
        events=msgspec.json.decode(msgspec.json.encode(draft.events), type=tuple[dict[str, Any], ...]),
    )
    state = log.projection.apply(view.state, commit, draft.blobs)
    return replace(view, state=state, sealed=draft.seals or (view.sealed and not draft.restores))


def merged(drafts: Sequence[Draft]) -> Draft:
    """Return one draft that does what all of them do, one after the other."""
    if len(drafts) == 1:
        return drafts[0]
    events: list[dict[str, Any]] = []
    blobs: list[bytes] = []
    for draft in drafts:
        events.extend(_with_sidecars_after(event, len(blobs)) for event in draft.events)
        blobs.extend(draft.blobs)
    writes = [draft.write for draft in drafts if draft.write is not None]
    return Draft(
        events=tuple(events),
        blobs=tuple(blobs),
        write=min(writes, key=lambda write: write.version, default=None),
        features=tuple(sorted({feature for draft in drafts for feature in draft.features})),
        fence=max(draft.fence for draft in drafts),
        seals=any(draft.seals for draft in drafts),
        restores=any(draft.restores for draft in drafts),
    )


def _with_sidecars_after(event: dict[str, Any], blobs: int) -> dict[str, Any]:
    """Return the event as it stands in a commit that has so many other sidecars before its own."""
    moved = {key: event[key] + blobs for key in _SIDECAR_INDEXES if event.get(key) is not None}
    return {**event, **moved}
