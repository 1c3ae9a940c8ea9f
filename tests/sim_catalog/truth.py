"""What truly happened in a warehouse: read from the objects as they were created, whatever became of them since."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.sim.stores import TrueStore
from tests.sim_catalog.stores import Row, key_of, rows_at

from lakelog.catalog.core.files.data_file import DataFile, decode_files, files_from_arrow
from lakelog.catalog.core.logs.consistent_cut import FOREVER_US
from lakelog.catalog.core.logs.stored_vectors import read_vector
from lakelog.catalog.core.state.decoded_events import namespace_events, table_events
from lakelog.catalog.core.state.events import FilesChanged, TableReplaced
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.core.state.namespace_state import NAMESPACE, RELATION, NamespaceState, apply
from lakelog.log.changes import is_same_commit
from lakelog.log.errors import FormatError
from lakelog.log.format import COMMITTED, Commit, Decision, Intent, decode_decision, decode_entry

_COMMIT_KEY = re.compile(r"(?:(.*)/)?_log/(\d{20})\.json")


@dataclass
class TrueLog:
    """A log as its effective commits make it. `namespace` is its state, if it is one's."""

    location: str
    commits: list[Commit] = field(default_factory=list)
    log_id: str = ""
    sealed: bool = False
    purged: bool = False
    namespace: NamespaceState | None = None


class Truth:
    """Reads the store without a step."""

    def __init__(self, store: TrueStore) -> None:
        self.store = store
        self._entries: dict[str, Commit] = {}
        self._commit_keys: list[tuple[str, int, str]] = []
        self._seen = 0

    def decision(self, intent: Intent) -> Decision | None:
        data = self.store.created.get(intent.decision)
        return None if data is None else decode_decision(data, intent.decision)

    def entries(self) -> Iterator[tuple[str, Commit]]:
        """Yield every commit and intent that was ever created, with the location of its log."""
        keys = list(self.store.created)  # in the order of creation
        for key in keys[self._seen :]:
            match = _COMMIT_KEY.fullmatch(key)
            if match is not None:
                self._commit_keys.append((match[1] or "", int(match[2]), key))
        self._seen = len(keys)
        for location, _, key in self._commit_keys:
            if key not in self._entries:
                entry = decode_entry(self.store.created[key], key, KNOWN)
                assert isinstance(entry, Commit)
                self._entries[key] = entry
            yield location, self._entries[key]

    def effective(self, commit: Commit) -> Commit | None:
        """Return a commit as it counts, None if it has no effect (yet)."""
        if commit.intent is None:
            return commit
        decision = self.decision(commit.intent)
        if decision is None or decision.outcome != COMMITTED:
            return None
        return msgspec.structs.replace(commit, time_us=decision.time_us)

    def is_applied(self, commit_id: str) -> bool:
        return any(
            is_same_commit(commit, commit_id) and commit.version > 1 and self.effective(commit) is not None
            for _, commit in self.entries()
        )

    def moments(self, created: int) -> list[tuple[dict[str, dict[str, str]], int]]:
        """Return what all names led to, by the times of what had been committed when so many objects were there: each
        state with when it ended."""
        order = {key: number for number, key in enumerate(self.store.created)}
        changes = []
        for (location, entry), (_, _, key) in zip(self.entries(), self._commit_keys, strict=True):
            commit = self.effective(entry)
            decided_by = key if entry.intent is None else entry.intent.decision
            if commit is not None and order[decided_by] < created:
                changes.append((commit.time_us, location, commit.version, commit))
        states: dict[str, NamespaceState] = {}
        found_pairs: list[tuple[dict[str, dict[str, str]], int]] = []
        begun_us = 0
        for time_us, location, version, commit in sorted(changes, key=lambda change: change[:3]):
            if version == 1 and not _is_namespaces(commit) or version > 1 and location not in states:
                continue
            if time_us > begun_us and "" in states:
                found_pairs.append((_names(states), time_us))
            begun_us = time_us
            for event in namespace_events(commit):
                states[location] = apply(states.get(location, NamespaceState()), event, time_us)
        return [*found_pairs, (_names(states), FOREVER_US)]

    def history(self) -> Iterator[tuple[int, dict[str, list[Row]]]]:
        """Yield the rows of all tables by their names at each of the times of what was committed."""
        changes = [
            (commit.time_us, log.location, commit, log.namespace is not None)
            for log in self.logs().values()
            for commit in log.commits
        ]
        states: dict[str, NamespaceState] = {}
        files: dict[str, dict[str, DataFile]] = {}
        for time_us, at_once in itertools.groupby(sorted(changes, key=_time), key=_time):
            for _, location, commit, is_namespace in at_once:
                if is_namespace:
                    for event in namespace_events(commit):
                        states[location] = apply(states.get(location, NamespaceState()), event, time_us)
                    continue
                for change in table_events(commit):
                    if isinstance(change, TableReplaced):
                        files[location] = {}
                    if isinstance(change, FilesChanged):
                        current_files = files.setdefault(location, {})
                        for removed_file in change.removed:
                            if current_files.pop(removed_file.path, None) is None:
                                raise FormatError(
                                    f"{location} removes {removed_file.path}, which it does not have"
                                )
                        current_files |= {file.path: file for file in self._added(commit, change)}
            if "" in states:
                yield time_us, self._rows(states, "", (), files)

    def _added(self, commit: Commit, change: FilesChanged) -> Sequence[DataFile]:
        """Return the files that an event adds, wherever they stand."""
        if change.added_sidecar is None:
            return change.added
        name = commit.sidecars[change.added_sidecar].name
        return files_from_arrow(decode_files(self.store.created_sidecars[name]))

    def _rows(
        self,
        states: dict[str, NamespaceState],
        at: str,
        path: tuple[str, ...],
        files: dict[str, dict[str, DataFile]],
    ) -> dict[str, list[Row]]:
        entries = states[at].entries
        rows = {
            ".".join((*path, name)): [
                row
                for file in files.get(entry.location, {}).values()
                for row in self._live(entry.location, file)
            ]
            for name, entry in entries.get(RELATION, {}).items()
        }
        for name, entry in entries.get(NAMESPACE, {}).items():
            rows |= self._rows(states, entry.location, (*path, name), files)
        return rows

    def _live(self, location: str, file: DataFile) -> list[Row]:
        removed_vector = read_vector(self.store.created_vectors, location, file.deletes, file.physical_rows)
        return [
            row for at, row in enumerate(rows_at[key_of(location, file.path)]) if at not in removed_vector
        ]

    def logs(self) -> dict[str, TrueLog]:
        """Return every log by its location."""
        true_logs: dict[str, TrueLog] = {}
        for location, entry in sorted(self.entries(), key=lambda one: (one[0], one[1].version)):
            log = true_logs.setdefault(location, TrueLog(location))
            commit = self.effective(entry)
            if commit is None:
                continue
            log.commits.append(commit)
            log.log_id = commit.log_id
            log.sealed = commit.seals or commit.purges
            log.purged = commit.purges
            if commit.version == 1 and _is_namespaces(commit):
                log.namespace = NamespaceState()
            if log.namespace is not None:
                for event in namespace_events(commit):
                    log.namespace = apply(log.namespace, event, commit.time_us)
        return true_logs


def _time(change: Sequence[Any]) -> int:
    return int(change[0])


def _names(states: dict[str, NamespaceState]) -> dict[str, dict[str, str]]:
    """Return the tables of the root and of all namespaces in it, by name."""
    root = states[""]
    spaces = {"": root} | {name: states[entry.location] for name, entry in root.logs(NAMESPACE)}
    return {
        name: {table: entry.id for table, entry in space.logs(RELATION)} for name, space in spaces.items()
    }


def _is_namespaces(commit: Commit) -> bool:
    first: Any = commit.events[0].get("event", "")
    return bool(first == "namespace-created")
