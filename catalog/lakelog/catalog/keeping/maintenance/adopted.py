"""Deleting files that a table has adopted, once no version of it has them that can be read.

No fence is needed, as it is for a table's own new files: a commit brings an adopted file back only from a version that
can be read, and one that would add it anew is refused (`state.check_not_adopted`). So a file that no version has stays
so. Rule: each other owner that it may have is asked first, each time; then it is deleted; then a
commit says so. A run that was stopped is done again by the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelog.catalog.core.logs import NameTree, NothingToDo, Progress, TrackedLog
from lakelog.catalog.core.state import Adopted, AdoptedDeleted, TableState, encode, naming
from lakelog.catalog.formats.imports import Claim
from lakelog.catalog.keeping.maintenance.other_owners import (
    Sought,
    check_claimed,
    check_is_gone,
    files_there,
    holders,
    is_inside,
)
from lakelog.catalog.keeping.maintenance.reachable import all_named, paths, reachable
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import LogSealed, NotFound

DELETE_MAX = 1000


@dataclass(frozen=True, slots=True)
class Going:
    """Adopted files that no version has, by path with their sizes: those to be deleted, and those that are gone or are
    other files by now. `held` ones stay, as another table has them. `claim` says whose they are."""

    adopted: Adopted
    claim: Claim
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
    for part in tracked.read(view, lambda view: all_named(tracked, view)):
        left -= paths(part)
    if left:
        known = paths(reachable(tracked, view.version))
        left -= known
        left -= Sought(left).among(known)
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
    folder, claim = adopted.source.url, Claim(table=tree.logs.url(tracked.location), log_id=log_id)
    check_claimed(tree, claim, folder)
    check_is_gone(tree, adopted.source)
    held = holders(tree, tracked, sizes, report, settle=settle)
    there = files_there(tree, folder)
    free = {path: size for path, size in sizes.items() if path not in held}
    # Since they were adopted, another file may have come in the place of one, or a link in that of a folder.
    going = {path: size for path, size in free.items() if there.get(path) == size and is_inside(path, folder)}
    return Going(adopted, claim, going, tuple(sorted(free.keys() - going.keys())), len(held))


def delete(tree: NameTree, tracked: TrackedLog[TableState], view: View[TableState], going: Going) -> None:
    """Delete the files, then commit that they are."""
    delete_files(tree, going)
    done = {*going.files, *going.absent}

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        sizes = sizes_of(tracked, view)
        gone = {path: sizes[path] for path in done & sizes.keys()}
        if not gone:
            raise NothingToDo("another vacuum has said so")
        event, blobs = naming(AdoptedDeleted(), gone)
        return Draft(events=encode([event]), blobs=blobs)

    try:
        tracked.commit(view, decide)
    except (NothingToDo, LogSealed):
        return


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


def delete_files(tree: NameTree, going: Going) -> None:
    """Delete the files. The claim stays: an importer that is slower than all of this looks for it in the end."""
    source = going.adopted.source
    store, key = tree.logs.places.open_url(f"{source.url}/_")
    keys = [key[:-1] + path.removeprefix(f"{source.url}/") for path in sorted(going.files)]
    for start in range(0, len(keys), DELETE_MAX):
        check_claimed(tree, going.claim, source.url)
        check_is_gone(tree, source)
        store.delete(keys[start : start + DELETE_MAX])
