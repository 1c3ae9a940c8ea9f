"""Objects of a warehouse outside of linked logs: unlinked logs, foreign objects, temporary files."""

from __future__ import annotations

import re
from typing import Any

from lakelog.catalog.core.state import (
    NAMESPACE,
    TABLE,
    NamespaceCreated,
    NamespaceRestored,
    TableCreated,
    TableMoved,
    TableRestored,
    namespace_events,
    table_events,
)
from lakelog.catalog.keeping.maintenance.fsck.judges import NamespaceJudge
from lakelog.catalog.keeping.maintenance.fsck.links import LOOKS_MAX, CheckedLink, as_it_is, names_of
from lakelog.catalog.keeping.maintenance.fsck.walk import WarehouseWalk
from lakelog.log import Log, LogView
from lakelog.log.errors import LakelogError, StorageError
from lakelog.log.grammar import DOCTOR_FOLDER, PUBLISHED_FOLDER, RIGHTS_KEY, ROOT_RIGHTS_KEY, is_txn

_LOG = r"(?:[nt]-[a-z2-7]{26}/)*"
# If a namespace's location is inside of the warehouse.
_AT_LOCATION = r".+/n-[a-z2-7]{26}/t-[a-z2-7]{26}/"
_LOGS_OBJECT = re.compile(rf"({_LOG}|{_AT_LOCATION})_log/.+")
_DATA_FILE = re.compile(rf"({_LOG}t-[a-z2-7]{{26}}/|{_AT_LOCATION})data/.+")
_VERSION = re.compile(r"_log/[0-9]{20}\.json$")
_CUT = re.compile(r"(?:n-[a-z2-7]{26}/)*_cut/[^/]+\.json")
_IN_TXN = re.compile(r"(?:.+/)?_txn/([^/]+)")
NOTES_MAX = 100


def check(walk: WarehouseWalk) -> None:
    """Report the objects that nothing leads to. Makes a LIST of the whole warehouse."""
    logs, findings = walk.logs, walk.findings
    store = logs.places.store(logs.warehouse)
    object_counts: dict[str, int] = {}
    versions: dict[str, int] = {}
    of_doctor: dict[str, int] = {}
    foreign = 0
    for key in store.list_after(""):
        match = _LOGS_OBJECT.fullmatch(key) or _DATA_FILE.fullmatch(key)
        if match is None:
            if _CUT.fullmatch(key):
                walk.cuts.append(key)
            elif _is_decision(key):
                walk.decisions.append(key)
            elif is_of_doctor(key):
                folder = "/".join(key.split("/")[:2])
                of_doctor[folder] = of_doctor.get(folder, 0) + 1
            elif not is_published(key) and not _is_shared(key) and not _is_below_a_table(walk, key):
                foreign += 1
                if foreign <= NOTES_MAX:
                    findings.note(
                        "foreign-object",
                        f"{store.url}/{key}",
                        "this object is not lakelog's",
                        "delete it if no other program needs it",
                    )
            continue
        location = match[1].rstrip("/")
        if location not in walk.checked:
            object_counts[location] = object_counts.get(location, 0) + 1
            versions[location] = versions.get(location, 0) + bool(_VERSION.search(key))
    # A namespace is checked before its contents.
    for location, objects in sorted(object_counts.items()):
        if location in walk.checked:
            continue
        _check_unlinked(walk, location, objects, versions.get(location, 0))
    for folder, objects in of_doctor.items():
        findings.note(
            "doctor-left",
            f"{store.url}/{folder}",
            f"{objects:,} objects of an examination by lakelog doctor, which runs now or was killed",
            "where it does not run, delete the folder; an examination that begins a day later does that too",
        )
    for key, size_bytes in store.list_leftovers(""):
        findings.note(
            "temporary-file",
            f"{store.url}/{key}",
            f"a writer died when it had written {size_bytes:,} bytes here",
            "leave it to vacuum",
        )


def _check_unlinked(walk: WarehouseWalk, location: str, objects: int, versions: int) -> None:
    """Distinguish a log that was never linked, or was purged, from a log whose name was lost.

    A log that got its name after the check of its namespace, by a creation or a move, is checked now.
    """
    url = walk.logs.url(location)
    try:
        link = _in_use(walk, location) if versions >= 2 else None
    except StorageError:
        raise
    except LakelogError:
        link = None  # a check of that place reports more
    if isinstance(link, CheckedLink):
        check = walk.namespace if link.space == NAMESPACE else walk.table
        check(location, link.path, link.entry, link.parent, dropped=link.dropped)
    elif link is not None:
        walk.findings.damage(
            "name-lost",
            url,
            f"no name leads to this log, though it was in use: it has {versions:,} versions and is not sealed",
            "its namespace has lost its newest commits: restore them from a backup",
        )
    else:
        walk.findings.note(
            "log-unlinked",
            url,
            f"no name leads to these {objects:,} objects: of a creation under way or abandoned, or of a dropped object",
            "leave it to vacuum; lakelog fsck with this place as its argument checks it",
        )


def _in_use(walk: WarehouseWalk, location: str) -> CheckedLink | LogView[None] | None:
    """Return the link to a log now, or else the log itself, unless it is sealed or has to be removed.

    Its name is read between two reads of the log, which records each move with the new namespace. So if both
    reads show the same version, name and log are of the same moment.
    """
    log = walk.logs.unread(location).log
    for _ in range(LOOKS_MAX):
        view = log.load()
        if view.sealed:
            return None
        for home in _homes(walk, location, log, view.version):
            at_home = as_it_is(walk.logs, home)
            if at_home is None:
                continue  # its damage is reported
            if view.log_id in at_home.state.forgotten:
                return None
            for space, name, entry, is_gone in names_of(at_home.state, view.log_id):
                above = walk.checked.get(home)
                path = (*((above and above.name) or ()), name)
                return CheckedLink(home, space, path, entry, is_gone or at_home.sealed)
        if log.load().hash == view.hash:
            return view
    return None


def _homes(walk: WarehouseWalk, location: str, log: Log[None], version: int) -> list[str]:
    """Return the location of the namespace that a log names as its own.

    If it names none, return all namespaces.
    """
    kind = TABLE if location.rpartition("/")[2].startswith("t-") else NAMESPACE
    try:
        home = _home_of(log, version, kind)
    except StorageError:
        raise
    except LakelogError:
        home = None  # the commit that names it is damaged
    if home is not None:
        return [home]
    return [
        place for place, checked_log in walk.checked.items() if isinstance(checked_log.judge, NamespaceJudge)
    ]


def _home_of(log: Log[Any], last: int, kind: str) -> str | None:
    """Return the location of the namespace that a log names as its own at version `last`.

    None if that commit has expired, or names none.
    """
    for commit in log.commits(last=last, newest_first=True):
        for event in reversed(table_events(commit) if kind == TABLE else namespace_events(commit)):
            match event:
                case TableCreated() | TableMoved() | TableRestored():
                    return event.namespace
                case NamespaceCreated() | NamespaceRestored():
                    return event.parent
                case _:
                    continue
    return None


def _is_decision(key: str) -> bool:
    match = _IN_TXN.fullmatch(key)
    return match is not None and match[1].endswith(".json") and is_txn(match[1].removesuffix(".json"))


def _is_shared(key: str) -> bool:
    match = _IN_TXN.fullmatch(key)
    return (
        _is_decision(key) or (match is not None and match[1] == RIGHTS_KEY) or _CUT.fullmatch(key) is not None
    )


def is_of_doctor(key: str) -> bool:
    return key.startswith(f"{DOCTOR_FOLDER}/")


def is_published(key: str) -> bool:
    return key.startswith(f"{PUBLISHED_FOLDER}/")


def is_proof(key: str) -> bool:
    """Return whether a key is of the object that proves a server's conditions before there is a warehouse."""
    return key == ROOT_RIGHTS_KEY


def is_own(key: str) -> bool:
    """Return whether a key of a warehouse is lakelog's."""
    return bool(_LOGS_OBJECT.fullmatch(key) or _DATA_FILE.fullmatch(key) or _is_shared(key))


def _is_below_a_table(walk: WarehouseWalk, key: str) -> bool:
    """Return whether a key is in a table whose place a user chose inside of the warehouse."""
    parts = key.split("/")
    return any("/".join(parts[:depth]) in walk.checked for depth in range(1, len(parts)))
