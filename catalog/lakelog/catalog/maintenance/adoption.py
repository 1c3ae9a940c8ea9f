"""Adoption: files of an imported table become its own, one by one named in a commit, once nothing else has them.

Who else may have a file is asked each time that it matters: before it is adopted, and before it is deleted.

- The source: it has all of its files as long as its metadata is there, of whatever version. That is stronger than that
  its newest version lists the file: a source can go back, and may itself delete what it does not list. What is gone
  cannot commit, so nothing can come between the check and the commit.
- Another table of the warehouse, dropped or not, at any version that can be read, on any tag or branch. A claim in the
  source's folder is put before these are asked, and an import looks for it after its commit (`imports.claims`).

Rule: what cannot be known counts as another owner. Files outside of the source's folder may be another table's, and
are never adopted. It must not know how files are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from lakelog.catalog.errors import CommitConflict, SourceDiverged
from lakelog.catalog.files import RemovedFile, encode_removed, is_elsewhere, started_at
from lakelog.catalog.imports import IMPORTED, Claim, claim_of, drop_claim, put_claim
from lakelog.catalog.logs import (
    NameTree,
    Progress,
    TableHead,
    TrackedLog,
    chosen_scope,
    no_progress,
)
from lakelog.catalog.maintenance.reachable import reachable
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.state import (
    NAMESPACE,
    RELATION,
    Adopted,
    FilesAdopted,
    ImportedSource,
    NamespaceState,
    RefDropped,
    TableEvent,
    TableState,
    encode,
)
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, StorageError, Unsupported

_OF_A_TABLE = re.compile(r"/(?:_delta_log|_log|\.hoodie)/|\.metadata\.json(?:\.gz)?$")
"""Matches objects that make a folder a table: of Delta, lakelog, Hudi or Iceberg."""

FILES_INLINE_MAX = 200
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What was adopted, or would be: `files` with `size_bytes`. `left_out` files of the source are outside of its
    folder, or another lakelog table's: they stay what they were. With `dry_run`, `version` is None."""

    table: Identifier
    source: str
    files: int
    size_bytes: int
    left_out: int
    dry_run: bool
    version: int | None


def adopt_files(
    tree: NameTree, identifier: Identifier, *, dry_run: bool, progress: Progress | None = None
) -> Adoption:
    """Make the files that a table has of its source the table's own. See `Catalog.adopt_files`."""
    report = progress or no_progress
    chosen_scope(tree, identifier)
    head = TableHead.named(tree.logs, tree.table(identifier), identifier)
    source = _source(head)
    check_is_gone(tree, source)
    files, left_out = _files_of(tree, head, source)
    report(f"{len(files):,} files of {source.url} are in {head.name}, and {left_out:,} others")
    if not files:
        raise InvalidInput(
            f"{head.name} has no file in {source.url} that it could adopt: its {left_out:,} files of others are "
            "elsewhere, or another lakelog table's. Rewrite them by a compaction, and nothing of the source is needed"
        )
    version = None
    if dry_run:
        check_not_held(tree, head.tracked, files, report, settle=False)
    else:
        version = _adopt(tree, head, source, files, report).version
    return Adoption(
        table=identifier,
        source=source.url,
        files=len(files),
        size_bytes=sum(files.values()),
        left_out=left_out,
        dry_run=dry_run,
        version=version,
    )


def _source(head: TableHead) -> ImportedSource:
    """Return the source that the table has. InvalidInput, Unsupported where there is none whose end could be seen."""
    source, adopted = head.state.source, head.state.adopted
    if source is None and adopted is not None:
        raise InvalidInput(f"{head.name} has adopted the files of {adopted.source.url} already")
    if source is None:
        raise InvalidInput(f"{head.name} was not imported: only files of an import are adopted")
    if source.metadata is None:
        raise Unsupported(
            f"{head.name} was imported from a folder of files, {source.url}, and nothing says that no one else reads "
            "these: compact the table, or import the folder with copy, and delete the folder yourself"
        )
    return source


def _adopt(
    tree: NameTree, head: TableHead, source: ImportedSource, files: dict[str, int], report: Progress
) -> TableHead:
    open_url = tree.logs.places.open_url
    is_new = put_claim(open_url, source.url, Claim(table=head.url, log_id=head.id))
    try:
        check_is_gone(tree, source)
        check_not_held(tree, head.tracked, files, report, settle=True)
    except InvalidInput:
        if is_new:
            drop_claim(open_url, source.url)
        raise
    named = [RemovedFile(path=path, rows=0, size_bytes=size) for path, size in sorted(files.items())]

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        if view.state.source != source:
            raise CommitConflict(
                f"{head.name} was imported again, replaced, or its files were adopted meanwhile: adopt them again",
                version=view.version,
            )
        event, blobs = _named_in(FilesAdopted(source=source), named)
        events: list[TableEvent] = [event]
        ref = view.state.refs.get(IMPORTED)
        if ref is not None and ref.id == source.ref:
            # It has what the source had, which is not caught up with any more.
            events.append(RefDropped(name=IMPORTED, kind=ref.kind))
        return Draft(events=encode(events), blobs=blobs)

    return head.commit_or_refresh(decide, None)


def _named_in(event: FilesAdopted, files: Sequence[RemovedFile]) -> tuple[FilesAdopted, tuple[bytes, ...]]:
    if len(files) <= FILES_INLINE_MAX:
        return FilesAdopted(source=event.source, files=tuple(files)), ()
    return FilesAdopted(source=event.source, files_sidecar=0), (encode_removed(files),)


def _files_of(tree: NameTree, head: TableHead, source: ImportedSource) -> tuple[dict[str, int], int]:
    """Return the sizes of the files that the table has of its source at any version, by path, and how many others it
    has elsewhere. SourceDiverged where one of them is not there as it was."""
    known = reachable(head.tracked, head.version)
    sizes = dict(zip(known["path"].to_pylist(), known["size"].to_pylist(), strict=True))
    elsewhere = {path: size for path, size in sizes.items() if is_elsewhere(path)}
    own = {path: size for path, size in elsewhere.items() if _is_in(path, source.url)}
    there = files_there(tree, source.url)
    wrong = [path for path, size in own.items() if there.get(path) != size]
    if wrong:
        raise SourceDiverged(
            f"{_listed(wrong)} of {head.name} are not in {source.url} any more, or are others by now: roll the table "
            "back, or delete their rows, and expire the versions that have them"
        )
    return own, len(elsewhere) - len(own)


def _is_in(path: str, folder: str) -> bool:
    """Return whether a file is surely the source's: in its folder, also behind links, and not a lakelog table's."""
    if not path.startswith(f"{folder}/") or started_at(f"data/{path.rpartition('/')[2]}") is not None:
        return False
    inside = path.removeprefix(f"{folder}/").split("/")
    if any(part in ("", ".", "..") for part in inside):
        return False
    return (
        not path.startswith("/") or os.path.realpath(path) == f"{os.path.realpath(folder)}/{'/'.join(inside)}"
    )


def files_there(tree: NameTree, folder: str) -> dict[str, int]:
    """Return the sizes of all files in a folder, by path. SourceDiverged where a table of any format is in it, at any
    depth. One LIST for every 1000."""
    store, key = tree.logs.places.open_url(f"{folder}/_")
    prefix = key[:-1]
    found = {f"{folder}/{name.removeprefix(prefix)}": size for name, size in store.list_sizes(prefix)}
    for path in found:
        if _OF_A_TABLE.search(path.removeprefix(folder)):
            raise SourceDiverged(
                f"{path} is of a table in {folder}, which may have the files there: move that table away, or keep the "
                "files as they are"
            )
    return found


# Other owners


def check_is_gone(tree: NameTree, source: ImportedSource) -> None:
    """Raise SourceDiverged where the source is there: it has its files then, of whatever version they are."""
    folders = {source.metadata, f"{source.url}/metadata", f"{source.url}/_delta_log"} - {None}
    for folder in sorted(map(str, folders)):
        if (found := _object_in(tree, folder)) is not None:
            raise SourceDiverged(
                f"the {source.format} table at {source.url} is there: {folder}/{found}. It has its files then, and "
                f"may delete them. Drop it in its own catalog, keeping its files, move {folder} away, and adopt again"
            )


def _object_in(tree: NameTree, folder: str) -> str | None:
    """Return the name of an object in a folder; None where there is none."""
    if folder.startswith("/"):
        # Stores leave out what they may not follow, and what is half written: here all of it counts.
        try:
            return next(iter(os.listdir(folder)), None)
        except FileNotFoundError:
            return "" if os.path.lexists(folder) else None
        except OSError as error:
            raise StorageError(
                f"cannot list {folder} ({error.strerror}): give this user the right to", location=folder
            ) from error
    store, key = tree.logs.places.open_url(f"{folder}/_")
    found = next(iter(store.list_after(key[:-1])), None)
    return None if found is None else found.removeprefix(key[:-1])


def check_not_held(
    tree: NameTree, own: TrackedLog[TableState], files: Collection[str], report: Progress, *, settle: bool
) -> None:
    """Raise InvalidInput where another table of the warehouse has one of the files."""
    held = holders(tree, own, files, report, settle=settle)
    if held:
        path, name = next(iter(held.items()))
        more = f", and {len(held) - 1:,} more files" if len(held) > 1 else ""
        raise InvalidInput(
            f"{name} has the file {path} too{more}: rewrite it there by a compaction and expire older versions, or "
            "drop and purge that table, before the files are adopted"
        )


def holders(
    tree: NameTree, own: TrackedLog[TableState], files: Collection[str], report: Progress, *, settle: bool
) -> dict[str, str]:
    """Return the tables of the warehouse that have one of the files at any version that can be read, by the file. With
    `settle`, no transaction under way can bring one to a table later.

    Costs, for each table, what reading its newest version costs and a GET for each version that can be read. Raises
    where a table cannot be read: it may have any of them.
    """
    found: dict[str, str] = {}
    wanted = set(files)
    for name, tracked in _other_tables(tree, own.location):
        report(f"looking for the files in {name}")
        try:
            view = tracked.settled() if settle else tracked.current()
            if view.purged:
                continue
            known = reachable(tracked, view.version)
        except NotFound:
            continue  # its place has another log by now, or none
        except LakelogError as error:
            raise InvalidInput(
                f"{name} cannot be read, and may have files that are to be adopted: {error}"
            ) from error
        away = known["path"].filter(
            pc.or_(pc.starts_with(known["path"], "/"), pc.match_substring(known["path"], "://"))
        )
        found |= dict.fromkeys(wanted.intersection(away.to_pylist()), name)
    return found


def _other_tables(tree: NameTree, own: str) -> Iterator[tuple[str, TrackedLog[TableState]]]:
    """Yield all tables of the warehouse but one, with those that can be restored."""
    root = tree.find_namespace(())
    left: list[tuple[Identifier, NamespaceState]] = [] if root is None else [((), root.view.state)]
    met = {own, ""}
    while left:
        path, state = left.pop()
        entries = [
            (space, name, entry.location)
            for space in (RELATION, NAMESPACE)
            for name, entry in sorted(state.entries.get(space, {}).items())
        ]
        entries += [(each.space, each.name, each.location) for each in state.dropped.values()]
        for space, name, location in entries:
            if location in met:
                continue
            met.add(location)
            if space == RELATION:
                yield quoted((*path, name)), tree.logs.table(location)
                continue
            try:
                left.append(((*path, name), tree.logs.namespace(location).current().state))
            except NotFound:
                continue
            except LakelogError as error:
                raise InvalidInput(
                    f"the namespace {quoted((*path, name))} cannot be read, and its tables may have files that are to "
                    f"be adopted: {error}"
                ) from error


def check_claimed(tree: NameTree, tracked: TrackedLog[TableState], log_id: str, adopted: Adopted) -> None:
    """Raise InvalidInput unless the folder says that this very table, at this place, has adopted files of it."""
    there = claim_of(tree.logs.places.open_url, adopted.source.url)
    if there != Claim(table=tree.logs.url(tracked.location), log_id=log_id):
        who = "no table" if there is None else f"the table at {there.table}"
        raise InvalidInput(
            f"by now {who} has adopted the files in {adopted.source.url}, as {adopted.source.url} itself says: they "
            "are not deleted"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"the files {', '.join(names[:_NAMED])}{more}"
