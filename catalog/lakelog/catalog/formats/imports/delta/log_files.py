"""The objects of a Delta log, and which of them make a version: a checkpoint, and the commits after it.

Rule: names decide. A listing is sorted, so it may begin at a checkpoint. Readers do not need compacted
commits, checksums and staged commits, so these are skipped. A missing commit is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import msgspec

from lakelog.catalog.formats.imports.delta.actions import (
    EVERYTHING,
    DeltaAction,
    actions_of_json,
    actions_of_parquet,
)
from lakelog.log.decoding import UNREADABLE
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.stores import ObjectStore

LOG = "_delta_log"
COMMITS_AT_ONCE = 64

_COMMIT = re.compile(r"([0-9]{20})\.json")
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_NAMED = re.compile(r"([0-9]{20})\.checkpoint\.[0-9A-Za-z-]+\.(?:json|parquet)")
_HINT = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class DeltaCheckpoint:
    """All live files at a version, in a single object or several."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The listed commits and complete checkpoints of a log in `store` below the key `prefix`.

    `complete` means that the listing began at the beginning of the log.
    """

    store: ObjectStore
    prefix: str
    commits: frozenset[int]
    checkpoints: tuple[DeltaCheckpoint, ...]
    complete: bool

    @property
    def newest(self) -> int:
        """Return the newest version. Raises NotFound if there is no table."""
        versions = [*self.commits, *(checkpoint.version for checkpoint in self.checkpoints)]
        if not versions:
            raise NotFound(
                f"there is no Delta table at {self.url.removesuffix(f'/{LOG}')}: it has no commit in {LOG}; check the "
                "path"
            )
        return max(versions)

    @property
    def url(self) -> str:
        return f"{self.store.url}/{self.prefix}"

    def url_of(self, name: str) -> str:
        return f"{self.url}/{name}"

    def base_of(self, wanted: int) -> DeltaCheckpoint | None:
        """Return the newest checkpoint from which a version can be made.

        None if all commits from 0 on make it.

        If `wanted` and older versions can no longer be made, it is the oldest usable checkpoint after
        `wanted`. Raises FormatError, with the missing commit, if there is no checkpoint.
        """
        newest, first = self.newest, self._first_in_a_row()
        usable = [checkpoint for checkpoint in self.checkpoints if checkpoint.version >= first - 1]
        older = [checkpoint for checkpoint in usable if checkpoint.version <= wanted]
        if older:
            return older[-1]
        if first == 0:
            return None
        if usable:
            return usable[0]
        raise FormatError(
            f"{self.url_of(_commit_name(first - 1))} is missing, and no checkpoint stands for it and the commits "
            f"before it, so that version {newest} of the table cannot be read: its log was truncated"
        )

    def _first_in_a_row(self) -> int:
        version = self.newest + 1
        while version - 1 in self.commits:
            version -= 1
        return version

    def read_commits(self, first: int, last: int) -> Iterator[tuple[int, list[DeltaAction]]]:
        """Yield each version from `first` to `last` with its actions.

        Raises FormatError, naming a missing commit.
        """
        for start in range(first, last + 1, COMMITS_AT_ONCE):
            versions = range(start, min(start + COMMITS_AT_ONCE, last + 1))
            names = [_commit_name(version) for version in versions]
            for version, name, data in zip(versions, names, self._get(names), strict=True):
                yield version, actions_of_json(self._present(name, data), self.url_of(name))

    def read_commit_if_there(self, version: int) -> list[DeltaAction]:
        """Return the actions of a commit that a checkpoint covers. Empty if the commit is gone."""
        name = _commit_name(version)
        (data,) = self._get([name])
        return [] if data is None else actions_of_json(data, self.url_of(name))

    def up_to(self, version: int) -> LogFiles:
        """Return the log as it was at a version."""
        return replace(
            self,
            commits=frozenset(number for number in self.commits if number <= version),
            checkpoints=tuple(number for number in self.checkpoints if number.version <= version),
        )

    def read_checkpoint(self, checkpoint: DeltaCheckpoint, kinds: Sequence[str]) -> Iterator[DeltaAction]:
        """Yield the actions of these kinds in a checkpoint, including its sidecars if files are wanted.

        Raises FormatError, naming a missing object.
        """
        sidecars: list[str] = []
        for name, data in zip(checkpoint.names, self._get(checkpoint.names), strict=True):
            for action in self._actions(name, data, kinds):
                if action.sidecar is None:
                    yield action
                elif kinds == EVERYTHING:
                    sidecars.append(f"_sidecars/{unquote(action.sidecar.path.rpartition('/')[2])}")
        for start in range(0, len(sidecars), COMMITS_AT_ONCE):
            names = sidecars[start : start + COMMITS_AT_ONCE]
            for name, data in zip(names, self._get(names), strict=True):
                yield from self._actions(name, data, kinds)

    def _actions(self, name: str, data: bytes | None, kinds: Sequence[str]) -> Iterator[DeltaAction]:
        content, url = self._present(name, data), self.url_of(name)
        if name.endswith(".json"):
            yield from actions_of_json(content, url)
        else:
            yield from actions_of_parquet(content, url, kinds)

    def _get(self, names: Sequence[str]) -> list[bytes | None]:
        return self.store.get_many([f"{self.prefix}/{name}" for name in names])

    def _present(self, name: str, data: bytes | None) -> bytes:
        if data is None:
            raise FormatError(
                f"{self.url_of(name)} is missing, without which the table cannot be read: its log was truncated, or "
                "cleaned up at this moment; retry, and check the log otherwise"
            )
        return data


@dataclass(slots=True)
class _Listed:
    commits: set[int] = field(default_factory=set)
    checkpoints: dict[int, list[str]] = field(default_factory=dict)
    parts: dict[tuple[int, int], dict[int, str]] = field(default_factory=dict)

    def take(self, name: str) -> None:
        if match := _COMMIT.fullmatch(name):
            self.commits.add(int(match[1]))
        elif match := _PART.fullmatch(name):
            self.parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = name
        elif match := _CLASSIC.fullmatch(name) or _NAMED.fullmatch(name):
            self.checkpoints.setdefault(int(match[1]), []).append(name)

    def whole(self) -> tuple[DeltaCheckpoint, ...]:
        """Return a complete checkpoint for each version, in order.

        All complete checkpoints of a version are equal.
        """
        names_by_version = {
            version: (parts[1], *(parts[number] for number in range(2, count + 1)))
            for (version, count), parts in self.parts.items()
            if parts.keys() == set(range(1, count + 1))
        }
        names_by_version |= {version: (min(names),) for version, names in self.checkpoints.items()}
        return tuple(
            DeltaCheckpoint(version, names_by_version[version]) for version in sorted(names_by_version)
        )


def list_log(store: ObjectStore, prefix: str, *, everything: bool) -> LogFiles:
    """Return the objects of the log at the key `prefix`, or the objects from its last checkpoint on.

    Makes a GET request, and a LIST request for every 1000 objects from there on.
    """
    version = None if everything else _hinted(store, prefix)
    log_objects = _listed(store, prefix, "" if version is None else f"{version:020d}")
    whole = log_objects.whole()
    if version is not None and not any(checkpoint.version >= version for checkpoint in whole):
        # The hint may be wrong: its checkpoint may have been deleted, or may never have been complete.
        version, log_objects = None, _listed(store, prefix, "")
        whole = log_objects.whole()
    return LogFiles(store, prefix, frozenset(log_objects.commits), whole, version is None)


def _listed(store: ObjectStore, prefix: str, after: str) -> _Listed:
    log_objects = _Listed()
    for key in store.list_after(f"{prefix}/", f"{prefix}/{after}" if after else ""):
        name = key.removeprefix(f"{prefix}/")
        if name.startswith("_"):
            break  # Folders follow: sidecars and staged commits, of which there may be many.
        log_objects.take(name)
    return log_objects


def _hinted(store: ObjectStore, prefix: str) -> int | None:
    data = store.get(f"{prefix}/_last_checkpoint")
    try:
        hint: Any = None if data is None else _HINT.decode(data)
    except UNREADABLE:
        return None
    version = hint.get("version") if isinstance(hint, dict) else None
    return version if isinstance(version, int) and not isinstance(version, bool) and version >= 0 else None


def _commit_name(version: int) -> str:
    return f"{version:020d}.json"
