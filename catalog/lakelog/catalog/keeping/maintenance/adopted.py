"""Deleting files that a table has adopted, once no readable version of the table has them.

Unlike a table's own new files, they need no fence. A commit brings an adopted file back only from a readable
version, and a commit that would add it anew is refused (`state.check_not_adopted`). So no version can get
back a file that no version has. Rule: each other owner that a file may have is checked first, each time. Then
the file is deleted, and then a commit records it. The next run repeats a stopped run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakelog.catalog.core.logs import NameTree, NothingToDo, Progress, TrackedLog
from lakelog.catalog.core.state import AdoptedDeleted, AdoptedFiles, TableState, encode, naming
from lakelog.catalog.formats.imports import FolderClaim
from lakelog.catalog.keeping.maintenance.other_owners import (
    SoughtFiles,
    check_claimed,
    check_is_gone,
    files_there,
    holders,
    is_inside,
)
from lakelog.catalog.keeping.maintenance.reachable import all_named, paths, reachable
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import LogSealed, NotFound

DELETE_MAX = 1000


@dataclass(frozen=True, slots=True)
class UnusedAdoptedFiles:
    """Adopted files of no version, by path with their sizes: `files` to delete, and `absent` files.

    Absent files are gone, or are other files now. `held` files stay because another table has them. `claim`
    names the owner.
    """

    adopted: AdoptedFiles
    claim: FolderClaim
    files: dict[str, int] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    held: int = 0


def sizes_of(tracked: TrackedLog[TableState], view: LogView[TableState]) -> dict[str, int]:
    """Return the sizes of the files that a table has adopted, by path. Reads their manifests."""
    adoption = view.state.adopted
    if adoption is None or not adoption.files.file_count:
        return {}
    files = adoption.files.table(tracked.log.read_blobs)
    return dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))


def unreached(
    tree: NameTree,
    tracked: TrackedLog[TableState],
    view: LogView[TableState],
    report: Progress,
    *,
    settle: bool,
) -> UnusedAdoptedFiles | None:
    """Return the adopted files that no version has. None if there are none.

    Raises InvalidInput if the source exists again, or if the claim is not this table's.
    """
    adoption, sizes = view.state.adopted, sizes_of(tracked, view)
    if adoption is None or not sizes:
        return None
    unused = set(sizes)
    for part in tracked.read(view, lambda view: all_named(tracked, view)):
        unused -= paths(part)
    if unused:
        reachable_paths = paths(reachable(tracked, view.version))
        unused -= reachable_paths
        unused -= SoughtFiles(unused).among(reachable_paths)
    sizes = {path: sizes[path] for path in unused}
    return _going(tree, tracked, view.log_id, adoption, sizes, report, settle=settle)


def _going(
    tree: NameTree,
    tracked: TrackedLog[TableState],
    log_id: str,
    adopted: AdoptedFiles,
    sizes: dict[str, int],
    report: Progress,
    *,
    settle: bool,
) -> UnusedAdoptedFiles | None:
    if not sizes:
        return None
    folder, claim = adopted.source.url, FolderClaim(table=tree.logs.url(tracked.location), log_id=log_id)
    check_claimed(tree, claim, folder)
    check_is_gone(tree, adopted.source)
    owners = holders(tree, tracked, sizes, report, settle=settle)
    sizes_there = files_there(tree, folder)
    free = {path: size for path, size in sizes.items() if path not in owners}
    # Since the adoption, another file may have replaced an adopted file, or a link may have replaced a
    # folder.
    unchanged = {
        path: size for path, size in free.items() if sizes_there.get(path) == size and is_inside(path, folder)
    }
    return UnusedAdoptedFiles(
        adopted, claim, unchanged, tuple(sorted(free.keys() - unchanged.keys())), len(owners)
    )


def delete(
    tree: NameTree, tracked: TrackedLog[TableState], view: LogView[TableState], going: UnusedAdoptedFiles
) -> None:
    """Delete the files, then commit that they are deleted."""
    delete_files(tree, going)
    paths_gone = {*going.files, *going.absent}

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        sizes = sizes_of(tracked, view)
        gone_sizes = {path: sizes[path] for path in paths_gone & sizes.keys()}
        if not gone_sizes:
            raise NothingToDo("another vacuum has said so")
        event, blobs = naming(AdoptedDeleted(), gone_sizes)
        return Draft(events=encode([event]), blobs=blobs)

    try:
        tracked.commit(view, decide)
    except (NothingToDo, LogSealed):
        return


def of_dropped(
    tree: NameTree,
    tracked: TrackedLog[TableState],
    view: LogView[TableState],
    report: Progress,
    *,
    settle: bool,
) -> UnusedAdoptedFiles | None:
    """Return all files that a dropped table has adopted.

    None if there are none, or an earlier run deleted them.

    The latter holds if the table is purged, and the version before the purge has expired.
    """
    if view.purged:
        try:
            view = tracked.log.view_at(view.version - 1)
        except NotFound:
            return None
    adoption = view.state.adopted
    if adoption is None:
        return None
    return _going(tree, tracked, view.log_id, adoption, sizes_of(tracked, view), report, settle=settle)


def delete_files(tree: NameTree, going: UnusedAdoptedFiles) -> None:
    """Delete the files.

    The claim stays because an importer that is slower than all of this checks it in the end.
    """
    source = going.adopted.source
    store, key = tree.logs.places.open_url(f"{source.url}/_")
    keys = [key[:-1] + path.removeprefix(f"{source.url}/") for path in sorted(going.files)]
    for start in range(0, len(keys), DELETE_MAX):
        check_claimed(tree, going.claim, source.url)
        check_is_gone(tree, source)
        store.delete(keys[start : start + DELETE_MAX])
