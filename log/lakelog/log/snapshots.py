"""Snapshots and the hint: derived, written after acknowledging, never trusted further than their hash goes."""

from collections.abc import Sequence

import msgspec

from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.format import encode_derived
from lakelog.log.grammar import is_blob
from lakelog.log.keys import Keys, blob_version
from lakelog.log.replay import Replay, is_aborted
from lakelog.log.stores import ObjectRange, ObjectStore, get_ranges
from lakelog.log.view import BlobRange, Dump, S, View, root_of

HINTS_PER_SNAPSHOT = 100
"""A hint for every hundredth version only is one of a state for which snapshots are rare, too."""

FEWER_SNAPSHOTS_MAX = 50


SHARED_SIZE_TIMES_MAX = 16
"""A version of so many changes or more is large by that multiple of the size of one: where many share versions, these
come several a second, and each would be followed by a snapshot."""


def write_if_due(
    replay: Replay[S], before: View[S], view: View[S], commit_size_bytes: int, changes: int = 1
) -> None:
    """Have a snapshot written in the background if the commit that made `view`, of so many changes, was large or its
    version's turn.

    A commit also writes the snapshot that was due at an aborted intent before it.
    """
    if not replay.options.snapshot_every_versions:
        return
    every = snapshot_every(replay, view)
    large_bytes = replay.options.snapshot_size_bytes * min(max(1, changes), SHARED_SIZE_TIMES_MAX)
    turn = before if is_aborted(before.settles) else view
    if turn.version % every == 0 or view.version % every == 0 or commit_size_bytes >= large_bytes:
        replay.options.in_background(replay.location, lambda: write(replay, view))
    elif is_hint_due(replay, view):
        replay.hint_due.offer(view)
        # By a name of its own, so that it is not left out while an older one is being written.
        name = f"{replay.location} at version {view.version}"
        replay.options.in_background(name, lambda: write_newest_hint(replay))


def snapshot_every(replay: Replay[S], view: View[S]) -> int:
    """Return how many versions there are between two snapshots of a log of that state.

    A log whose hint is written alone has its whole state in each snapshot. The larger it is, the fewer there are: at
    most so few that what follows the hint is read in one round more.
    """
    hints = replay.options.hint_every_versions
    larger = 0 if hints is None else hints(view.state) // HINTS_PER_SNAPSHOT
    return replay.options.snapshot_every_versions * (1 + min(larger, FEWER_SNAPSHOTS_MAX))


def is_hint_due(replay: Replay[S], view: View[S]) -> bool:
    every = replay.options.hint_every_versions
    return every is not None and view.version % every(view.state) == 0


def write_newest_hint(replay: Replay[S]) -> None:
    """Write the hint of the newest view that it is due of, if it was not written since: commits go on meanwhile."""
    view = replay.hint_due.take()
    if view is not None:
        write_hint(replay, view)


def write(replay: Replay[S], view: View[S]) -> None:
    """Write the manifests that are not durable yet, the snapshot, then the hint. `view` is settled.

    Costs one GET, two PUTs and one per manifest. Plain puts: doing it twice does no harm.
    """
    store, keys = replay.store, replay.keys
    newer_base = store.get(keys.base(view.base + 1))
    base: int | None = None
    try:
        root = root_of(view, store_blobs(replay, view))
        base = replay.sound_with(root, newer_base)
    except NotFound:
        # The projection merges what an expiry of another process has given up and deleted.
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


def write_hint(replay: Replay[S], view: View[S]) -> None:
    """Write the hint alone of a state that needs no manifests, so that no base can have given one up: one PUT. Of one
    that does, a snapshot is written too."""
    dump = store_blobs(replay, view)
    if dump.uses is None or len(dump.uses):
        write(replay, view)
        return
    key = replay.keys.latest
    replay.store.put(key, encode_derived(root_of(view, dump), replay.at(key)))


def store_blobs(replay: Replay[S], view: View[S], *, for_base: bool = False) -> Dump:
    """Make the blobs of `view` durable and return its dump."""
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


def read_blobs(store: ObjectStore, log: Keys, names: Sequence[str]) -> list[bytes]:
    """Return the blobs of a log's dump by their names, or parts of them, in one round. Raises NotFound where one has
    expired."""
    blobs = []
    ranges = [
        ObjectRange(log.manifest(each), each.first, each.size)
        if isinstance(each, BlobRange)
        else ObjectRange(log.manifest(each))
        for each in names
    ]
    in_part = any(each.size is not None for each in ranges)
    found = get_ranges(store, ranges) if in_part else store.get_many([each.key for each in ranges])
    for part, blob in zip(ranges, found, strict=True):
        if blob is None:
            raise NotFound(
                f"{store.url}/{part.key} is gone: the version that it belongs to has expired "
                "meanwhile; load the current version and try again"
            )
        blobs.append(blob)
    return blobs
