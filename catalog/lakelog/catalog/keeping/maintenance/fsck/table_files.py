"""The check of all data files of a table: files of live versions, older files, and files of no version.

A table's entries may exceed the memory. So they are read manifest by manifest: once for facts that concern
all of them, and again for the contents of the files. For each file, a few numbers are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.files import (
    Hashes,
    are_among,
    given_twice,
    hash_in,
    hashes_of,
    is_elsewhere,
    path_hash,
)
from lakelog.catalog.core.logs import TrackedLog, file_keys
from lakelog.catalog.core.state import TableState
from lakelog.catalog.keeping.maintenance.fsck.data_checks import RESTORE, DataCheck
from lakelog.catalog.keeping.maintenance.fsck.identity_checks import not_taken
from lakelog.catalog.keeping.maintenance.fsck.judges import TableJudge
from lakelog.catalog.keeping.maintenance.reachable import named_by
from lakelog.log import ObjectStore
from lakelog.log.checks.findings import Findings
from lakelog.log.errors import LakelogError

NOTES_MAX = 20
"""At most so many files of a kind are named for each table. Only the number of the rest is reported."""

KEYS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a table, at the state of its log in the check."""

    tracked: TrackedLog[TableState]
    state: TableState
    judge: TableJudge
    check: DataCheck
    findings: Findings

    def examine(self, *, all_versions: bool) -> None:
        """Check the files of the newest version, its tags and branches; with `all_versions`, older files too."""
        try:
            live = self._consistent()
        except LakelogError:
            live = None  # the manifest is reported
        if live is not None and self.state.metadata is not None:
            file_count, of = 0, sum(line.files.file_count for line in self.state.kept())
            for line, files in self._apart():
                self.check.live(files, line.current.schema, file_count, of)
                file_count += files.num_rows
        if all_versions:
            self._older(live)
        if live is not None:
            all_hashes = np.union1d(live, self.judge.retained.named())
            self._note_unused(unreferenced(self.tracked.store, self.tracked.prefix, all_hashes))

    def _consistent(self) -> Hashes:
        """Check the log's facts of all files together. Return hashes of all paths that it names, in order."""
        hash_arrays = [np.empty(0, np.int64)]
        if self.state.metadata is None:
            return hash_arrays[0]
        problems: list[tuple[str, str]] = []
        doubled: list[Hashes] = []
        for files in self._once(doubled):
            hash_arrays.append(hashes_of(named_by(files)["path"].to_pylist()))
            problems += not_taken(self.state, files)
        for path in self._of_hashes(np.concatenate([np.empty(0, np.int64), *doubled])):
            self.findings.damage(
                "file-twice",
                f"{self.tracked.store.url}/{self.tracked.prefix}/{path}",
                "a commit has added this file, which was live before: readers refuse the table",
                "find that commit with lakelog history, and roll the table back to a version before it",
            )
        twice = given_twice(self._without_copied, self.state.next_row)
        if twice is not None:
            self.findings.damage(
                "row-ids-twice",
                self.check.where,
                twice,
                "rewrite the rows of one of these files, by overwriting them with themselves",
            )
        for path, problem in problems:
            where = f"{self.tracked.store.url}/{self.tracked.prefix}/{path}"
            self.findings.damage("identity-not-taken", where, problem, RESTORE)
        return np.unique(np.concatenate(hash_arrays))

    def _of_hashes(self, hashes: Hashes) -> list[str]:
        """Return the paths of live files that have these hashes."""
        if not len(hashes):
            return []
        wanted, found_paths = np.unique(hashes), set[str]()
        for line in self.state.kept():
            for files in line.files.parts(self.tracked.log.read_blobs):
                paths = files["path"].filter(
                    pa.array(are_among(hashes_of(files["path"].to_pylist()), wanted))
                )
                found_paths.update(paths.to_pylist())
        return sorted(found_paths)

    def _without_copied(self) -> Iterator[pa.Table]:
        """Yield as `_once`, without files elsewhere that have a copy on another line. The rows are the same."""
        if not self.state.origins:
            yield from self._once()
            return
        copy_hashes = {
            key for files in self._once() for path in files["path"].to_pylist() if (key := hash_in(path))
        }
        for files in self._once():
            paths = files["path"].to_pylist()
            own = [not is_elsewhere(path) or path_hash(path) not in copy_hashes for path in paths]
            yield files.filter(pa.array(own, pa.bool_()))

    def _once(self, doubled: list[Hashes] | None = None) -> Iterator[pa.Table]:
        """Yield the files of all lines, each path once. Adds hashes of paths that a line has twice to `doubled`.

        A file that a line has twice comes twice.
        """
        lines = self.state.kept()
        hashes_so_far = np.empty(0, np.int64)
        for line in lines:
            hash_arrays: list[Hashes] = []
            for files in line.files.parts(self.tracked.log.read_blobs):
                needs_hashes = len(lines) > 1 or doubled is not None
                hashes = hashes_of(files["path"].to_pylist()) if needs_hashes else hashes_so_far
                yield _without(files, hashes, hashes_so_far)
                hash_arrays.append(hashes)
            own_hashes, counts = np.unique(
                np.concatenate([np.empty(0, np.int64), *hash_arrays]), return_counts=True
            )
            if doubled is not None:
                doubled.append(own_hashes[counts > 1])
            hashes_so_far = np.union1d(hashes_so_far, own_hashes)

    def _apart(self) -> Iterator[tuple[TableState, pa.Table]]:
        """Yield the files of all lines. Files of an earlier line with the same rows are not repeated."""
        lines = self.state.kept()
        hashes_so_far = np.empty(0, np.int64)
        for line in lines:
            hash_arrays = [hashes_so_far]
            for files in line.files.parts(self.tracked.log.read_blobs):
                hashes = hashes_of(file_keys(files).to_pylist()) if len(lines) > 1 else hashes_so_far
                yield line, _without(files, hashes, hashes_so_far)
                hash_arrays.append(hashes)
            hashes_so_far = np.unique(np.concatenate(hash_arrays))

    def _older(self, live: Hashes | None) -> None:
        no_hashes = np.empty(0, np.int64)
        for part in self.judge.retained.parts():
            is_live = are_among(hashes_of(part), no_hashes if live is None else live)
            # For a live file, the current version's vector is checked. Earlier vectors may be elsewhere.
            self.check.older(
                {
                    path: facts
                    for (path, facts), is_known in zip(part.items(), is_live.tolist(), strict=True)
                    if not is_known or facts.vectors
                }
            )

    def _note_unused(self, keys: Iterable[str]) -> None:
        kind, todo = "data-file-unused", "leave it to vacuum"
        message = "no version that can be read names this file: of a write under way or abandoned, or of a lost commit"
        last, more = "", 0
        for number, key in enumerate(keys):
            url = f"{self.tracked.store.url}/{key}"
            if number < NOTES_MAX:
                self.findings.note(kind, url, message, todo)
            else:
                last, more = last or url, more + 1
        if more:
            self.findings.note(kind, f"{last} and on", f"{more} more: {message}", todo)


def _without(files: pa.Table, hashes: Hashes, known_hashes: Hashes) -> pa.Table:
    return files.filter(pa.array(~are_among(hashes, known_hashes))) if len(known_hashes) else files


def unreferenced(store: ObjectStore, prefix: str, retained_hashes: Hashes) -> Iterator[str]:
    """Yield the keys below the table's `data/` that no readable version names, by hashes of paths, in order."""
    folder = f"{prefix}/" if prefix else ""
    batch: list[str] = []
    for key in chain(store.list_after(f"{folder}data/"), [""]):
        if key:
            batch.append(key)
        if not key or len(batch) >= KEYS_AT_ONCE:
            retained_mask = are_among(hashes_of(path.removeprefix(folder) for path in batch), retained_hashes)
            yield from (
                path
                for path, is_retained in zip(batch, retained_mask.tolist(), strict=True)
                if not is_retained
            )
            batch = []
