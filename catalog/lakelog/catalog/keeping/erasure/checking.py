"""Reading every remaining object of a table, to verify that none of them has a row of an erasure.

Data files are read completely in the columns of the condition, whatever is known of them. Objects of the log
are checked to be from after the erasure, or to hold no values. Then their entries belong to files that were
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelog.catalog.core.files import decode_files, is_elsewhere
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.keeping.erasure.history import files_of_intent, intents_at, schema_at
from lakelog.catalog.keeping.erasure.holdings import counted_files, listed, needed
from lakelog.catalog.keeping.erasure.proposed import proposals_with_rows
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.log.errors import FormatError
from lakelog.log.format import Commit, Tombstone
from lakelog.log.keys import blob_version, is_versioned
from lakelog.log.replay import is_blank

OBJECTS_AT_ONCE = 64


@dataclass(slots=True)
class ErasureCheck:
    """The number of checked objects and rows, and descriptions of the problems."""

    objects: int = 0
    rows: int = 0
    left: list[str] = field(default_factory=list)
    again: bool = False
    """Whether another round may help: rows of the erasure came in since, or files that nothing needs."""
    unburied: list[int] = field(default_factory=list)
    """Expired versions that are no tombstones, though expiry has ended, from a copy made during an expiry."""


def check(head: TableHead, rows: RowSet, values: Sequence[str]) -> ErasureCheck:
    """Check all remaining objects of a table after its last erasure.

    `values` are texts that no statement may quote.
    """
    result = ErasureCheck()
    rows = rows.anew()
    _check_data(head, rows, result)
    for problem in (
        *_commits(head, rows, result),
        *_without_effect(head, rows, result),
        *_bases(head, result),
        *_derived(head, result),
        *_proposals(head, rows, values, result),
    ):
        result.left.append(f"{head.name}: {problem}")
    return result


def _check_data(head: TableHead, rows: RowSet, checked: ErasureCheck) -> None:
    table_log = head.tracked
    entries: dict[str, int] = {}
    rows_by_path: dict[str, int] = {}
    for state in needed(head):
        for chunk in state.files.chunks(table_log.log.read_blobs):
            files = chunk.filter(
                pa.array([path not in entries for path in chunk["path"].to_pylist()], pa.bool_())
            )
            entries |= dict(zip(files["path"].to_pylist(), files["rows"].to_pylist(), strict=True))
            rows.note(head, files)
            rows_by_path |= rows.held(head, files)
    sizes = dict(listed(table_log))
    checked.objects += len(sizes.keys() | entries.keys())
    checked.rows += sum(entries.values())
    for path, count in rows_by_path.items():
        if is_elsewhere(path):
            checked.left.append(f"{head.name}: {count:,} such rows are in {path}, another writer's")
        else:
            checked.again = True
            checked.left.append(
                f"{head.name}: {count:,} such rows are in {path}, which came in meanwhile, or is kept for "
                "a dropped clone"
            )
    other_files = [item for item in sizes.items() if item[0] not in entries]
    for path, matching_rows in counted_files(head, rows, other_files):
        if matching_rows is None or matching_rows:
            checked.again = True
            checked.left.append(
                f"{head.name}: {path} is in no version, and has such rows, or may: a write put it there meanwhile"
            )


def _commits(head: TableHead, rows: RowSet, checked: ErasureCheck) -> Iterator[str]:
    log, erased_version = head.tracked.log, head.state.erased
    for start in range(1, erased_version + 1, OBJECTS_AT_ONCE):
        versions = range(start, min(start + OBJECTS_AT_ONCE, erased_version + 1))
        for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
            checked.objects += 1
            entry = None if data is None else log.replay.entry(version, data)
            if not isinstance(entry, Tombstone):
                yield f"version {version} is no tombstone"
            if isinstance(entry, Commit):
                checked.unburied.append(version)
                checked.again = True
    sidecar_names = {
        sidecar.name
        for entry in log.replay.effects(erased_version + 1, head.version)
        if isinstance(entry, Commit)
        for sidecar in entry.sidecars
    }
    checked.objects += head.version - erased_version
    place = log.keys.sidecar("")
    for key in log.store.list_after(place):
        checked.objects += 1
        name = key.removeprefix(place)
        version = blob_version(name) if is_versioned(name) else 0
        if name in sidecar_names or version > head.version:
            continue
        # A list of a later version comes from a writer that saw the erasure, and then lost a race.
        if version <= erased_version or _lists_rows(log.store.get(key), rows):
            checked.again = True
            yield f"{key} is of no commit, and has such rows, or may"


def _lists_rows(data: bytes | None, rows: RowSet) -> bool:
    """Return whether a list of files may have rows of the erasure, by its bounds.

    A list of removed files has no bounds.
    """
    try:
        return data is not None and rows.may_be_in(decode_files(data))
    except FormatError:
        return False


def _without_effect(head: TableHead, rows: RowSet, checked: ErasureCheck) -> Iterator[str]:
    """Check transactions that failed since. They have bounds of files that they deleted again."""
    effective_versions = {
        entry.version for entry in head.tracked.log.replay.effects(head.state.erased + 1, head.version)
    }
    other_versions = [
        version
        for version in range(head.state.erased + 1, head.version + 2)
        if version not in effective_versions
    ]
    for intent in intents_at(head, other_versions):
        schema = schema_at(rows.schemas, intent.version)
        if any(rows.may_be_in(files) for files in files_of_intent(head, intent, schema)):
            checked.again = True
            yield f"version {intent.version}, of a transaction that failed or is under way, may have bounds of them"


def _bases(head: TableHead, checked: ErasureCheck) -> Iterator[str]:
    log, number = head.tracked.log, 1
    data = log.store.get(log.keys.base(number))
    while data is not None:
        checked.objects += 1
        base, number = log.replay.base(number, data), number + 1
        data = log.store.get(log.keys.base(number))
        if base.root.version < head.state.erased and not is_blank(base):
            yield f"base {base.number} is of version {base.root.version}, and has a state"


def _derived(head: TableHead, checked: ErasureCheck) -> Iterator[str]:
    keys, store, erased_version = head.tracked.log.keys, head.tracked.log.store, head.state.erased
    for key in store.list_after(keys.manifests):
        checked.objects += 1
        name = key.removeprefix(keys.manifests)
        if not is_versioned(name) or blob_version(name) < erased_version:
            yield f"{key} is from before the erasure"
    for key in store.list_after(keys.snapshots):
        checked.objects += 1
        version = keys.snapshot_version(key)
        if version is None or version < erased_version:
            yield f"{key} is from before the erasure"
    for key in store.list_after(keys.lost):
        checked.objects += 1
        yield f"{key} came there meanwhile"


def _proposals(head: TableHead, rows: RowSet, values: Sequence[str], checked: ErasureCheck) -> Iterator[str]:
    """Check proposals of other clients, by which rows of the erasure would come in with a later commit."""
    log = head.tracked.log
    checked.objects += sum(1 for _ in log.store.list_after(log.keys.inbox))
    for proposal in proposals_with_rows(head, rows, values):
        checked.again = checked.again or proposal.is_read
        yield f"the proposal {proposal.key}, which came meanwhile, {proposal.what}"
