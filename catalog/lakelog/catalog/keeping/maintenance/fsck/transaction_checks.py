"""Checks over several logs: decisions of transactions, and saved cuts, against all logs that were checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from lakelog.catalog.core.ddl import decode_cut, folder_of_cuts
from lakelog.catalog.core.state import NamespaceState, SavedCut, TableState
from lakelog.catalog.keeping.maintenance.fsck.judges import NamespaceJudge
from lakelog.catalog.keeping.maintenance.fsck.links import as_it_is
from lakelog.catalog.keeping.maintenance.fsck.walk import Checked, Walk
from lakelog.log.checks.verify import read_decision
from lakelog.log.checks.verify_derived import said
from lakelog.log.errors import FormatError
from lakelog.log.format import COMMITTED, Decision, Intent, decode_decision
from lakelog.log.participants import is_in, is_listed, is_of, is_url

OBJECTS_AT_ONCE = 64
NOTES_MAX = 20
RESTORE = "restore this object from a backup"


def check_decisions(walk: Walk) -> None:
    """Check every decision of the warehouse, in all of its folders, and that the intents that it names are where it
    says."""
    known = {
        intent.txn for checked in walk.checked.values() for intent, _ in checked.verified.intents.values()
    }
    unused = 0
    for url, txn, data in _objects(walk, iter(walk.decisions)):
        walk.findings.count("decisions")
        try:
            decision = decode_decision(data, url)
        except FormatError as error:
            walk.findings.damage("decision-altered", url, said(error, url), RESTORE)
            continue
        if decision.txn != txn:
            walk.findings.damage(
                "decision-misplaced",
                url,
                f"is the decision of transaction {decision.txn}: it was copied or moved",
                "restore it from a backup, or delete it if there was no such transaction",
            )
            continue
        if decision.outcome == COMMITTED:
            folder = _folder_of(walk, url)
            if is_of(txn, folder, list(decision.positions)):
                _check_positions(walk, url, decision, folder)
            else:
                # It says nothing of any log: a client that may write there, and nowhere else, can forge it.
                walk.findings.damage(
                    "decision-void",
                    url,
                    "is in another folder, or names other logs, than those that the transaction's id has the hash of",
                    "restore the objects of this transaction from one backup",
                )
        if txn not in known and not any(
            _is_expired(walk, name, at) for name, at in decision.positions.items()
        ):
            unused += 1
            if unused <= NOTES_MAX:
                walk.findings.note(
                    "decision-unused",
                    url,
                    f"no log that was checked has an intent of this transaction, which {decision.outcome}",
                    "leave it: a decision is never deleted",
                )
    if unused > NOTES_MAX:
        url = walk.logs.warehouse
        walk.findings.note(
            "decision-unused",
            url,
            f"so are {unused - NOTES_MAX:,} more decisions",
            "leave them where they are",
        )


def _folder_of(walk: Walk, url: str) -> str:
    """Return the folder of the warehouse in whose `_txn` a decision is."""
    return url.removeprefix(f"{walk.logs.warehouse.rstrip('/')}/").rpartition("_txn/")[0].rstrip("/")


def _check_positions(walk: Walk, url: str, decision: Decision, folder: str) -> None:
    """Report a log that contradicts a decision. A decision says nothing about logs that are not in its own list, or not
    in its folder: a client that may write there and nowhere else can forge any."""
    for location, version in decision.positions.items():
        checked = walk.checked.get(location)
        if checked is None or (is_url(location) and not is_in(_home_of(checked), folder)):
            continue
        log, verified = checked.tracked.log, checked.verified
        where = log.replay.at(log.keys.commit(version))
        if version > verified.head and log.store.get(log.keys.commit(version)) is not None:
            continue  # it committed after that log was checked
        if version > verified.head:
            if _began_after(checked, decision):
                continue
            walk.findings.damage(
                "head-lost",
                where,
                f"transaction {decision.txn} committed there, as {url} says, but the log ends at version "
                f"{verified.head}",
                "restore it and what followed it from a backup",
            )
            continue
        intent, _ = verified.intents.get(version, (None, None))
        is_this = intent is not None and intent.txn == decision.txn
        is_said = version not in verified.unread and not _is_expired(walk, location, version)
        if not is_this and is_said and not _began_after(checked, decision):
            walk.findings.damage(
                "decision-disagrees",
                url,
                f"says that version {version} of {log.location} is its intent, and something else is there",
                "restore the objects of this transaction from one backup",
            )


def _began_after(checked: Checked, decision: Decision) -> bool:
    """Whether a log is younger than a transaction, whose time is not before that of its intent in any log. It is
    another one than that: a copy of a namespace has those above it made anew, at their places. One GET."""
    try:
        first = checked.tracked.log.entry_at(1)
    except FormatError:
        return False
    return first is not None and first.time_us > decision.time_us


def _home_of(checked: Checked) -> str:
    """Return the location of the namespace by which rights to a log outside of the warehouse are judged."""
    view = checked.verified.view
    link = None if view is None else view.state.link
    return "" if link is None else link.namespace


def _is_expired(walk: Walk, location: str, version: int) -> bool:
    checked = walk.checked.get(location)
    return checked is not None and version <= checked.verified.first


def check_undecided(walk: Walk) -> None:
    """Distinguish a transaction whose decision is lost from one that was never decided, by what other logs say of
    it."""
    for checked in walk.checked.values():
        undecided, log = checked.verified.undecided, checked.tracked.log
        if undecided is None or undecided.intent is None:
            continue
        said_by = _evidence_of_commit(walk, undecided.intent, undecided.commit_id)
        if said_by is None:
            continue
        read = read_decision(log, undecided)
        if read.decision is not None:
            continue  # decided meanwhile
        where = log.replay.at(log.keys.commit(undecided.version))
        walk.findings.found[:] = [
            finding
            for finding in walk.findings.found
            if (finding.kind, finding.where) != ("transaction-undecided", where)
        ]
        walk.findings.damage(
            "decision-altered" if read.broken else "decision-missing",
            read.where,
            (read.broken or f"the decision of transaction {undecided.intent.txn} is missing")
            + f"; {where} is its intent, and {said_by} says that it committed",
            RESTORE,
        )


def _evidence_of_commit(walk: Walk, undecided: Intent, commit_id: str) -> str | None:
    """Return a log of a transaction which says that this committed: after its intent, or in the tombstone of that.

    An intent proves that its log takes part. A tombstone does not: it counts in the folder of the transaction.
    """
    for location, checked in walk.checked.items():
        home = _home_of(checked) if is_url(location) else location
        if (commit_id in checked.verified.committed and is_in(home, undecided.folder)) or any(
            (intent.txn, intent.log) == (undecided.txn, location)
            and is_listed(intent)
            and settled is not None
            and settled.outcome == COMMITTED
            for intent, settled in checked.verified.intents.values()
        ):
            return checked.tracked.log.location
    return None


def check_cuts(walk: Walk) -> None:
    """Check the objects of the saved cuts of all namespaces that were checked, and that what they name can be read."""
    objects = _objects_of_cuts(walk)
    for location, checked in walk.checked.items():
        view = checked.verified.view
        if view is None or view.purged or not isinstance(view.state, NamespaceState) or not checked.own:
            continue
        prefix = folder_of_cuts(checked.tracked)
        for name, cut in view.state.cuts.items():
            walk.findings.count("saved cuts")
            key = f"{prefix}{cut.object}"
            # A namespace that got its name meanwhile is checked after its objects were listed.
            data = objects.pop(key, None) or checked.tracked.store.get(key)
            problem = _problem_of_cut(walk, location, name, cut, data)
            if problem is None:
                continue
            now = as_it_is(walk.logs, location)
            # Where it was dropped since the namespace was read, what it held is free to go.
            if now is None or (not now.purged and now.state.cuts.get(name) == cut):
                walk.findings.damage(problem[0], walk.logs.url(key), *problem[1:])
    for key in islice(objects, NOTES_MAX):
        walk.findings.note(
            "cut-unused",
            walk.logs.url(key),
            "no saved cut has this object: a writer died, or is saving or dropping it now",
            "nothing; it may be deleted while no cut is being saved",
        )


def _problem_of_cut(
    walk: Walk, folder: str, name: str, cut: SavedCut, data: bytes | None
) -> tuple[str, str, str] | None:
    """Return the kind of the damage, what is wrong and what to do about it; None where nothing is."""
    if data is None:
        return "cut-missing", f"the object of the saved cut {name!r} is missing", RESTORE
    if hashlib.sha256(data).hexdigest() != cut.hash:
        return "cut-altered", f"is not what the saved cut {name!r} was written with", RESTORE
    try:
        versions = decode_cut(data, cut.object, folder)
    except FormatError as error:
        return "cut-altered", f"cannot be read: {error}", RESTORE
    for location, version in versions.items():
        checked = walk.checked.get(location)
        if checked is None:
            continue
        log = checked.tracked.log
        if _is_purged_clone(checked):
            continue  # a restore or a copy has made a table of it: the log has the files of another warehouse
        newest = checked.verified.head - (checked.verified.undecided is not None)
        if not checked.verified.first <= version <= newest:
            return (
                "cut-unreadable",
                f"the saved cut {name!r} needs {log.replay.at(log.keys.commit(version))}, and that log has versions "
                f"{checked.verified.first} to {newest}",
                "restore that log from a backup, or drop the cut",
            )
    return None


def _is_purged_clone(checked: Checked) -> bool:
    view = checked.verified.view
    return (
        view is not None and view.purged and isinstance(view.state, TableState) and bool(view.state.origins)
    )


def _objects_of_cuts(walk: Walk) -> dict[str, bytes]:
    """Return the objects of saved cuts by their keys: of all the warehouse, or of the namespaces that were checked."""
    keys = walk.cuts
    if not walk.whole:
        held = [each.tracked for each in walk.checked.values() if isinstance(each.judge, NamespaceJudge)]
        found = (key for tracked in held for key in tracked.store.list_after(folder_of_cuts(tracked)))
        keys = [key for key in found if key.endswith(".json")]
    store = walk.logs.places.store(walk.logs.warehouse)
    return {url.removeprefix(f"{store.url}/"): data for url, _, data in _objects(walk, iter(keys))}


def _objects(walk: Walk, keys: Iterator[str]) -> Iterator[tuple[str, str, bytes]]:
    """Yield URL, name and content of JSON objects of the warehouse."""
    store = walk.logs.places.store(walk.logs.warehouse)
    while some := list(islice(keys, OBJECTS_AT_ONCE)):
        for key, data in zip(some, store.get_many(some), strict=True):
            if data is not None:
                name = key.rpartition("/")[2].removesuffix(".json")
                yield f"{store.url}/{key}", name, data
