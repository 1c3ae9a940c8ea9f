"""Which objects a Delta log consists of, and which of them make a version: a checkpoint, and the commits after it.

Rule: names decide. A listing is sorted, so that it may begin at a checkpoint. Compacted commits, checksums and what is
staged are not needed by a reader and are passed over; a commit that is missing in between is an error that names it.
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
    Action,
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
class Checkpoint:
    """All that is live at a version, in one object or several."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The listed commits and whole checkpoints of a log in `store` below the key `prefix`.

    `first` is the lowest version from which on all commits up to `newest` are there. `complete`: the listing began at
    the beginning.
    """

    store: ObjectStore
    prefix: str
    commits: frozenset[int]
    checkpoints: tuple[Checkpoint, ...]
    complete: bool

    @property
    def newest(self) -> int:
        """Return the newest version. NotFound where there is no table."""
        versions = [*self.commits, *(each.version for each in self.checkpoints)]
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

    def base_of(self, wanted: int) -> Checkpoint | None:
        """Return the newest checkpoint from which a version can be made, None where all commits from 0 on make it.

        It may be of a later version than `wanted`, where older ones cannot be made any more: the oldest one that
        commits go on from. FormatError, naming the commit that is missing, where there is none.
        """
        newest, first = self.newest, self._first_in_a_row()
        usable = [each for each in self.checkpoints if each.version >= first - 1]
        before = [each for each in usable if each.version <= wanted]
        if before:
            return before[-1]
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

    def read_commits(self, first: int, last: int) -> Iterator[tuple[int, list[Action]]]:
        """Yield each version from `first` to `last` with its actions. FormatError naming one that is not there."""
        for start in range(first, last + 1, COMMITS_AT_ONCE):
            versions = range(start, min(start + COMMITS_AT_ONCE, last + 1))
            names = [_commit_name(version) for version in versions]
            for version, name, data in zip(versions, names, self._get(names), strict=True):
                yield version, actions_of_json(self._present(name, data), self.url_of(name))

    def read_commit_if_there(self, version: int) -> list[Action]:
        """Return the actions of a commit for which a checkpoint stands: none where it is gone."""
        name = _commit_name(version)
        (data,) = self._get([name])
        return [] if data is None else actions_of_json(data, self.url_of(name))

    def up_to(self, version: int) -> LogFiles:
        """Return the log as it was at a version."""
        return replace(
            self,
            commits=frozenset(each for each in self.commits if each <= version),
            checkpoints=tuple(each for each in self.checkpoints if each.version <= version),
        )

    def read_checkpoint(self, checkpoint: Checkpoint, kinds: Sequence[str]) -> Iterator[Action]:
        """Yield the actions of these kinds of a checkpoint, with those of its sidecars where files are wanted.

        FormatError naming what is not there.
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

    def _actions(self, name: str, data: bytes | None, kinds: Sequence[str]) -> Iterator[Action]:
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

    def whole(self) -> tuple[Checkpoint, ...]:
        """Return one checkpoint for each version, in their order: any is as good as another, if all of it is there."""
        found = {
            version: (parts[1], *(parts[number] for number in range(2, count + 1)))
            for (version, count), parts in self.parts.items()
            if parts.keys() == set(range(1, count + 1))
        }
        found |= {version: (min(names),) for version, names in self.checkpoints.items()}
        return tuple(Checkpoint(version, found[version]) for version in sorted(found))


def list_log(store: ObjectStore, prefix: str, *, everything: bool) -> LogFiles:
    """Return the objects of the log at the key `prefix`, or those from its last checkpoint on.

    Costs a GET, and a LIST for every 1000 objects from there on.
    """
    version = None if everything else _hinted(store, prefix)
    found = _listed(store, prefix, "" if version is None else f"{version:020d}")
    whole = found.whole()
    if version is not None and not any(each.version >= version for each in whole):
        # The hint is only one: its checkpoint may have been cleaned up, or never have been whole.
        version, found = None, _listed(store, prefix, "")
        whole = found.whole()
    return LogFiles(store, prefix, frozenset(found.commits), whole, version is None)


def _listed(store: ObjectStore, prefix: str, after: str) -> _Listed:
    found = _Listed()
    for key in store.list_after(f"{prefix}/", f"{prefix}/{after}" if after else ""):
        name = key.removeprefix(f"{prefix}/")
        if name.startswith("_"):
            break  # What follows is in folders: sidecars and staged commits, of which there may be many.
        found.take(name)
    return found


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
