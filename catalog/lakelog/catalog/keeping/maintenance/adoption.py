"""Adoption: files of an imported table become its own, each named in a commit, once no other owner has them.

Rule: files are adopted only after every other possible owner was checked (`other_owners`). The same check
precedes each deletion of a file. Files outside of the source's folder may be another table's, and are never
adopted. This module must not know how files are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import NameTree, Progress, TableHead, chosen_scope, no_progress
from lakelog.catalog.core.state import (
    FilesAdopted,
    ImportedSource,
    RefDropped,
    TableEvent,
    TableState,
    encode,
    naming,
)
from lakelog.catalog.errors import CommitConflict, DoneInPart, SourceDiverged
from lakelog.catalog.formats.imports import CLAIM, IMPORTED, FolderClaim, claim_of, drop_claim, put_claim
from lakelog.catalog.keeping.maintenance.other_owners import (
    check_claimed,
    check_is_gone,
    check_not_held,
    files_there,
    is_inside,
    is_same_place,
)
from lakelog.catalog.keeping.maintenance.reachable import reachable
from lakelog.catalog.names import Identifier
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import CommitUnknown, InvalidInput, LakelogError, Unsupported

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The adopted files, or the files that would be: `files` with `size_bytes`.

    `left_out` files of the source are outside of its folder, or another lakelog table's. They do not change.
    With `dry_run`, `version` is None.
    """

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
    """Return the table's source.

    Raises InvalidInput or Unsupported if it has no source whose end can be detected.
    """
    source, adoption = head.state.source, head.state.adopted
    if source is None and adoption is not None:
        raise InvalidInput(f"{head.name} has adopted the files of {adoption.source.url} already")
    if source is None:
        raise InvalidInput(f"{head.name} was not imported: only files of an import are adopted")
    if source.copies:
        raise InvalidInput(
            f"{head.name} was imported with copies, and needs no file of {source.url}: there is nothing to adopt"
        )
    if source.metadata is None:
        raise Unsupported(
            f"{head.name} was imported from a folder of files, {source.url}, and nothing says that no one else reads "
            "these: compact the table, or import the folder with copy, and delete the folder yourself"
        )
    if not is_same_place(source.metadata.rpartition("/")[0], source.url):
        raise Unsupported(
            f"{head.name} was imported by the metadata in {source.metadata}, which is not in the folder of the source, "
            f"{source.url}: whether the source is gone cannot be seen there. Compact the table, and delete the files "
            "yourself"
        )
    return source


def _adopt(
    tree: NameTree, head: TableHead, source: ImportedSource, files: dict[str, int], report: Progress
) -> TableHead:
    open_url = tree.logs.places.open_url
    claim = FolderClaim(table=head.url, log_id=head.id)
    put_claim(open_url, source.url, claim)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        if view.state.source != source:
            raise CommitConflict(
                f"{head.name} was imported again, replaced, or its files were adopted meanwhile: adopt them again",
                version=view.version,
            )
        event, blobs = naming(FilesAdopted(source=source), files)
        events: list[TableEvent] = [event]
        ref = view.state.refs.get(IMPORTED)
        if ref is not None and ref.id == source.ref:
            # The tag has the source's state, with which the table does not catch up any more.
            events.append(RefDropped(name=IMPORTED, kind=ref.kind))
        return Draft(events=encode(events), blobs=blobs)

    try:
        check_claimed(tree, claim, source.url)
        check_is_gone(tree, source)
        _check_there(tree, head, source, files)
        check_not_held(tree, head.tracked, files, report, settle=True)
        new_head = head.commit_or_refresh(decide, None)
    except CommitUnknown:
        raise  # the files may be the table's, so that the claim has to stay
    except LakelogError as error:
        _take_back(tree, head, source, claim, error)
        raise
    # A failed adoption of the same table at the same time may have withdrawn the claim in between.
    put_claim(open_url, source.url, claim)
    return new_head


def _take_back(
    tree: NameTree, head: TableHead, source: ImportedSource, claim: FolderClaim, error: LakelogError
) -> None:
    """Remove the claim of an adoption that failed by `error`, if it is unused.

    It is used if it is another table's, or if another client made the table adopt the files since. Raises
    DoneInPart if that cannot be known: imports from there are refused.
    """
    open_url = tree.logs.places.open_url

    def is_adopted() -> bool:
        adoption = head.tracked.current().state.adopted
        return adoption is not None and adoption.source.url == source.url

    try:
        if is_adopted() or claim_of(open_url, source.url) != claim:
            return
        drop_claim(open_url, source.url)
        if is_adopted():  # since the check
            put_claim(open_url, source.url, claim)
    except LakelogError as failure:
        raise DoneInPart(
            f"{error}. {source.url}/{CLAIM} still says that {head.name} adopts files there ({failure}): adopt them "
            "again, or delete that object"
        ) from error


def _files_of(tree: NameTree, head: TableHead, source: ImportedSource) -> tuple[dict[str, int], int]:
    """Return the sizes of the source's files at any version, by path, and the number of other files.

    The others are elsewhere. Raises SourceDiverged if a file of the source is not there as it was.
    """
    all_files = reachable(head.tracked, head.version)
    sizes = dict(zip(all_files["path"].to_pylist(), all_files["size"].to_pylist(), strict=True))
    elsewhere = {path: size for path, size in sizes.items() if is_elsewhere(path)}
    own = {path: size for path, size in elsewhere.items() if is_inside(path, source.url)}
    _check_there(tree, head, source, own)
    return own, len(elsewhere) - len(own)


def _check_there(tree: NameTree, head: TableHead, source: ImportedSource, files: Mapping[str, int]) -> None:
    sizes_there = files_there(tree, source.url)
    wrong = [path for path, size in files.items() if sizes_there.get(path) != size]
    if wrong:
        raise SourceDiverged(
            f"{_listed(wrong)} of {head.name} are not in {source.url} any more, or are others by now: roll the table "
            "back, or delete their rows, and expire the versions that have them"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"the files {', '.join(names[:_NAMED])}{more}"
