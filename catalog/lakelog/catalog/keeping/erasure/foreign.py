"""Files of another writer that hold rows to erase.

Lakelog does not delete them: they are refused, or left by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.core.files import is_elsewhere, started_at
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.formats.iceberg import objects_of
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.log.errors import InvalidInput

DATA, METADATA = "data/", "metadata/"
"""The folders that clients of Iceberg write to."""


def foreign_files(log: ErasedLog, *, leave: bool) -> list[str]:
    """Return descriptions of the other writers' files that stay.

    Raises InvalidInput if there are any, unless `leave`.
    """
    head = log.head
    clients = client_objects(head)
    if clients and not leave:
        raise InvalidInput(
            f"clients of Iceberg have written {len(clients):,} objects of {head.name}, {clients[0]} among them, which "
            "lakelog does not delete, and which may have such rows: copy the rows into a new table, drop this one with "
            "purge and delete its folder, or leave the objects there (--leave-foreign, SQL: leave_foreign => true)"
        )
    foreign = _foreign_of(head, log.held.live)
    if foreign and not leave:
        raise InvalidInput(
            f"{head.name} has such rows in {len(foreign):,} files of another writer, {foreign[0]} among "
            "them, which lakelog does not delete: forget the rows at their source and import again, "
            f"{_owned(head)}, or leave the files there (--leave-foreign, SQL: leave_foreign => true), so "
            "that only lakelog's own copies go"
        )
    return [f"{head.name}: {path} is another writer's, and stays" for path in (*foreign, *clients)]


def client_objects(head: TableHead) -> list[str]:
    """Return the paths of objects in a table's folder that clients of Iceberg wrote: data, deletes and manifests.

    Makes 3 LIST requests, and more for more than 1000 objects.
    """
    tracked = head.tracked
    prefix = f"{tracked.prefix}/" if tracked.prefix else ""
    own = objects_of(tracked.store, prefix)
    keys = [key for place in (DATA, METADATA) for key, _ in tracked.store.list_sizes(f"{prefix}{place}")]
    return [path for key in keys if key not in own and started_at(path := key.removeprefix(prefix)) is None]


def _foreign_of(head: TableHead, held: Mapping[str, int]) -> list[str]:
    """Return the files of another writer. A clone's owner does not count as such."""
    folders = [f"{head.logs.url(origin.location).rstrip('/')}/" for origin in head.state.origins]
    return sorted(
        path for path in held if is_elsewhere(path) and not any(path.startswith(folder) for folder in folders)
    )


def _owned(head: TableHead) -> str:
    """Return how another writer's files become lakelog's own, in words. Files of a folder can only be copied."""
    source = head.state.source
    if source is not None and source.metadata is not None and not source.copies:
        return "adopt the files (catalog.adopt_files)"
    return "copy the rows (CREATE TABLE … AS SELECT, or import with copy), delete the source's files"
