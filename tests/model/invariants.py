"""What must hold, each as a function whose first line is the sentence.

The truth about a log is what its keys held first: every commit that was ever created, whatever has become of its key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.model import reading, writing
from tests.model.machine import Report
from tests.model.search import Search, Violation
from tests.model.world import Commit, Decision, Request, View, applied, precondition, slim


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


def holds(check: StateCheck) -> StateCheck:
    STATE_CHECKS.append(check)
    return check


def sentence(check: Any) -> str:
    return (check.__doc__ or "").strip().splitlines()[0]


class Checks:
    """The invariants of one search, remembering what it has checked."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.store = search.store
        self._seen: set[tuple[int, int]] = set()
        self._solo: set[Any] = set()
        self._truths: dict[int, dict[str, Truth]] = {}
        self._truth_of: dict[Any, Truth] = {}

    def state(self, content: int, told: int) -> Violation | None:
        if (content, told) in self._seen:
            return None
        self._seen.add((content, told))
        for check in STATE_CHECKS:
            detail = check(self, content, self.search.told[told])
            if detail:
                return Violation(sentence(check), detail)
        return None

    def report(self, report: Report, content: int) -> Violation | None:
        check = REPORT_CHECKS[report.what]
        detail = check(self, content, *report.data)
        return Violation(sentence(check), detail) if detail else None

    def landed(self, before: int, after: int, key: int) -> Violation | None:
        """Checks of one change of the store."""
        name = self.store.keys[key]
        value = self.store.get(after, name)
        first = self.store.get(before, ("first", name))
        if isinstance(value, Commit | Decision) and first is not None and value != first:
            return Violation(sentence(winners), f"{name} was {first} and is now {value}")
        if isinstance(value, Commit) and value.events:
            kind, *about = value.events[-1]
            if kind == "by-name":
                detail = written_by_name(self, before, value, name[1], *about)
                return Violation(sentence(written_by_name), detail) if detail else None
        return None

    # ---- the truth

    def truths(self, content: int) -> dict[str, Truth]:
        if content not in self._truths:
            here = self.store.contents[content]
            commits: dict[str, dict[int, Commit]] = {}
            for key, value in here.items():
                name = self.store.keys[key]
                if name[0] == "first" and name[1][0] == "log":
                    commits.setdefault(name[1][1], {})[name[1][2]] = self.store.values[value]
            self._truths[content] = {
                place: self._truth(content, place, versions) for place, versions in sorted(commits.items())
            }
        return self._truths[content]

    def _truth(self, content: int, place: str, versions: dict[int, Commit]) -> Truth:
        commits = tuple(versions[v] for v in sorted(versions))
        decisions = tuple(
            self.store.get(content, ("first", commit.intent)) if commit.intent else None for commit in commits
        )
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


def winners() -> None:
    """A version's winner never changes, nor does a decision"""


# ---- of every state


@holds
def exactly_once(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """A commit that was acknowledged is in all of its logs, exactly once"""
    for what, cid, *places in told:
        if what == "ok":
            for place in places:
                times = _effects(checks, content, place)[cid]
                if times != 1:
                    return f"{cid} is {times} times in {place}"
    return None


@holds
def failed_has_no_effect(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """What was reported as failed never takes effect"""
    for what, cid, *_ in told:
        if what == "failed" and not checks.search.scenario.overlapping:
            for place in checks.truths(content):
                if _effects(checks, content, place)[cid]:
                    return f"{cid} is in {place}"
    return None


@holds
def at_most_once(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """A request asked again is applied at most once"""
    for place in checks.truths(content):
        for cid, times in _effects(checks, content, place).items():
            if times > 1:
                return f"{cid} is {times} times in {place}"
    return None


def _effects(checks: Checks, content: int, place: str) -> Counter[str]:
    truth = checks.truths(content).get(place)
    if truth is None:
        return Counter()
    pairs = zip(truth.commits, truth.outcomes, strict=True)
    return Counter(commit.cid for commit, outcome in pairs if outcome == "committed")


@holds
def all_or_none(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """A transaction takes effect in all of its logs or in none"""
    truths = checks.truths(content)
    for key, value in checks.store.contents[content].items():
        name = checks.store.keys[key]
        if name[0] != "first" or name[1][0] != "txn":
            continue
        decision = checks.store.values[value]
        for place, version in decision.positions:
            commits = truths[place].commits if place in truths else ()
            if version > len(commits) or commits[version - 1].intent != name[1]:
                return f"{name[1]} is {decision.outcome} without its intent in {place}/{version}"
    for place, truth in truths.items():
        for commit, outcome in zip(truth.commits, truth.outcomes, strict=True):
            decision = checks.store.get(content, ("first", commit.intent)) if commit.intent else None
            if outcome == "committed" and decision and (place, commit.version) not in decision.positions:
                return f"{commit.intent} takes effect in {place}/{commit.version}, which it does not name"
    return None


@holds
def continues(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """Every commit continues the one before it, and nothing follows an undecided intent"""
    for place, truth in checks.truths(content).items():
        if None in truth.views:
            return f"{place}/{truth.views.index(None)} does not continue the version before it"
        if [commit.version for commit in truth.commits] != list(range(1, len(truth.commits) + 1)):
            return f"{place} has a gap"
        if "undecided" in truth.outcomes[:-1]:
            return f"{place}/{truth.outcomes.index('undecided') + 1} is undecided, and was followed"
    return None


@holds
def settles(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """The log alone tells what became of its intents, without their decisions"""
    for place, truth in checks.truths(content).items():
        for n, commit in enumerate(truth.commits[:-1]):
            if commit.intent is not None and truth.commits[n + 1].settles != (
                truth.outcomes[n],
                truth.times[n],
            ):
                return f"{place}/{n + 2} says {truth.commits[n + 1].settles} of the intent before it"
    return None


@holds
def preconditions_held(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """The preconditions of every commit hold in the state that it follows"""
    for place, truth in checks.truths(content).items():
        for n, commit in enumerate(truth.commits):
            before = truth.views[n] if n < len(truth.views) else None
            if truth.outcomes[n] == "committed" and before is not None and commit.flag != "reopens":
                for event in commit.events:
                    if why := precondition(event, before.state):
                        return f"{place}/{n + 1} {event}: {why}"
    return None


@holds
def as_of_is_whole(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """AS OF a time shows all or nothing of a transaction"""
    times: dict[Any, int] = {}
    for place, truth in checks.truths(content).items():
        for n, commit in enumerate(truth.commits):
            if commit.intent is not None and truth.outcomes[n] == "committed":
                time = times.setdefault(commit.intent, truth.times[n])
                if time != truth.times[n]:
                    return f"{commit.cid} is of {truth.times[n]} in {place}/{n + 1}, and elsewhere of {time}"
    return None


@holds
def times_increase(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """The times of a log's versions increase, so that AS OF a time is a prefix"""
    for place, truth in checks.truths(content).items():
        last = 0
        for n, outcome in enumerate(truth.outcomes):
            if outcome == "committed":
                if truth.times[n] <= last:
                    return f"{place}/{n + 1} has the time {truth.times[n]} after {last}"
                last = truth.times[n]
    return None


@holds
def reader_reaches_head(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """A reader is never stuck: from every stored state a cold reader reaches the head, and shows it as it is"""
    if ("read", content) in checks._solo:
        return None
    checks._solo.add(("read", content))
    for place, truth in checks.truths(content).items():
        _, reports = checks.search.alone(lambda place=place: reading.reader(place), content)
        if reports is None:
            return f"a reader of {place} never ends"
        view = reports[0].data[2]
        if view != truth.head:
            return f"a reader of {place} sees {view}, not {truth.head}"
    return None


@holds
def writer_gets_through(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """Anybody can go on: in every stored state an undisturbed writer can commit to every open log"""
    if ("write", content) in checks._solo:
        return None
    checks._solo.add(("write", content))
    for place, truth in checks.truths(content).items():
        head = truth.head
        if head is None or head.version == 0:
            continue
        request = Request("solo", place, head.log_id, (("applied", "solo"),))
        _, reports = checks.search.alone(lambda r=request: writing.begin_and_commit("solo", r), content)
        if reports is None or not reports or reports[-1].what == "view":
            return f"a writer of {place} never ends"
        if reports[-1].what == "failed" and head.status == "open" and _decided(truth):
            return f"a writer of {place} fails"
    return None


def _decided(truth: Truth) -> bool:
    return "undecided" not in truth.outcomes


@holds
def asking_again_succeeds(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """Who asks again, undisturbed, is told that it is done"""
    for cid, make in checks.search.scenario.undisturbed:
        key = (content, cid, ("failed", cid) in told)
        if key in checks._solo or key[2]:
            continue
        checks._solo.add(key)
        _, reports = checks.search.alone(make, content)
        if reports is None or not reports or reports[-1].what != "ok":
            return f"asking for {cid} again ends with {reports and [tuple(report) for report in reports]}"
    return None


@holds
def names_lead_to_open_logs(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """Each log has one name, none that is sealed, purged or missing has one, and a dropped namespace has none in it"""
    truths = checks.truths(content)
    names: dict[str, str] = {}
    for place, truth in truths.items():
        head = truth.head
        if head is None or not head.state.entries:
            continue
        for name, log_id in head.state.entries:
            if head.status != "open":
                inside = truths.get(log_id.split("#")[0])
                if inside is not None and inside.head is not None and inside.head.status == "open":
                    return f"{place} is {head.status} and has {name}, which leads to {log_id}"
                continue
            if names.setdefault(log_id, f"{place}.{name}") != f"{place}.{name}":
                return f"{log_id} has two names: {names[log_id]} and {place}.{name}"
            target = truths.get(log_id.split("#")[0])
            if target is None or target.head is None or target.head.version == 0:
                return f"{place}: {name} leads to nothing"
            if target.head.status != "open" or target.head.log_id != log_id:
                return f"{place}: {name} leads to {log_id}, which is {target.head.status} and {target.head.log_id}"
            if target.head.state.parent not in ("", place):
                return (
                    f"{place}: {name} leads to {log_id}, which says that it is in {target.head.state.parent}"
                )
    return None


@holds
def no_cycle(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """No namespace is its own ancestor"""
    truths = checks.truths(content)
    for place in truths:
        above, seen = place, set()
        while above in truths and above not in seen:
            seen.add(above)
            head = truths[above].head
            above = head.state.parent if head is not None else ""
        if above in seen:
            return f"{place} is below itself: {sorted(seen)}"
    return None


@holds
def purged_stays_purged(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """A purged log is never restored, and nothing is written behind a seal as if it were not there"""
    for place, truth in checks.truths(content).items():
        status, log_id = "open", ""
        for n, commit in enumerate(truth.commits):
            if truth.outcomes[n] != "committed":
                continue
            allowed = {
                "open": ("", "seals"),
                "sealed": ("restores", "purges", "reopens"),
                "purged": ("reopens",),
            }[status]
            if commit.flag not in allowed:
                return f"{place}/{n + 1} {commit.flag or 'writes'} where the log is {status}"
            if commit.flag != "reopens" and log_id not in ("", commit.log_id):
                return f"{place}/{n + 1} is of {commit.log_id}, not of {log_id}"
            log_id = commit.log_id
            status = {"seals": "sealed", "purges": "purged"}.get(commit.flag, "open")
    return None


@holds
def files_are_there(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """A file of a committed write, which a retained version needs, is never deleted"""
    for place, truth in checks.truths(content).items():
        oldest = checks.store.get(content, ("ghost-base", place)) or 0
        number = 1
        while (base := checks.store.get(content, ("base", place, number))) is not None:
            oldest, number = base.view.version, number + 1
        for view in truth.views[oldest:]:
            if view is None or truth.head is None or truth.head.status == "purged":
                continue
            if view.log_id != truth.head.log_id:
                continue
            for name, version in view.state.files:
                if checks.store.get(content, ("file", place, name, version)) is None:
                    return f"{place}/{view.version} needs the file {name}"
    return None


@holds
def serializable(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """Serializable transactions have no write skew: of two that each need the other's absence, one takes effect"""
    for place in checks.truths(content):
        if _effects(checks, content, place)["skew-1"]:
            for other in checks.truths(content):
                if _effects(checks, content, other)["skew-2"]:
                    return f"skew-1 in {place} and skew-2 in {other}"
    return None


@holds
def rows_are_serial(checks: Checks, content: int, told: frozenset[Any]) -> str | None:
    """Rows are those of some order of the changes: none is resurrected, and no deletion is lost"""
    for place, truth in checks.truths(content).items():
        head = truth.head
        if head is None or not head.state.rows:
            continue
        rows = head.state.rows
        files = {row[1]: row[2] for row in rows if row[0] == "file"}
        for row in rows:
            if row[0] == "dv" and row[1] not in files:
                return f"{place} has a deletion vector of {row[1]}, which is gone"
        deleted = {row[1]: row[2] for row in rows if row[0] == "dv"}
        alive = {
            key for name, keys in files.items() for key in keys if key not in deleted.get(name, frozenset())
        }
        effects = _effects(checks, content, place)
        for gone in effects:
            if gone.startswith("delete-") and any(key.split("'")[0] == gone[7:] for key in alive):
                return f"{place}: {gone} took effect, and {sorted(alive)} are there"
    return None


# ---- of what is reported


def reader_sees_truth(
    checks: Checks, content: int, place: str, floor: tuple[tuple[str, int], ...], view: View | None
) -> str | None:
    """A reader's view is a prefix of the decided versions, with all that was acknowledged before it began"""
    truth = checks.truths(content)[place]
    if view is None:
        return f"a reader of {place} finds damage"
    if view.version >= len(truth.views) or view != truth.views[view.version]:
        return f"a reader of {place} sees {view} at version {view.version}"
    least = dict(floor).get(place, 0)
    if view.version < least:
        return f"a reader of {place} sees version {view.version}, and {least} was there when it began"
    return None


def cut_is_whole(checks: Checks, content: int, views: tuple[View, ...] | None) -> str | None:
    """No reader of several logs sees a transaction in one log and not in another"""
    if views is None:
        return "a reader finds damage"
    for view in views:
        detail = reader_sees_truth(checks, content, view.place, (), view)
        if detail:
            return detail
    shown = {view.place: view.version for view in views}
    truths = checks.truths(content)
    for place, version in shown.items():
        for commit, outcome in list(zip(truths[place].commits, truths[place].outcomes, strict=True))[
            :version
        ]:
            if outcome == "committed" and commit.intent is not None:
                for other, position in checks.store.get(content, ("first", commit.intent)).positions:
                    if other in shown and shown[other] < position:
                        return f"{commit.cid} is seen in {place} at {version} and not in {other} at {shown[other]}"
    return None


def written_by_name(
    checks: Checks, before: int, commit: Commit, place: str, namespace: str, name: str
) -> str | None:
    """A write by name lands in the log that has that name at that moment"""
    head = checks.truths(before)[namespace].head
    if head is not None and (name, commit.log_id) not in head.state.entries:
        return f"{commit.cid} means {name} and lands in {place}"
    return None


REPORT_CHECKS: dict[str, Any] = {"view": reader_sees_truth, "cut": cut_is_whole}
