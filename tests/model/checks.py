"""The checks of a search, and the truth that they compare with.

The truth about a log is what its keys held first: every commit that was ever created, whatever has become of its key.
The checks themselves are in `invariants.py`; they register themselves here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.model import reading
from tests.model.machine import Report
from tests.model.search import Search, Violation
from tests.model.world import VOID, Commit, Decision, View, applied, decision_key, slim


class Truth(NamedTuple):
    """A log: its commits, what became of each, and the views after each version up to the last decided one."""

    place: str
    commits: tuple[Commit, ...]
    outcomes: tuple[str, ...]  # committed, aborted, undecided
    times: tuple[int, ...]
    views: tuple[View | None, ...]  # views[v] is the state after version v; None: nothing can be there

    @property
    def head(self) -> View | None:
        return self.views[-1]


StateCheck = Callable[["Checks", int, frozenset[Any]], str | None]
STATE_CHECKS: list[StateCheck] = []
OTHER_CHECKS: dict[str, Callable[..., str | None]] = {}


def holds(check: StateCheck) -> StateCheck:
    """Register what must hold in every state: it returns what is wrong, if anything. Its docstring is the sentence."""
    STATE_CHECKS.append(check)
    return check


def holds_of(what: str) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
    """Register what must hold of a report, or of what lands in the store (`winner`, `by-name`)."""

    def register(check: Callable[..., str | None]) -> Callable[..., str | None]:
        OTHER_CHECKS[what] = check
        return check

    return register


def sentence(check: Any) -> str:
    return (check.__doc__ or "").strip().splitlines()[0]


class Checks:
    """The invariants of one search, remembering what it has checked."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.store = search.store
        self.done: set[Any] = set()  # checks that need not be made again
        self._seen: set[tuple[int, int]] = set()
        self._truths: dict[int, dict[str, Truth]] = {}
        self._truth_of: dict[Any, Truth] = {}

    def state(self, content: int, reported: int) -> Violation | None:
        if (content, reported) in self._seen:
            return None
        self._seen.add((content, reported))
        for check in STATE_CHECKS:
            detail = check(self, content, self.search.reported[reported])
            if detail:
                return Violation(sentence(check), detail)
        return None

    def report(self, report: Report, content: int) -> Violation | None:
        return self._other(report.what, content, *report.data)

    def landed(self, before: int, after: int, key: int) -> Violation | None:
        """Check one change of the store."""
        name = self.store.keys[key]
        value = self.store.get(after, name)
        if not isinstance(value, Commit | Decision):
            return None
        found = self._other("winner", before, name, value)
        if found is None and isinstance(value, Commit) and value.events and value.events[-1][0] == "by-name":
            found = self._other("by-name", before, value, name[1], *value.events[-1][1:])
        return found

    def _other(self, what: str, content: int, *about: Any) -> Violation | None:
        check = OTHER_CHECKS[what]
        detail = check(self, content, *about)
        return Violation(sentence(check), detail) if detail else None

    # ---- the truth

    def truths(self, content: int) -> dict[str, Truth]:
        if content not in self._truths:
            own_content = self.store.contents[content]
            commits: dict[str, dict[int, Commit]] = {}
            for key, value in own_content.items():
                name = self.store.keys[key]
                if name[0] == "first" and name[1][0] == "log":
                    commits.setdefault(name[1][1], {})[name[1][2]] = self.store.values[value]
            self._truths[content] = {
                place: self._truth(content, place, versions) for place, versions in sorted(commits.items())
            }
        return self._truths[content]

    def decision(self, content: int, place: str, commit: Commit) -> Decision | None:
        """What decided an intent first; None while nothing did, and for a plain commit."""
        if commit.intent is None:
            return None
        key = decision_key(place, commit.intent)
        found: Decision | None = VOID if key is None else self.store.get(content, ("first", key))
        return found

    def _truth(self, content: int, place: str, versions: dict[int, Commit]) -> Truth:
        commits = tuple(versions[v] for v in sorted(versions))
        decisions = tuple(self.decision(content, place, commit) for commit in commits)
        key = (place, commits, decisions)
        if key not in self._truth_of:
            outcomes, times, view = [], [], View(place)
            views: list[View | None] = [view]
            for commit, decision in zip(commits, decisions, strict=True):
                if commit.intent is None:
                    outcome, time = "committed", commit.time
                elif decision is None:
                    outcome, time = "undecided", 0
                else:
                    outcome, time = reading.effect(decision, commit.time)
                outcomes.append(outcome)
                times.append(time)
                if outcome != "undecided":
                    last = views[-1]
                    views.append(None if last is None else plain(applied(last, commit, outcome, time)))
            self._truth_of[key] = Truth(place, commits, tuple(outcomes), tuple(times), tuple(views))
        return self._truth_of[key]

    def heads(self, content: int) -> tuple[tuple[str, int], ...]:
        """The last decided version of each log, for a reader to keep."""
        return tuple((place, len(truth.views) - 1) for place, truth in self.truths(content).items())


def plain(view: View | None) -> View | None:
    return None if view is None else slim(view)
