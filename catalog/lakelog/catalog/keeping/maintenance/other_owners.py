"""Other possible owners of the files of a source that is gone.

They are checked before an adoption and each deletion.

- The source: it has all of its files, of any version, as long as its metadata exists. That is stronger than a
  check
that its newest version lists the file. A source can go back, and may itself delete files that it does not
list. A source that is gone cannot commit, so nothing can come between the check and the commit.
- A table of another format in the same folder, at any depth, or in a folder above.
- Another table of the warehouse, dropped or not, at any readable version, on any tag or branch. A claim in
  the source's
folder is created before these are checked, and an import looks for it after its commit (`imports.claims`).

Rule: an unknown fact counts as another owner. This module must not know which of the files the table itself
still needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from lakelog.catalog.core.files import is_elsewhere, started_at
from lakelog.catalog.core.logs import NameTree, Progress, TrackedLog
from lakelog.catalog.core.state import NAMESPACE, RELATION, ImportedSource, NamespaceState, TableState
from lakelog.catalog.errors import OwnersUnknown, SourceDiverged
from lakelog.catalog.formats.imports import FolderClaim, check_unclaimed, claim_of, is_claim, upwards
from lakelog.catalog.keeping.maintenance.reachable import reachable
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput, LakelogError, StorageError

_OF_A_TABLE = re.compile(r"/(?:_delta_log|_log|\.hoodie)/|\.metadata\.json(?:\.gz)?$")
"""Matches objects that make a folder a table: of Delta, lakelog, Hudi or Iceberg."""

WALKS_MAX = 5


def check_claimed(tree: NameTree, claim: FolderClaim, folder: str) -> None:
    """Raise InvalidInput unless the folder's claim names this very table, at this place.

    Also raises it if a folder above has a claim of another table.
    """
    open_url = tree.logs.places.open_url
    present_claim = claim_of(open_url, folder)
    if present_claim != claim:
        owner = "no table" if present_claim is None else f"the table at {present_claim.table}"
        raise InvalidInput(
            f"by now {owner} has adopted the files in {folder}, as {folder} itself says: they are not deleted"
        )
    check_unclaimed(open_url, [folder], claim)


# Other formats


def check_is_gone(tree: NameTree, source: ImportedSource) -> None:
    """Raise SourceDiverged if the source exists, because it then has its files, of any version.

    The same holds for a table of another format in a folder above. Makes a few LIST requests for each of
    these.
    """
    folders = {source.metadata, f"{source.url}/metadata", f"{source.url}/_delta_log"} - {None}
    for folder in sorted(map(str, folders)):
        if (name := _object_in(tree, folder)) is not None:
            raise SourceDiverged(
                f"the {source.format} table at {source.url} is there: {folder}/{name}. It has its files then, and "
                f"may delete them. Drop it in its own catalog, keeping its files, move {folder} away, and adopt again"
            )
    for above in dict.fromkeys(upwards(source.url)):
        if is_same_place(above, source.url):
            continue
        for folder, is_metadata in (("_delta_log", False), (".hoodie", False), ("metadata", True)):
            name = _object_in(tree, f"{above}/{folder}", only_metadata=is_metadata)
            if name is not None:
                raise _of_a_table(f"{above}/{folder}/{name}", above)


def _object_in(tree: NameTree, folder: str, *, only_metadata: bool = False) -> str | None:
    """Return the name of an object in a folder. None if there is none.

    With `only_metadata`, only Iceberg's metadata counts.
    """
    if folder.startswith("/"):
        # Stores skip links that they may not follow, and half-written objects. Here all objects count.
        try:
            names: Iterable[str] = os.listdir(folder)
        except FileNotFoundError:
            names = [""] if os.path.lexists(folder) else []
        except NotADirectoryError:
            names = []
        except OSError as error:
            raise StorageError(
                f"cannot list {folder} ({error.strerror}): give this user the right to", location=folder
            ) from error
    else:
        store, key = tree.logs.places.open_url(f"{folder}/_")
        names = (name.removeprefix(key[:-1]) for name in store.list_after(key[:-1]))
    return next((name for name in names if not only_metadata or _OF_A_TABLE.search(f"/{name}")), None)


def files_there(tree: NameTree, folder: str) -> dict[str, int]:
    """Return the sizes of all files in a folder, by path.

    Raises SourceDiverged if the folder has a table of any format, at any depth, and InvalidInput if a table
    adopted files there. Makes a LIST request for every 1000 files.
    """
    store, key = tree.logs.places.open_url(f"{folder}/_")
    prefix = key[:-1]
    sizes = {f"{folder}/{name.removeprefix(prefix)}": size for name, size in store.list_sizes(prefix)}
    for path in sizes:
        inside = path.removeprefix(folder)
        if _OF_A_TABLE.search(inside):
            raise _of_a_table(path, folder)
        if is_claim(inside) and inside.count("/") > 1:
            raise InvalidInput(
                f"{path} says that another table has adopted files there: delete it where that table is gone, or keep "
                "the files as they are"
            )
    return sizes


def _of_a_table(path: str, folder: str) -> SourceDiverged:
    return SourceDiverged(
        f"{path} is of a table in {folder}, which may have the files there: move that table away, or keep the files as "
        "they are"
    )


def is_inside(path: str, folder: str) -> bool:
    """Return whether a file is certainly the source's: in its folder, even by links, and not lakelog's own."""
    if not path.startswith(f"{folder}/") or started_at(f"data/{path.rpartition('/')[2]}") is not None:
        return False
    inside = path.removeprefix(f"{folder}/").split("/")
    if any(part in ("", ".", "..") for part in inside):
        return False
    return (
        not path.startswith("/") or os.path.realpath(path) == f"{os.path.realpath(folder)}/{'/'.join(inside)}"
    )


def is_same_place(one: str, other: str) -> bool:
    """Return whether two URLs lead to the same folder."""
    return _real(one) == _real(other)


def _real(folder: str) -> str:
    return os.path.realpath(folder) if folder.startswith("/") else canonical_url(folder)


# Other tables


class SoughtFiles:
    """Files that are searched under each name that may lead to them: other spellings, and links."""

    def __init__(self, paths: Collection[str]) -> None:
        self._real: dict[str, str] = {}
        self._named: dict[str, list[str]] = {}
        self._met: dict[tuple[int, int], list[str]] = {}
        for path in paths:
            self._named.setdefault(_spelled(path, self._real), []).append(path)
            if (id := _file_id(path)) is not None:
                self._met.setdefault(id, []).append(path)

    def among(self, paths: Iterable[str]) -> set[str]:
        """Return the files that are also among `paths`, of any table.

        Raises StorageError if that cannot be known.
        """
        matches: set[str] = set()
        for path in filter(is_elsewhere, paths):
            matches.update(self._named.get(_spelled(path, self._real), ()))
            if self._met and (id := _file_id(path)) is not None:
                matches.update(self._met.get(id, ()))
        return matches


def _spelled(path: str, known: dict[str, str]) -> str:
    """Return the canonical spelling of a file's place. `known` has the folders that were resolved."""
    if not path.startswith("/"):
        try:
            return canonical_url(path)
        except InvalidInput:
            return path
    folder, _, name = path.rpartition("/")
    if folder not in known:
        known[folder] = os.path.realpath(folder or "/").rstrip("/")
    return f"{known[folder]}/{name}"


def _file_id(path: str) -> tuple[int, int] | None:
    """Return the system's id of a local file, whatever links lead there. None if there is none."""
    if not path.startswith("/"):
        return None
    try:
        stat = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(
            f"cannot look at {path} ({error.strerror}), which may be one of the files: give this user the right to",
            location=path,
        ) from error
    return stat.st_dev, stat.st_ino


def check_not_held(
    tree: NameTree, own: TrackedLog[TableState], files: Collection[str], report: Progress, *, settle: bool
) -> None:
    """Raise InvalidInput if another table of the warehouse has any of the files."""
    owners = holders(tree, own, files, report, settle=settle)
    if owners:
        path, name = next(iter(owners.items()))
        more = f", and {len(owners) - 1:,} more files" if len(owners) > 1 else ""
        raise InvalidInput(
            f"{name} has the file {path} too{more}: rewrite it there by a compaction and expire older versions, or "
            "drop and purge that table, before the files are adopted"
        )


def holders(
    tree: NameTree, own: TrackedLog[TableState], files: Collection[str], report: Progress, *, settle: bool
) -> dict[str, str]:
    """Return the tables of the warehouse that have any of the files at a readable version, by the file.

    With `settle`, no transaction under way can bring a file to a table later.

    For each table, costs as much as reading its newest version, and makes a GET request for each readable
    version. Makes 2 GET requests for each namespace. Raises OwnersUnknown if a table cannot be read, because
    it may have any of them. Also raises it if tables are created, moved or dropped all the time, because a
    table may have been missed.
    """
    owners: dict[str, str] = {}
    search, met = SoughtFiles(files), {own.location}
    walk = _walk(tree, settle=settle)
    for _ in range(WALKS_MAX):
        for location, (name, id) in walk.tables.items():
            if location in met:
                continue
            met.add(location)
            report(f"looking for the files in {name}")
            held_paths = _held_by(tree.logs.table(location), name, id, search, settle=settle)
            owners |= dict.fromkeys(held_paths, name)
        previous_walk, walk = walk, _walk(tree, settle=settle)
        if walk.versions == previous_walk.versions:
            return owners
    raise OwnersUnknown(
        f"tables of {tree.logs.places.warehouse} are created, moved or dropped while it is looked which of them have "
        "files that are to be adopted: try again later"
    )


def _held_by(
    tracked: TrackedLog[TableState], name: str, id: str, sought_files: SoughtFiles, *, settle: bool
) -> set[str]:
    try:
        view = tracked.at_its_place()
        if view.log_id != id:
            # The known state may belong to an earlier log at a place that a user chose.
            view = tracked.anew()
        view = tracked.settled() if settle else view
        return (
            set() if view.purged else sought_files.among(reachable(tracked, view.version)["path"].to_pylist())
        )
    except LakelogError as error:
        raise OwnersUnknown(
            f"{name} cannot be read, and may have files that are to be adopted: {error}"
        ) from error


@dataclass(slots=True)
class _Walk:
    """The tables of a warehouse, including tables that can be restored: names and ids by location.

    A table that is moved during the walk may be missing, unless the `versions` of all namespaces are the same
    in the next walk.
    """

    tables: dict[str, tuple[str, str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)


def _walk(tree: NameTree, *, settle: bool) -> _Walk:
    walk = _Walk()
    root = tree.find_namespace(())
    pending: list[tuple[Identifier, str]] = [] if root is None else [((), root.tracked.location)]
    while pending:
        path, location = pending.pop()
        if location in walk.versions:
            continue
        namespace_log = tree.logs.namespace(location)
        try:
            view = namespace_log.settled() if settle else namespace_log.current()
        except LakelogError as error:
            raise OwnersUnknown(
                f"the namespace {quoted(path)} cannot be read, and its tables may have files that are to be adopted: "
                f"{error}"
            ) from error
        walk.versions[location] = view.version
        for space, name, id, place in _entries(view.state):
            if space == RELATION:
                walk.tables.setdefault(place, (quoted((*path, name)), id))
            else:
                pending.append(((*path, name), place))
    return walk


def _entries(state: NamespaceState) -> Iterable[tuple[str, str, str, str]]:
    for space in (RELATION, NAMESPACE):
        for name, entry in sorted(state.logs(space)):
            yield space, name, entry.id, entry.location
    for drop in state.dropped_logs():
        yield drop.space, drop.name, drop.entry.id, drop.entry.location
