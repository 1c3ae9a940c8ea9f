"""Deleting files that a table has adopted, once no version of it has them that can be read.

No fence is needed, as it is for a table's own new files: a commit brings an adopted file back only from a version that
can be read, and one that would add it anew is refused (`state.check_not_adopted`). So a file that no version has stays
so. Rule: each other owner that it may have is asked first, each time; then it is deleted; then a
commit says so. A run that was stopped is done again by the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelog.catalog.files import RemovedFile, encode_removed
from lakelog.catalog.imports import drop_claim
from lakelog.catalog.logs import NameTree, NothingToDo, Progress, TrackedLog
from lakelog.catalog.maintenance.adoption import (
    FILES_INLINE_MAX,
    check_claimed,
    check_is_gone,
    files_there,
    holders,
)
from lakelog.catalog.maintenance.reachable import all_chunks, named_by, paths, reachable
from lakelog.catalog.state import Adopted, AdoptedDeleted, TableState, encode
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import LogSealed, NotFound

DELETE_MAX = 1000


@dataclass(frozen=True, slots=True)
class Going:
    """Adopted files that no version has, by path with their sizes: those to be deleted, and those that are gone or are
    other files by now. `held` ones stay, as another table has them."""

    adopted: Adopted
    files: dict[str, int] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    held: int = 0


def sizes_of(tracked: TrackedLog[TableState], view: View[TableState]) -> dict[str, int]:
    """Return the sizes of the files that a table has adopted, by path. Reads their manifests."""
    adopted = view.state.adopted
    if adopted is None or not adopted.files.file_count:
        return {}
    files = adopted.files.table(tracked.log.read_blobs)
    return dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))


def unreached(
    tree: NameTree, tracked: TrackedLog[TableState], view: View[TableState], report: Progress, *, settle: bool
) -> Going | None:
    """Return the adopted files that no version has; None where there are none. InvalidInput where the source is there
    again, or the claim is not this table's."""
    adopted, sizes = view.state.adopted, sizes_of(tracked, view)
    if adopted is None or not sizes:
        return None
    left = set(sizes)
    for chunk in tracked.read(view, lambda view: all_chunks(tracked, view)):
        left -= paths(named_by(chunk))
    if left:
        left -= paths(reachable(tracked, view.version))
    sizes = {path: sizes[path] for path in left}
    return _going(tree, tracked, view.log_id, adopted, sizes, report, settle=settle)


def _going(
    tree: NameTree,
    tracked: TrackedLog[TableState],
    log_id: str,
    adopted: Adopted,
    sizes: dict[str, int],
    report: Progress,
    *,
    settle: bool,
) -> Going | None:
    if not sizes:
        return None
    check_claimed(tree, tracked, log_id, adopted)
    check_is_gone(tree, adopted.source)
    held = holders(tree, tracked, sizes, report, settle=settle)
    there = files_there(tree, adopted.source.url)
    free = {path: size for path, size in sizes.items() if path not in held}
    going = {path: size for path, size in free.items() if there.get(path) == size}
    return Going(adopted, going, tuple(sorted(free.keys() - going.keys())), len(held))


def delete(tree: NameTree, tracked: TrackedLog[TableState], view: View[TableState], going: Going) -> None:
    """Delete the files, then commit that they are."""
    _delete(tree, going)
    done = {*going.files, *going.absent}
    empties = False

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        nonlocal empties
        sizes = sizes_of(tracked, view)
        files = [
            RemovedFile(path=path, rows=0, size_bytes=sizes[path]) for path in sorted(done & sizes.keys())
        ]
        if not files:
            raise NothingToDo("another vacuum has said so")
        empties = len(files) == len(sizes)
        if len(files) <= FILES_INLINE_MAX:
            return Draft(events=encode([AdoptedDeleted(files=tuple(files))]))
        return Draft(events=encode([AdoptedDeleted(files_sidecar=0)]), blobs=(encode_removed(files),))

    try:
        tracked.commit(view, decide)
    except (NothingToDo, LogSealed):
        return
    if empties:
        drop_claim(tree.logs.places.open_url, going.adopted.source.url)


def of_dropped(
    tree: NameTree, tracked: TrackedLog[TableState], view: View[TableState], report: Progress, *, settle: bool
) -> Going | None:
    """Return the files that a dropped table has adopted: all of them. None where there are none, or the table is purged
    and they were deleted by a run before: then the version before the purge has expired."""
    if view.purged:
        try:
            view = tracked.log.view_at(view.version - 1)
        except NotFound:
            return None
    adopted = view.state.adopted
    if adopted is None:
        return None
    return _going(tree, tracked, view.log_id, adopted, sizes_of(tracked, view), report, settle=settle)


def delete_of_purged(tree: NameTree, going: Going) -> None:
    """Delete the adopted files of a table that is purged."""
    _delete(tree, going)
    if not going.held:
        drop_claim(tree.logs.places.open_url, going.adopted.source.url)


def _delete(tree: NameTree, going: Going) -> None:
    folder = going.adopted.source.url
    store, key = tree.logs.places.open_url(f"{folder}/_")
    keys = [key[:-1] + path.removeprefix(f"{folder}/") for path in sorted(going.files)]
    for start in range(0, len(keys), DELETE_MAX):
        store.delete(keys[start : start + DELETE_MAX])
