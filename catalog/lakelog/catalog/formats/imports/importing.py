"""Importing a source, for the first time or again: its format, and the result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lakelog.catalog.choices import SNAPSHOT
from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import NameTree, Progress, TableHead
from lakelog.catalog.core.parquet import leftovers
from lakelog.catalog.core.schema import Schema, warn_of_import
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.formats.imports.catching_up import catch_up, changes_table, imported_files, last_import
from lakelog.catalog.formats.imports.changes import IMPORTED, columns_of, with_rows
from lakelog.catalog.formats.imports.claims import FolderWatch
from lakelog.catalog.formats.imports.copies import SourceCopies
from lakelog.catalog.formats.imports.differences import difference
from lakelog.catalog.formats.imports.first_import import ImportRequest, create_table
from lakelog.catalog.formats.imports.folder_table import KnownFolder
from lakelog.catalog.formats.imports.source import ImportSource
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import InvalidInput, Unsupported

FORMATS = ("iceberg", "delta", "parquet")
MIGRATE = "migrate"
VERSIONS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import. With `dry_run`, nothing was committed, and `version` is None.

    `snapshot` is the source's newest version. `versions` is how many of its versions became the table's,
    or would: 0 if nothing has changed since the last import. Files are counted as the difference to the
    table's earlier files of the source; `changed_files` have other deleted rows. `rows` and `size_bytes` are
    the source's present totals.
    """

    table: Identifier
    format: str
    source: str
    snapshot: str
    is_new: bool
    versions: int
    added_files: int
    removed_files: int
    changed_files: int
    rows: int
    size_bytes: int
    dry_run: bool
    version: int | None


def import_table(
    tree: NameTree,
    source: str,
    identifier: Identifier,
    *,
    format: str,
    mode: str,
    versions: int,
    dry_run: bool,
    copy: bool,
    time_zone: str | None,
    known: KnownFolder | None,
    progress: Progress | None,
) -> Imported:
    """Import the source, or its changes since the last import. See `Catalog.import_table`."""
    if mode == MIGRATE:
        raise Unsupported(
            f"an import does not take the name of its source ({MIGRATE}): no commit spans two catalogs, and writers of "
            f"the source would go on unseen. Import by {SNAPSHOT}, end the writers, import again, rename the source in "
            "its own catalog unless that moves its files, then give its name to the table"
        )
    if mode != SNAPSHOT:
        raise Unsupported(
            f"an import in the mode {mode} does not exist: use {SNAPSHOT}, which leaves the source as it is"
        )
    if not 1 <= versions <= VERSIONS_MAX:
        raise InvalidInput(
            f"an import takes 1 to {VERSIONS_MAX:,} versions, not {versions}: give another number"
        )
    report = progress or (lambda text: None)
    if time_zone is not None and format.lower() != "delta":
        raise InvalidInput(
            f"a source of the format {format} has no times without a zone: leave the time zone out"
        )
    source_table = _opened(tree, source, format, time_zone, known, report)
    watch = FolderWatch(tree.logs.places.open_url, source_table.url)
    for note in source_table.notes:
        report(note)
    request = ImportRequest(
        tree=tree,
        source=source_table,
        watch=watch,
        identifier=identifier,
        versions=versions,
        progress=report,
        note=progress or warn_of_import,
        dry_run=dry_run,
        copy=copy,
    )
    table = tree.find_table(identifier)
    head = None if table is None else TableHead.named(tree.logs, table, identifier)
    result = _first(request) if head is None else _again(head, request)
    _check_still_unclaimed(watch, result)
    return result


def _check_still_unclaimed(watch: FolderWatch, done: Imported) -> None:
    """Raise if a table adopted the files before this import's commit.

    A table that adopts files looks for other tables with these files after its claim. It may have looked
    before the commit.
    """
    try:
        watch.check_again()
    except InvalidInput as error:
        if done.version is None:
            raise
        raise DoneInPart(
            f"{quoted(done.table)} was imported, and meanwhile {error}. Drop {quoted(done.table)}, or roll it back to "
            "the version before the import"
        ) from error


def _opened(
    tree: NameTree,
    source: str,
    format: str,
    time_zone: str | None,
    known_folder: KnownFolder | None,
    progress: Progress,
) -> ImportSource:
    # Code that reads a format is loaded by its imports only, and not with each catalog.
    open_url = tree.logs.places.open_url
    match format.lower():
        case "iceberg":
            from lakelog.catalog.formats.imports.iceberg import IcebergTable

            return IcebergTable(source, open_url, progress)
        case "delta":
            from lakelog.catalog.formats.imports.delta import delta_source

            return delta_source(source, open_url, time_zone=time_zone)
        case "parquet":
            from lakelog.catalog.formats.imports.parquet_folder import ParquetFolder

            return ParquetFolder(source, open_url, progress, known_folder)
        case _:
            raise Unsupported(
                f"a source of the format {format} cannot be imported: use one of {', '.join(FORMATS)}"
            )


def _first(request: ImportRequest) -> Imported:
    source = request.source
    if request.dry_run:
        live_files: dict[str, DataFile] = {}
        columns: Schema | None = None
        count, version, snapshot = 0, None, ""
        for source_version in source.versions(request.versions):
            request.watch.meet(source_version.added)
            columns = columns_of(source_version, columns)
            for path in source_version.removed:
                live_files.pop(path, None)
            live_files |= {file.path: file for file in with_rows(source_version.added)}
            count, snapshot = count + 1, source_version.id
        rows, size_bytes = (
            sum(file.rows for file in live_files.values()),
            sum(file.size_bytes for file in live_files.values()),
        )
        files = len(live_files)
    else:
        head = create_table(request)
        imported_source = head.state.source
        assert imported_source is not None, "an import says what it is of"
        count = version = head.version
        snapshot, totals = imported_source.snapshot, head.state.files
        files, rows, size_bytes = totals.file_count, totals.row_count, totals.size_bytes
    return Imported(
        table=request.identifier,
        format=source.format,
        source=source.url,
        snapshot=snapshot,
        is_new=True,
        versions=count,
        added_files=files,
        removed_files=0,
        changed_files=0,
        rows=rows,
        size_bytes=size_bytes,
        dry_run=request.dry_run,
        version=version,
    )


def _again(head: TableHead, request: ImportRequest) -> Imported:
    source = request.source
    last = last_import(head, source)
    if request.copy and not last.copies:
        raise InvalidInput(
            f"{head.name} was imported without copies, and has the files of {last.url} at their place: compact it, and "
            "expire older versions, so that it needs none of them; or import the source as another table"
        )
    last_files, write = imported_files(head), head.begin_write()
    columns = head.on(IMPORTED).schema
    copies = None
    if last.copies:
        copies = SourceCopies(head.tracked, head.logs.places.open_url, request.progress, last_files.values())
    newest = source.live(last_files if copies is None else copies.originals(), columns)
    request.watch.meet(newest.added)
    copied_paths: Collection[str] = ()
    if copies is not None:
        newest = copies.of(newest, write)
        copied_paths = () if request.dry_run else copies.copy()
    summary = (
        f"version {newest.id} of the source has {len(newest.added):,} files, and had {len(last_files):,}"
    )
    request.progress(summary)
    diff = difference(last_files, newest)
    version = None
    if request.dry_run:
        is_changed = changes_table(head, source, newest, write)
    else:
        with leftovers.kept_by_commit(
            head.tracked, [file for file in newest.added if file.path in copied_paths]
        ):
            version = catch_up(head, source, newest, write).version
        is_changed = version != head.version
    files = list(with_rows(newest.added))
    return Imported(
        table=request.identifier,
        format=source.format,
        source=source.url,
        snapshot=newest.id,
        is_new=False,
        versions=int(is_changed),
        added_files=len(diff.added),
        removed_files=len(diff.removed),
        changed_files=len(diff.changed),
        rows=sum(file.rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        dry_run=request.dry_run,
        version=version,
    )
