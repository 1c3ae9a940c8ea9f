"""The check of all data files of one table, in parts: those that live versions have, older ones, and those of none.

A table may have more files than memory has room for their entries. So they are gone through manifest by manifest, once
for what concerns all of them, and once more for what is in the files themselves; of each, a few numbers are held.
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
"""At most this many files of one kind are named for each table; of the rest only the number is reported."""

KEYS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one table, at the state that its log was found to have."""

    tracked: TrackedLog[TableState]
    state: TableState
    judge: TableJudge
    check: DataCheck
    findings: Findings

    def examine(self, *, all_versions: bool) -> None:
        """Check the files of the newest version and of its tags and branches; with `all_versions` also older ones."""
        try:
            live = self._consistent()
        except LakelogError:
            live = None  # the manifest is reported
        if live is not None and self.state.metadata is not None:
            done, of = 0, sum(line.files.file_count for line in self.state.kept())
            for line, files in self._apart():
                self.check.live(files, line.current.schema, done, of)
                done += files.num_rows
        if all_versions:
            self._older(live)
        if live is not None:
            retained = np.union1d(live, self.judge.retained.named())
            self._note_unused(unreferenced(self.tracked.store, self.tracked.prefix, retained))

    def _consistent(self) -> Hashes:
        """Check what the log says of the files together; return hashes of all paths that it names, in order."""
        found = [np.empty(0, np.int64)]
        if self.state.metadata is None:
            return found[0]
        problems: list[tuple[str, str]] = []
        for files in self._once():
            found.append(hashes_of(named_by(files)["path"].to_pylist()))
            problems += not_taken(self.state, files)
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
        return np.unique(np.concatenate(found))

    def _without_copied(self) -> Iterator[pa.Table]:
        """Yield as `_once`, without files elsewhere of which a copy is among them, on another line: the rows are the
        same."""
        if not self.state.origins:
            yield from self._once()
            return
        copied = {
            key for files in self._once() for path in files["path"].to_pylist() if (key := hash_in(path))
        }
        for files in self._once():
            paths = files["path"].to_pylist()
            own = [not is_elsewhere(path) or path_hash(path) not in copied for path in paths]
            yield files.filter(pa.array(own, pa.bool_()))

    def _once(self) -> Iterator[pa.Table]:
        """Yield the files of all lines, each path once."""
        lines = self.state.kept()
        known = np.empty(0, np.int64)
        for line in lines:
            seen = [known]
            for files in line.files.parts(self.tracked.log.read_blobs):
                hashes = hashes_of(files["path"].to_pylist()) if len(lines) > 1 else known
                yield _without(files, hashes, known)
                seen.append(hashes)
            known = np.unique(np.concatenate(seen))

    def _apart(self) -> Iterator[tuple[TableState, pa.Table]]:
        """Yield the files of all lines; those of an earlier line, with the same rows, once."""
        lines = self.state.kept()
        known = np.empty(0, np.int64)
        for line in lines:
            seen = [known]
            for files in line.files.parts(self.tracked.log.read_blobs):
                hashes = hashes_of(file_keys(files).to_pylist()) if len(lines) > 1 else known
                yield line, _without(files, hashes, known)
                seen.append(hashes)
            known = np.unique(np.concatenate(seen))

    def _older(self, live: Hashes | None) -> None:
        none = np.empty(0, np.int64)
        for part in self.judge.retained.parts():
            is_live = are_among(hashes_of(part), none if live is None else live)
            # Of a file that is live, the current version's vector is checked; earlier ones may be elsewhere.
            self.check.older(
                {
                    path: facts
                    for (path, facts), known in zip(part.items(), is_live.tolist(), strict=True)
                    if not known or facts.vectors
                }
            )

    def _note_unused(self, keys: Iterable[str]) -> None:
        kind, todo = "data-file-unused", "leave it to vacuum"
        what = "no version that can be read names this file: of a write under way or abandoned, or of a lost commit"
        last, more = "", 0
        for number, key in enumerate(keys):
            url = f"{self.tracked.store.url}/{key}"
            if number < NOTES_MAX:
                self.findings.note(kind, url, what, todo)
            else:
                last, more = last or url, more + 1
        if more:
            self.findings.note(kind, f"{last} and on", f"{more} more: {what}", todo)


def _without(files: pa.Table, hashes: Hashes, known: Hashes) -> pa.Table:
    return files.filter(pa.array(~are_among(hashes, known))) if len(known) else files


def unreferenced(store: ObjectStore, prefix: str, retained: Hashes) -> Iterator[str]:
    """Yield the keys below the table's `data/` that no version that can be read names, by hashes of paths, in order."""
    folder = f"{prefix}/" if prefix else ""
    some: list[str] = []
    for key in chain(store.list_after(f"{folder}data/"), [""]):
        if key:
            some.append(key)
        if not key or len(some) >= KEYS_AT_ONCE:
            named = are_among(hashes_of(each.removeprefix(folder) for each in some), retained)
            yield from (each for each, known in zip(some, named.tolist(), strict=True) if not known)
            some = []
