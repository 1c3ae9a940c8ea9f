"""Files of another writer that hold such rows: lakelog does not delete them, so they are refused, or left by name."""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.log.errors import InvalidInput


def foreign_files(log: ErasedLog, *, leave: bool) -> list[str]:
    """Return in words which files of another writer stay. InvalidInput where there are any that are not to be left."""
    head = log.head
    foreign = _foreign_of(head, log.held.live)
    if foreign and not leave:
        raise InvalidInput(
            f"{head.name} has such rows in {len(foreign):,} files of another writer, {foreign[0]} among "
            "them, which lakelog does not delete: forget the rows at their source and import again, "
            f"{_owned(head)}, or leave the files there (--leave-foreign, SQL: leave_foreign => true), so "
            "that only lakelog's own copies go"
        )
    return [f"{head.name}: {path} is another writer's, and stays" for path in foreign]


def _foreign_of(head: TableHead, held: Mapping[str, int]) -> list[str]:
    """Return those files that are another writer's: not the table's own, nor an owner's of a clone."""
    folders = [f"{head.logs.url(origin.location).rstrip('/')}/" for origin in head.state.origins]
    return sorted(
        path for path in held if is_elsewhere(path) and not any(path.startswith(folder) for folder in folders)
    )


def _owned(head: TableHead) -> str:
    """Return how files of another writer become lakelog's own, in words: a folder's can only be copied."""
    source = head.state.source
    if source is not None and source.metadata is not None and not source.copies:
        return "adopt the files (catalog.adopt_files)"
    return "copy the rows (CREATE TABLE … AS SELECT, or import with copy), delete the source's files"
