"""Objects that repairs removed from a log: kept in `_log/_lost/`, with a list of their sources and reasons.

Each repair has its own folder there. The folder has the objects as they were, under their names below
`_log/`, and `list.json` about them. The list is written after the copies and before anything is removed.
Readers and writers ignore the folder, and only the purge of a dropped log deletes it. This module must not
know why an object is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from lakelog.log.format import FORMAT, hash_of
from lakelog.log.log import Log
from lakelog.log.view import S

LIST = "list.json"
TODO = "read list.json there, and delete the folder when none of it is needed"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MovedObject(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that a repair has moved. `name` is its key below `_log/`, and below the repair's folder."""

    name: str
    why: str
    size_bytes: int
    sha256: str


class LostList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys below `_log/` that a repair of the log `log_id` has moved, and those that it has written."""

    format: int
    log_id: str
    time: str
    moved: tuple[MovedObject, ...]
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemovedObject:
    """An object that a repair removes or replaces."""

    data: bytes
    why: str


def keep(
    log: Log[S], log_id: str, leaving_objects: Mapping[str, RemovedObject], written: Sequence[str]
) -> str:
    """Copy the objects at those keys, then write the list of them. Returns their folder."""
    time = _EPOCH + timedelta(microseconds=log.options.clock_us())
    folder = f"{log.keys.lost}{time:%Y%m%dT%H%M%SZ}-{log.options.new_id()[:10]}/"
    moved_objects = []
    for key, leaving_object in sorted(leaving_objects.items()):
        name = _name(log, key)
        log.store.put(folder + name, leaving_object.data)
        size_bytes, sha256 = len(leaving_object.data), hash_of(leaving_object.data)
        moved_objects.append(
            MovedObject(name=name, why=leaving_object.why, size_bytes=size_bytes, sha256=sha256)
        )
    lost_list = LostList(
        format=FORMAT,
        log_id=log_id,
        time=f"{time:%Y-%m-%dT%H:%M:%SZ}",
        moved=tuple(moved_objects),
        written=tuple(_name(log, key) for key in written),
    )
    log.store.put(folder + LIST, msgspec.json.format(msgspec.json.encode(lost_list)) + b"\n")
    return folder


def kept(log: Log[S], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the URL and a description of each folder that has some of `keys`, which are in `_lost/`.

    Makes a GET for each folder.
    """
    folders: dict[str, list[str]] = {}
    for key in keys:
        folders.setdefault(key.removeprefix(log.keys.lost).partition("/")[0], []).append(key)
    for folder, objects in sorted(folders.items()):
        data = log.store.get(f"{log.keys.lost}{folder}/{LIST}")
        url = log.replay.at(f"{log.keys.lost}{folder}")
        if data is None:
            yield url, f"{len(objects):,} copies of a repair that was stopped before it removed anything"
            continue
        try:
            lost_list = msgspec.json.decode(data, type=LostList)
        except msgspec.DecodeError as error:
            yield url, f"{len(objects):,} objects, and a list of them that cannot be read: {error}"
            continue
        names = ", ".join(moved_object.name for moved_object in lost_list.moved)
        yield url, f"a repair at {lost_list.time} moved here what it removed or replaced: {names}"


def _name(log: Log[S], key: str) -> str:
    return key.removeprefix(f"{log.keys.log}/")
