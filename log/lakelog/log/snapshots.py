"""Snapshots and the hint: derived, written after acknowledging, and trusted no further than their hash."""

from collections.abc import Sequence

import msgspec

from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.format import encode_derived
from lakelog.log.grammar import is_blob
from lakelog.log.keys import LogKeys, blob_version
from lakelog.log.replay import LogReplay, is_aborted
from lakelog.log.stores import ObjectRange, ObjectStore, get_ranges
from lakelog.log.view import BlobRange, LogView, S, StateDump, root_of

HINTS_PER_SNAPSHOT = 100
"""If only every hundredth version has a hint, snapshots of that state are rare too."""

FEWER_SNAPSHOTS_MAX = 50


SHARED_SIZE_TIMES_MAX = 16
"""A version with at least so many changes needs that multiple of a single change's size to be large.

If many changes share versions, several versions come per second, and each would get a snapshot.
"""


def write_if_due(
    replay: LogReplay[S], view_before: LogView[S], view: LogView[S], commit_size_bytes: int, changes: int = 1
) -> None:
    """Write a snapshot in the background if it is due after the commit that made `view`.

    It is due if the commit, of so many changes, was large or if it is its version's turn. A commit also
    writes the snapshot that was due at an aborted intent before it.
    """
    if not replay.options.snapshot_every_versions:
        return
    every = snapshot_every(replay, view)
    large_bytes = replay.options.snapshot_size_bytes * min(max(1, changes), SHARED_SIZE_TIMES_MAX)
    turn = view_before if is_aborted(view_before.settles) else view
    if turn.version % every == 0 or view.version % every == 0 or commit_size_bytes >= large_bytes:
        replay.options.in_background(replay.location, lambda: write(replay, view))
    elif is_hint_due(replay, view):
        replay.hint_due.offer(view)
        # The name is unique, so that this hint is not skipped while an older hint is being written.
        name = f"{replay.location} at version {view.version}"
        replay.options.in_background(name, lambda: write_newest_hint(replay))


def snapshot_every(replay: LogReplay[S], view: LogView[S]) -> int:
    """Return the number of versions between two snapshots of a log with that state.

    A log whose hint is written alone has its whole state in each snapshot. Larger states have fewer
    snapshots, but enough that the versions after the hint take at most another round to read.
    """
    hints = replay.options.hint_every_versions
    extra_intervals = 0 if hints is None else hints(view.state) // HINTS_PER_SNAPSHOT
    return replay.options.snapshot_every_versions * (1 + min(extra_intervals, FEWER_SNAPSHOTS_MAX))


def is_hint_due(replay: LogReplay[S], view: LogView[S]) -> bool:
    every = replay.options.hint_every_versions
    return every is not None and view.version % every(view.state) == 0


def write_newest_hint(replay: LogReplay[S]) -> None:
    """Write the hint of the newest view that is due and not yet written, since commits go on."""
    view = replay.hint_due.take()
    if view is not None:
        write_hint(replay, view)


def write(replay: LogReplay[S], view: LogView[S]) -> None:
    """Write the manifests that are not durable yet, then the snapshot, then the hint. `view` is settled.

    Costs a GET, two PUTs and a PUT per manifest. The puts are plain, so doing this twice is harmless.
    """
    store, keys = replay.store, replay.keys
    newer_base = store.get(keys.base(view.base + 1))
    base: int | None = None
    try:
        root = root_of(view, store_blobs(replay, view))
        base = replay.sound_with(root, newer_base)
    except NotFound:
        # The projection merges manifests that an expiry of another process has given up and deleted.
        if store.get(keys.base(view.base + 1)) is None:
            raise
    if base is None:
        view = replay.forward(replay.last_base(view.base + 1, at_least=0))
        root = root_of(view, store_blobs(replay, view))
    else:
        root = msgspec.structs.replace(root, base=base)
    key = keys.snapshot(view.version, view.hash)
    data = encode_derived(root, replay.at(key))
    store.put(key, data)
    store.put(keys.latest, data)


def write_hint(replay: LogReplay[S], view: LogView[S]) -> None:
    """Write only the hint, for a state that needs no manifests, so that no base can have given them up.

    Makes a PUT. If the state needs manifests, a snapshot is written too.
    """
    dump = store_blobs(replay, view)
    if dump.uses is None or len(dump.uses):
        write(replay, view)
        return
    key = replay.keys.latest
    replay.store.put(key, encode_derived(root_of(view, dump), replay.at(key)))


def store_blobs(replay: LogReplay[S], view: LogView[S], *, for_base: bool = False) -> StateDump:
    """Make the blobs of `view` durable, and return its dump. Every snapshot, hint and base begins with this."""
    replay.check_writable(view)
    try:
        dump = replay.projection.dump(view.state, view.version, for_base)
    except FormatError as error:
        raise type(error)(f"{replay.location}: {error.message}") from error
    for name, blob in dump.blobs.items():
        if not is_blob(name) or blob_version(name) > view.version or name not in (dump.uses or (name,)):
            raise InvalidInput(
                f"the projection dumps {name[:80]!r} at version {view.version}: a name begins with the version as 20 "
                "digits and a dash, has only letters, digits, dots, dashes and underscores after it, and is in `uses`"
            )
        replay.store.put(replay.keys.manifest(name), blob)
    replay.projection.stored(dump)
    return dump


def read_blobs(store: ObjectStore, log: LogKeys, names: Sequence[str]) -> list[bytes]:
    """Return blobs of a log's dump by name, or parts of them, in a single round.

    Raises NotFound if a blob has expired.
    """
    blobs = []
    ranges = [
        ObjectRange(log.manifest(name), name.first, name.size)
        if isinstance(name, BlobRange)
        else ObjectRange(log.manifest(name))
        for name in names
    ]
    in_part = any(name.size is not None for name in ranges)
    read_data = get_ranges(store, ranges) if in_part else store.get_many([name.key for name in ranges])
    for part, blob in zip(ranges, read_data, strict=True):
        if blob is None:
            raise NotFound(
                f"{store.url}/{part.key} is gone: the version that it belongs to has expired "
                "meanwhile; load the current version and try again"
            )
        blobs.append(blob)
    return blobs
