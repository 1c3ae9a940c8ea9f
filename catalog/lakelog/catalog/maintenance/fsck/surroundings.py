"""Objects of a warehouse beside the logs that names lead to: unlinked logs, foreign objects, temporary files."""

from __future__ import annotations

import re

from lakelog.catalog.maintenance.fsck.walk import Walk
from lakelog.log.errors import LakelogError

_LOG = r"(?:[nt]-[a-z2-7]{26}/)*"
# Where a namespace's location is inside of the warehouse.
_AT_LOCATION = r".+/n-[a-z2-7]{26}/t-[a-z2-7]{26}/"
_LOGS_OBJECT = re.compile(rf"({_LOG}|{_AT_LOCATION})_log/.+")
_DATA_FILE = re.compile(rf"({_LOG}t-[a-z2-7]{{26}}/|{_AT_LOCATION})data/.+")
_VERSION = re.compile(r"_log/[0-9]{20}\.json$")
_SHARED = re.compile(r"_(txn|cut)/[^/]+\.json")
NOTES_MAX = 100


def check(walk: Walk) -> None:
    """Report the objects that nothing leads to. One LIST of the whole warehouse."""
    logs, findings = walk.logs, walk.findings
    store = logs.places.store(logs.warehouse)
    unlinked: dict[str, int] = {}
    versions: dict[str, int] = {}
    foreign = 0
    for key in store.list_after(""):
        match = _LOGS_OBJECT.fullmatch(key) or _DATA_FILE.fullmatch(key)
        if match is None:
            if not _SHARED.fullmatch(key) and not _is_below_a_table(walk, key):
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
            unlinked[location] = unlinked.get(location, 0) + 1
            versions[location] = versions.get(location, 0) + bool(_VERSION.search(key))
    for location, objects in unlinked.items():
        _check_unlinked(walk, location, objects, versions.get(location, 0))
    for key, size_bytes in store.list_leftovers(""):
        findings.note(
            "temporary-file",
            f"{store.url}/{key}",
            f"a writer died when it had written {size_bytes:,} bytes here",
            "leave it to vacuum",
        )


def _check_unlinked(walk: Walk, location: str, objects: int, versions: int) -> None:
    """Distinguish a log that was never linked, or was purged, from one whose name was lost."""
    url = walk.logs.url(location)
    try:
        sealed = versions < 2 or walk.logs.unread(location).log.load().sealed
    except LakelogError:
        sealed = True  # a check of that place reports more
    if not sealed:
        walk.findings.damage(
            "name-lost",
            url,
            f"no name leads to this log, though it was in use: it has {versions:,} versions and is not sealed",
            "its namespace has lost its newest commits: restore them from a backup",
        )
        return
    walk.findings.note(
        "log-unlinked",
        url,
        f"no name leads to these {objects:,} objects: of a creation under way or abandoned, or of a dropped object",
        "leave it to vacuum; lakelog fsck with this place as its argument checks it",
    )


def is_own(key: str) -> bool:
    """Whether a key of a warehouse is one of lakelog's."""
    return bool(_LOGS_OBJECT.fullmatch(key) or _DATA_FILE.fullmatch(key) or _SHARED.fullmatch(key))


def _is_below_a_table(walk: Walk, key: str) -> bool:
    """Whether a key lies in a table whose place a user chose inside of the warehouse."""
    parts = key.split("/")
    return any("/".join(parts[:depth]) in walk.checked for depth in range(1, len(parts)))
