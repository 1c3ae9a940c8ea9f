"""Checks over several logs: decisions of transactions, and saved cuts, against all checked logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from lakelog.catalog.core.ddl import decode_cut, folder_of_cuts
from lakelog.catalog.core.state import NamespaceState, SavedCut, TableState
from lakelog.catalog.keeping.maintenance.fsck.judges import NamespaceJudge
from lakelog.catalog.keeping.maintenance.fsck.links import as_it_is
from lakelog.catalog.keeping.maintenance.fsck.walk import CheckedLog, WarehouseWalk
from lakelog.log.checks.verify import read_decision
from lakelog.log.checks.verify_derived import said
from lakelog.log.errors import FormatError
from lakelog.log.format import COMMITTED, Decision, Intent, decode_decision
from lakelog.log.participants import is_in, is_listed, is_of, is_url

OBJECTS_AT_ONCE = 64
NOTES_MAX = 20
RESTORE = "restore this object from a backup"


def check_decisions(walk: WarehouseWalk) -> None:
    """Check every decision of the warehouse, in all folders, and that the intents that it names exist."""
    known_txns = {
        intent.txn
        for checked_log in walk.checked.values()
        for intent, _ in checked_log.verified.intents.values()
    }
    unused_count = 0
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
                # It says nothing about any log, because a client that may write only there can forge it.
                walk.findings.damage(
                    "decision-void",
                    url,
                    "is in another folder, or names other logs, than those that the transaction's id has the hash of",
                    "restore the objects of this transaction from one backup",
                )
        if txn not in known_txns and not any(
            _is_expired(walk, name, at) for name, at in decision.positions.items()
        ):
            unused_count += 1
            if unused_count <= NOTES_MAX:
                walk.findings.note(
                    "decision-unused",
                    url,
                    f"no log that was checked has an intent of this transaction, which {decision.outcome}",
                    "leave it: a decision is never deleted",
                )
    if unused_count > NOTES_MAX:
        url = walk.logs.warehouse
        walk.findings.note(
            "decision-unused",
            url,
            f"so are {unused_count - NOTES_MAX:,} more decisions",
            "leave them where they are",
        )


def _folder_of(walk: WarehouseWalk, url: str) -> str:
    """Return the folder of the warehouse in whose `_txn` a decision is."""
    return url.removeprefix(f"{walk.logs.warehouse.rstrip('/')}/").rpartition("_txn/")[0].rstrip("/")


def _check_positions(walk: WarehouseWalk, url: str, decision: Decision, folder: str) -> None:
    """Report a log that contradicts a decision.

    A decision says nothing about logs that are not in its own list, or not in its folder. A client that may
    write only there can forge any decision.
    """
    for location, version in decision.positions.items():
        checked_log = walk.checked.get(location)
        if checked_log is None or (is_url(location) and not is_in(_home_of(checked_log), folder)):
            continue
        log, result = checked_log.tracked.log, checked_log.verified
        where = log.replay.at(log.keys.commit(version))
        if version > result.head and log.store.get(log.keys.commit(version)) is not None:
            continue  # it committed after the check of that log
        if version > result.head:
            if _began_after(checked_log, decision):
                continue
            walk.findings.damage(
                "head-lost",
                where,
                f"transaction {decision.txn} committed there, as {url} says, but the log ends at version "
                f"{result.head}",
                "restore it and what followed it from a backup",
            )
            continue
        intent, _ = result.intents.get(version, (None, None))
        is_this = intent is not None and intent.txn == decision.txn
        is_said = version not in result.unread and not _is_expired(walk, location, version)
        if not is_this and is_said and not _began_after(checked_log, decision):
            walk.findings.damage(
                "decision-disagrees",
                url,
                f"says that version {version} of {log.location} is its intent, and something else is there",
                "restore the objects of this transaction from one backup",
            )


def _began_after(checked_log: CheckedLog, decision: Decision) -> bool:
    """Return whether a log is younger than a transaction. Makes a GET request.

    The time of a transaction is not before the time of its intent in any log. So a younger log is another
    log: a copy of a namespace has the namespaces above it created anew, at their places.
    """
    try:
        first = checked_log.tracked.log.entry_at(1)
    except FormatError:
        return False
    return first is not None and first.time_us > decision.time_us


def _home_of(checked_log: CheckedLog) -> str:
    """Return the location of the namespace by which rights to a log outside of the warehouse are judged."""
    view = checked_log.verified.view
    link = None if view is None else view.state.link
    return "" if link is None else link.namespace


def _is_expired(walk: WarehouseWalk, location: str, version: int) -> bool:
    checked_log = walk.checked.get(location)
    return checked_log is not None and version <= checked_log.verified.first


def check_undecided(walk: WarehouseWalk) -> None:
    """Distinguish a lost decision of a transaction from a transaction that was never decided, by other logs."""
    for checked_log in walk.checked.values():
        intent_commit, log = checked_log.verified.undecided, checked_log.tracked.log
        if intent_commit is None or intent_commit.intent is None:
            continue
        said_by = _evidence_of_commit(walk, intent_commit.intent, intent_commit.commit_id)
        if said_by is None:
            continue
        stored_decision = read_decision(log, intent_commit)
        if stored_decision.decision is not None:
            continue  # decided since
        where = log.replay.at(log.keys.commit(intent_commit.version))
        walk.findings.found[:] = [
            issue
            for issue in walk.findings.found
            if (issue.kind, issue.where) != ("transaction-undecided", where)
        ]
        walk.findings.damage(
            "decision-altered" if stored_decision.broken else "decision-missing",
            stored_decision.where,
            (stored_decision.broken or f"the decision of transaction {intent_commit.intent.txn} is missing")
            + f"; {where} is its intent, and {said_by} says that it committed",
            RESTORE,
        )


def _evidence_of_commit(walk: WarehouseWalk, undecided_intent: Intent, commit_id: str) -> str | None:
    """Return a log of a transaction that shows its commit: after its intent, or in its intent's tombstone.

    An intent proves that its log takes part. A tombstone does not: it counts only in the folder of the
    transaction.
    """
    for location, checked_log in walk.checked.items():
        home = _home_of(checked_log) if is_url(location) else location
        if (commit_id in checked_log.verified.committed and is_in(home, undecided_intent.folder)) or any(
            (intent.txn, intent.log) == (undecided_intent.txn, location)
            and is_listed(intent)
            and decision is not None
            and decision.outcome == COMMITTED
            for intent, decision in checked_log.verified.intents.values()
        ):
            return checked_log.tracked.log.location
    return None


def check_cuts(walk: WarehouseWalk) -> None:
    """Check the objects of saved cuts of all checked namespaces, and that their versions are readable."""
    objects = _objects_of_cuts(walk)
    for location, checked_log in walk.checked.items():
        view = checked_log.verified.view
        if view is None or view.purged or not isinstance(view.state, NamespaceState) or not checked_log.own:
            continue
        prefix = folder_of_cuts(checked_log.tracked)
        for name, cut in view.state.cuts.items():
            walk.findings.count("saved cuts")
            key = f"{prefix}{cut.object}"
            # A namespace that got its name after the listing of objects is checked too.
            data = objects.pop(key, None) or checked_log.tracked.store.get(key)
            problem = _problem_of_cut(walk, location, name, cut, data)
            if problem is None:
                continue
            current_view = as_it_is(walk.logs, location)
            # If the cut was dropped since the namespace was read, its versions may be deleted.
            if current_view is None or (not current_view.purged and current_view.state.cuts.get(name) == cut):
                walk.findings.damage(problem[0], walk.logs.url(key), *problem[1:])
    for key in islice(objects, NOTES_MAX):
        walk.findings.note(
            "cut-unused",
            walk.logs.url(key),
            "no saved cut has this object: a writer died, or is saving or dropping it now",
            "nothing; it may be deleted while no cut is being saved",
        )


def _problem_of_cut(
    walk: WarehouseWalk, folder: str, name: str, cut: SavedCut, data: bytes | None
) -> tuple[str, str, str] | None:
    """Return the kind of the damage, its description and its remedy. None if there is no damage."""
    if data is None:
        return "cut-missing", f"the object of the saved cut {name!r} is missing", RESTORE
    if hashlib.sha256(data).hexdigest() != cut.hash:
        return "cut-altered", f"is not what the saved cut {name!r} was written with", RESTORE
    try:
        versions = decode_cut(data, cut.object, folder)
    except FormatError as error:
        return "cut-altered", f"cannot be read: {error}", RESTORE
    for location, version in versions.items():
        checked_log = walk.checked.get(location)
        if checked_log is None:
            continue
        log = checked_log.tracked.log
        if _is_purged_clone(checked_log):
            continue  # a restore or a copy has made a table of it: the log has the files of another warehouse
        newest = checked_log.verified.head - (checked_log.verified.undecided is not None)
        if not checked_log.verified.first <= version <= newest:
            return (
                "cut-unreadable",
                f"the saved cut {name!r} needs {log.replay.at(log.keys.commit(version))}, and that log has versions "
                f"{checked_log.verified.first} to {newest}",
                "restore that log from a backup, or drop the cut",
            )
    return None


def _is_purged_clone(checked_log: CheckedLog) -> bool:
    view = checked_log.verified.view
    return (
        view is not None and view.purged and isinstance(view.state, TableState) and bool(view.state.origins)
    )


def _objects_of_cuts(walk: WarehouseWalk) -> dict[str, bytes]:
    """Return the objects of saved cuts by their keys: of the whole warehouse, or of the checked namespaces."""
    keys = walk.cuts
    if not walk.whole:
        namespace_logs = [
            checked_log.tracked
            for checked_log in walk.checked.values()
            if isinstance(checked_log.judge, NamespaceJudge)
        ]
        cut_keys = (
            key
            for namespace_log in namespace_logs
            for key in namespace_log.store.list_after(folder_of_cuts(namespace_log))
        )
        keys = [key for key in cut_keys if key.endswith(".json")]
    store = walk.logs.places.store(walk.logs.warehouse)
    return {url.removeprefix(f"{store.url}/"): data for url, _, data in _objects(walk, iter(keys))}


def _objects(walk: WarehouseWalk, keys: Iterator[str]) -> Iterator[tuple[str, str, bytes]]:
    """Yield the URL, name and content of JSON objects of the warehouse."""
    store = walk.logs.places.store(walk.logs.warehouse)
    while batch := list(islice(keys, OBJECTS_AT_ONCE)):
        for key, data in zip(batch, store.get_many(batch), strict=True):
            if data is not None:
                name = key.rpartition("/")[2].removesuffix(".json")
                yield f"{store.url}/{key}", name, data
