"""What must hold, each as a function whose docstring is the sentence. It returns what is wrong, if anything is."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from tests.model import reading, writing
from tests.model.checks import Checks, Truth, holds, holds_of
from tests.model.rules import Rule, on
from tests.model.together import key_of
from tests.model.world import (
    Commit,
    Key,
    Request,
    Tombstone,
    View,
    base_key,
    decision_key,
    log_key,
    may_use,
    precondition,
)

# ---- of every state


@holds
def exactly_once(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A commit that was acknowledged is in all of its logs, exactly once"""
    for what, cid, *places in reported:
        if what == "ok":
            for place in places:
                times = _effects(checks, content, place)[cid]
                if times != 1:
                    return f"{cid} is {times} times in {place}"
    return None


@holds
def failed_has_no_effect(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """What was reported as failed never takes effect"""
    for what, cid, *_ in reported:
        if what == "failed" and not checks.search.scenario.overlapping:
            for place in checks.truths(content):
                if _effects(checks, content, place)[cid]:
                    return f"{cid} is in {place}"
    return None


@holds
def at_most_once(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A request that is retried is applied at most once"""
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
    took_effect = [commit for commit, outcome in pairs if outcome == "committed"]
    plain = Counter(commit.cid for commit in took_effect if not commit.changes)
    return plain + Counter(
        change.cid for commit in took_effect for change in commit.changes if not change.why
    )


@holds
def all_or_none(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A transaction takes effect in all of its logs or in none"""
    truths = checks.truths(content)
    for key, value in checks.store.contents[content].items():
        name = checks.store.keys[key]
        if name[0] != "first" or name[1][0] != "txn":
            continue
        decision = checks.store.values[value]
        for place, version in decision.positions:
            commits = truths[place].commits if place in truths else ()
            if version > len(commits) or _decision_key(place, commits[version - 1]) != name[1]:
                return f"{name[1]} is {decision.outcome} without its intent in {place}/{version}"
    for place, truth in truths.items():
        for commit, outcome in zip(truth.commits, truth.outcomes, strict=True):
            decision = checks.decision(content, place, commit)
            is_forged = commit.cid == "forged"  # what a forger makes of its own log is its own affair
            if (
                outcome == "committed"
                and not is_forged
                and decision
                and (place, commit.version) not in decision.positions
            ):
                return f"{commit.intent} takes effect in {place}/{commit.version}, which it does not name"
    return None


@holds
def decided_from_inside(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """No transaction is aborted or committed but by its coordinator, or by an actor that met its intent in its logs"""
    for intents in checks.search.scenario.honest:
        intent = intents[0]
        decision = checks.store.get(content, ("first", key_of(intent)))
        if decision is not None and decision.via and decision.via not in {intent.log for intent in intents}:
            return f"{intent.txn} is {decision.outcome} by way of {decision.via}"
    return None


@holds
def cuts_are_kept(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """No version that a saved cut has is expired"""
    for holder, truth in checks.truths(content).items():
        view = truth.views[-1]
        for place, version in sorted(view.state.cuts) if view is not None else ():
            base = checks.store.get(content, base_key(place, 1))
            if base is not None and base.view.version > version:
                return f"{place}/{version} of a cut of {holder} has expired"
    return None


@holds
def continues(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
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
def settles(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """The log alone shows what became of its intents, without their decisions"""
    for place, truth in checks.truths(content).items():
        for n, commit in enumerate(truth.commits[:-1]):
            if commit.intent is not None and truth.commits[n + 1].settles != (
                truth.outcomes[n],
                truth.times[n],
            ):
                return f"{place}/{n + 2} says {truth.commits[n + 1].settles} of the intent before it"
    return None


@holds
def preconditions_held(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """The preconditions of every commit hold in the state that it follows"""
    for place, truth in checks.truths(content).items():
        for n, commit in enumerate(truth.commits):
            view_before = truth.views[n] if n < len(truth.views) else None
            if truth.outcomes[n] == "committed" and view_before is not None and commit.flag != "reopens":
                for event in commit.events:
                    if why := precondition(event, view_before.state):
                        return f"{place}/{n + 1} {event}: {why}"
    return None


@holds
def as_of_is_whole(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """AS OF a time shows all or nothing of a transaction"""
    times: dict[Any, int] = {}
    for place, truth in checks.truths(content).items():
        for n, commit in enumerate(truth.commits):
            if commit.intent is not None and truth.outcomes[n] == "committed":
                time = times.setdefault(commit.intent.txn, truth.times[n])
                if time != truth.times[n]:
                    return f"{commit.cid} is of {truth.times[n]} in {place}/{n + 1}, and elsewhere of {time}"
    return None


@holds
def times_increase(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
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
def reader_reaches_head(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A reader is never stuck: from every stored state a cold reader reaches the head, and shows it as it is"""
    if ("read", content) in checks.done:
        return None
    checks.done.add(("read", content))
    for place, truth in checks.truths(content).items():
        _, reports = checks.search.alone(partial(reading.reader, place), content)
        if reports is None:
            return f"a reader of {place} never ends"
        view = reports[0].data[2]
        if view != truth.head:
            return f"a reader of {place} sees {view}, not {truth.head}"
    return None


@holds
def writer_gets_through(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """Any writer can go on: in every stored state an undisturbed writer can commit to every open log"""
    if ("write", content) in checks.done:
        return None
    checks.done.add(("write", content))
    for place, truth in checks.truths(content).items():
        head = truth.head
        if head is None or head.version == 0:
            continue
        may = checks.search.scenario.may
        if may is not None and not may_use(("txn", place), may):
            continue
        request = Request("solo", place, head.log_id, (("applied", "solo"),))
        _, reports = checks.search.alone(partial(writing.begin_and_commit, "solo", request, may=may), content)
        if reports is None or not reports or reports[-1].what == "view":
            return f"a writer of {place} never ends"
        if reports[-1].what == "failed" and head.status == "open" and _is_decided(truth):
            return f"a writer of {place} fails"
    return None


def _is_decided(truth: Truth) -> bool:
    return "undecided" not in truth.outcomes


@holds
def retries_succeed(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A client that retries, undisturbed, gets the answer that it is done"""
    for cid, make in checks.search.scenario.undisturbed:
        key = (content, cid, ("failed", cid) in reported)
        if key in checks.done or key[2]:
            continue
        checks.done.add(key)
        _, reports = checks.search.alone(make, content)
        if reports is None or not reports or reports[-1].what != "ok":
            return f"a retry of {cid} ends with {reports and [tuple(report) for report in reports]}"
    return None


@holds
def names_lead_to_open_logs(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
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
            # Without these rules it is so at once; what is looked for then is the write that goes astray.
            agree = on(Rule.MOVED_LOG_WRITTEN) and on(Rule.RENAME_IS_ONE)
            if agree and target.head.state.name not in ("", name):
                return f"{place}: {name} leads to {log_id}, which says that it is {target.head.state.name}"
    return None


@holds
def no_cycle(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
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
def purged_stays_purged(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A purged log is never restored, and nothing is written behind a seal as if it were not there"""
    for place, truth in checks.truths(content).items():
        status, log_id = "open", ""
        for n, commit in enumerate(truth.commits):
            if truth.outcomes[n] != "committed":
                continue
            allowed_texts = {
                "open": ("", "seals"),
                "sealed": ("restores", "purges", "reopens"),
                "purged": ("reopens",),
            }[status]
            if commit.flag not in allowed_texts:
                return f"{place}/{n + 1} {commit.flag or 'writes'} where the log is {status}"
            if commit.flag != "reopens" and log_id not in ("", commit.log_id):
                return f"{place}/{n + 1} is of {commit.log_id}, not of {log_id}"
            log_id = commit.log_id
            status = {"seals": "sealed", "purges": "purged"}.get(commit.flag, "open")
    return None


@holds
def files_are_there(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A file of a committed write, which a retained version needs, is never deleted"""
    for place, truth in checks.truths(content).items():
        oldest, number = 0, 1
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
def buried_is_whole(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """Once the version of a base is a tombstone, all versions up to it are: no cleaner looks at them again"""
    if not on(Rule.TOMBSTONES) or not on(Rule.BASES_ARE_KEPT):
        return None
    for place in checks.truths(content):
        number = 1
        while (base := checks.store.get(content, base_key(place, number))) is not None:
            number += 1
            if isinstance(checks.store.get(content, log_key(place, base.view.version)), Tombstone):
                for version in range(1, base.view.version):
                    if not isinstance(checks.store.get(content, log_key(place, version)), Tombstone):
                        return f"{place}/{base.view.version} is a tombstone, and {version} is not"
    return None


@holds
def serializable(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """Serializable transactions have no write skew: of two that each need the other's absence, one takes effect"""
    for place in checks.truths(content):
        if _effects(checks, content, place)["skew-1"]:
            for other_truth in checks.truths(content):
                if _effects(checks, content, other_truth)["skew-2"]:
                    return f"skew-1 in {place} and skew-2 in {other_truth}"
    return None


@holds
def rows_are_serial(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
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
        for removed_text in effects:
            if removed_text.startswith("delete-") and any(
                key.split("'")[0] == removed_text[7:] for key in alive
            ):
                return f"{place}: {removed_text} took effect, and {sorted(alive)} are there"
    return None


# ---- of what is reported, and of what lands


@holds_of("winner")
def winner_stays(checks: Checks, before: int, key: Any, value: Any) -> str | None:
    """A version's winner never changes, nor does a decision"""
    first = checks.store.get(before, ("first", key))
    return f"{key} was {first} and is now {value}" if first is not None and value != first else None


@holds_of("view")
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


@holds_of("cut")
def cut_is_whole(checks: Checks, content: int, views: tuple[View, ...] | None) -> str | None:
    """No reader of several logs sees a transaction in one log and not in another"""
    if views is None:
        return "a reader finds damage"
    for view in views:
        detail = reader_sees_truth(checks, content, view.place, (), view)
        if detail:
            return detail
    versions = {view.place: view.version for view in views}
    truths = checks.truths(content)
    for place, version in versions.items():
        for commit, outcome in list(zip(truths[place].commits, truths[place].outcomes, strict=True))[
            :version
        ]:
            if outcome == "committed" and commit.intent is not None:
                for partner, position in _positions(checks, content, place, commit):
                    if partner in versions and versions[partner] < position:
                        problem = f"{commit.cid} is seen in {place} at {version}"
                        return f"{problem} and not in {partner} at {versions[partner]}"
    return None


def _positions(checks: Checks, content: int, place: str, commit: Commit) -> tuple[tuple[str, int], ...]:
    decision = checks.decision(content, place, commit)
    return () if decision is None else decision.positions


def _decision_key(place: str, commit: Commit) -> Key | None:
    return None if commit.intent is None else decision_key(place, commit.intent)


@holds_of("by-name")
def written_by_name(
    checks: Checks, before: int, commit: Commit, place: str, namespace: str, name: str
) -> str | None:
    """A write by name lands in the log that has that name at that moment"""
    head = checks.truths(before)[namespace].head
    if head is not None and (name, commit.log_id) not in head.state.entries:
        return f"{commit.cid} means {name} and lands in {place}"
    return None


@holds_of("loaded")
def loaded_by_name(checks: Checks, content: int, view: View, namespace: str, name: str) -> str | None:
    """What is loaded by a name is a version of a table that had this name then"""
    detail = reader_sees_truth(checks, content, view.place, (), view)
    if detail:
        return detail
    if (view.state.parent, view.state.name) != (namespace, name):
        return (
            f"{namespace}.{name} is loaded as {view.log_id} at {view.version}, where it is {view.state.name}"
        )
    return None


@holds_of("streamed")
def stream_has_one_past(checks: Checks, content: int, place: str, version: int, hash: Any) -> str | None:
    """A stream goes on behind a version only if that is the commit that it has read"""
    commit = checks.truths(content)[place].commits[version - 1]
    if commit.attempt != hash:
        return f"a stream goes on behind version {version} of {place}, which is {commit.cid}, and has read another one"
    return None


@holds_of("sunk")
def batch_has_those_before(checks: Checks, content: int, place: str, version: int, hash: Any) -> str | None:
    """A stream writes a batch only into a log that has the one before"""
    commits = checks.truths(content)[place].commits
    if len(commits) < version or commits[version - 1].attempt != hash:
        return f"a stream has written to {place}, whose version {version} is not the one of its last batch"
    return None
