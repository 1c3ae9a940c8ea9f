"""Reading every object that is left of a table, to see that no row of an erasure is in any of them.

Data files are read whole in the columns of the condition, whatever is known of them. Of what the log keeps, it is
checked that it is from after the erasure, or holds no values: then what it has of files is of files that were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.keeping.erasure.history import files_of_intent, intents_at
from lakelog.catalog.keeping.erasure.holdings import counted_files, listed, needed
from lakelog.catalog.keeping.erasure.proposed import proposals_with_rows
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.log.format import Commit, Tombstone
from lakelog.log.keys import blob_version, is_versioned
from lakelog.log.replay import is_blank

OBJECTS_AT_ONCE = 64


@dataclass(slots=True)
class Checked:
    """How many objects and rows were looked at, and what is wrong, in words."""

    objects: int = 0
    rows: int = 0
    left: list[str] = field(default_factory=list)
    again: bool = False
    """Whether another round may help: such rows came in meanwhile, or files that nothing needs."""
    unburied: list[int] = field(default_factory=list)
    """Expired versions that are no tombstones, though expiry has ended: of a copy that was made while it went on."""


def check(head: TableHead, rows: RowSet, values: Sequence[str]) -> Checked:
    """Look at all that is left of a table after its last erasure. `values` are texts that no statement may quote."""
    checked = Checked()
    rows = rows.anew()
    _check_data(head, rows, checked)
    for what in (
        *_commits(head, checked),
        *_without_effect(head, rows, checked),
        *_bases(head, checked),
        *_derived(head, checked),
        *_proposals(head, rows, values, checked),
    ):
        checked.left.append(f"{head.name}: {what}")
    return checked


def _check_data(head: TableHead, rows: RowSet, checked: Checked) -> None:
    tracked = head.tracked
    entries: dict[str, int] = {}
    held: dict[str, int] = {}
    for state in needed(head):
        for chunk in state.files.chunks(tracked.log.read_blobs):
            files = chunk.filter(
                pa.array([path not in entries for path in chunk["path"].to_pylist()], pa.bool_())
            )
            entries |= dict(zip(files["path"].to_pylist(), files["rows"].to_pylist(), strict=True))
            rows.note(head, files)
            held |= rows.held(head, files)
    there = dict(listed(tracked))
    checked.objects += len(there.keys() | entries.keys())
    checked.rows += sum(entries.values())
    for path, count in held.items():
        if is_elsewhere(path):
            checked.left.append(f"{head.name}: {count:,} such rows are in {path}, another writer's")
        else:
            checked.again = True
            checked.left.append(
                f"{head.name}: {count:,} such rows are in {path}, which came in meanwhile, or is kept for "
                "a dropped clone"
            )
    others = [each for each in there.items() if each[0] not in entries]
    for path, found in counted_files(head, rows, others):
        if found is None or found:
            checked.again = True
            checked.left.append(
                f"{head.name}: {path} is in no version, and has such rows, or may: a write put it there meanwhile"
            )


def _commits(head: TableHead, checked: Checked) -> Iterator[str]:
    log, erased = head.tracked.log, head.state.erased
    for start in range(1, erased + 1, OBJECTS_AT_ONCE):
        versions = range(start, min(start + OBJECTS_AT_ONCE, erased + 1))
        for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
            checked.objects += 1
            entry = None if data is None else log.replay.entry(version, data)
            if not isinstance(entry, Tombstone):
                yield f"version {version} is no tombstone"
            if isinstance(entry, Commit):
                checked.unburied.append(version)
                checked.again = True
    named = {
        sidecar.name
        for entry in log.replay.effects(erased + 1, head.version)
        if isinstance(entry, Commit)
        for sidecar in entry.sidecars
    }
    checked.objects += head.version - erased
    place = log.keys.sidecar("")
    for key in log.store.list_after(place):
        checked.objects += 1
        name = key.removeprefix(place)
        if name not in named and (not is_versioned(name) or blob_version(name) <= head.version):
            yield f"{key} is of no commit"


def _without_effect(head: TableHead, rows: RowSet, checked: Checked) -> Iterator[str]:
    """Look at transactions that have failed meanwhile: they have bounds of files that they have deleted again."""
    done = {entry.version for entry in head.tracked.log.replay.effects(head.state.erased + 1, head.version)}
    others = [each for each in range(head.state.erased + 1, head.version + 2) if each not in done]
    for intent in intents_at(head, others):
        if any(rows.may_be_in(files) for files in files_of_intent(head, intent)):
            checked.again = True
            yield f"version {intent.version}, of a transaction that failed or is under way, may have bounds of them"


def _bases(head: TableHead, checked: Checked) -> Iterator[str]:
    log, number = head.tracked.log, 1
    data = log.store.get(log.keys.base(number))
    while data is not None:
        checked.objects += 1
        base, number = log.replay.base(number, data), number + 1
        data = log.store.get(log.keys.base(number))
        if base.root.version < head.state.erased and not is_blank(base):
            yield f"base {base.number} is of version {base.root.version}, and has a state"


def _derived(head: TableHead, checked: Checked) -> Iterator[str]:
    keys, store, erased = head.tracked.log.keys, head.tracked.log.store, head.state.erased
    for key in store.list_after(keys.manifests):
        checked.objects += 1
        name = key.removeprefix(keys.manifests)
        if not is_versioned(name) or blob_version(name) < erased:
            yield f"{key} is from before the erasure"
    for key in store.list_after(keys.snapshots):
        checked.objects += 1
        version = keys.snapshot_version(key)
        if version is None or version < erased:
            yield f"{key} is from before the erasure"
    for key in store.list_after(keys.lost):
        checked.objects += 1
        yield f"{key} came there meanwhile"


def _proposals(head: TableHead, rows: RowSet, values: Sequence[str], checked: Checked) -> Iterator[str]:
    """Look into what other clients propose meanwhile: such rows would come in by a later commit."""
    log = head.tracked.log
    checked.objects += sum(1 for _ in log.store.list_after(log.keys.inbox))
    for found in proposals_with_rows(head, rows, values):
        checked.again = checked.again or found.is_read
        yield f"the proposal {found.key}, which came meanwhile, {found.what}"
