"""The losses of an erasure, for people to read beforehand: versions, and files of killed processes.

This module counts, and changes nothing of a table. It deletes temporary files of killed processes if
requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakelog.catalog.core.files import joined
from lakelog.catalog.core.logs import NameTree, TableHead
from lakelog.catalog.core.parquet import left_folders
from lakelog.catalog.core.state import MAIN
from lakelog.catalog.keeping.erasure.clearing import cuts_of
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.catalog.keeping.erasure.model import Lost
from lakelog.catalog.keeping.erasure.work import ErasureWork
from lakelog.log.stores import ObjectStore


def losses_of(tree: NameTree, log: ErasedLog, work: ErasureWork) -> Iterator[Lost]:
    """Yield the objects that cannot be read any more once the log is erased."""
    name = log.head.name
    first = max(log.head.state.expired, 1)
    why = f"from {first} to {log.head.version}: they cannot be read any more"
    yield Lost(kind="versions", name=name, why=why)
    for tag in sorted(log.held.tags):
        yield Lost(kind="tag", name=f"{name}, {tag}", why="has such rows")
    yield from _rows_of_then(log, work)
    for namespace_log, cut in cuts_of(tree, log.head.tracked.location):
        where = tree.logs.url(namespace_log.location)
        yield Lost(kind="cut", name=cut, why=f"saved in {where}, needs older versions of {name}")
    if moved_count := moved_away(log.head):
        why = f"{moved_count:,} objects that a repair has moved to _lost/ are deleted"
        yield Lost(kind="repairs", name=name, why=why)
    # The versions that removed the rows expire too, before a stream can have read them.
    why = "that read it begin anew, from its rows as they are then; those that write to it go on"
    yield Lost(kind="streams", name=name, why=why)


def moved_away(head: TableHead) -> int:
    """Return how many objects of a log a repair has moved to `_lost/`."""
    own = head.tracked
    return sum(1 for _ in own.store.list_sizes(own.log.keys.lost))


def _rows_of_then(log: ErasedLog, work: ErasureWork) -> Iterator[Lost]:
    """Count the rows that the condition does not match now."""
    rows = log.rows
    if rows is None:
        return
    for line, counts in log.held.lines.items():
        counts_now = rows.matching_now(counts)
        paths = [path for path in counts if counts_now[path] != counts[path]]
        if not paths:
            continue
        head = log.head.on(line)
        condition = None if rows.present is None else rows.present.bound
        count = work.matching_no_more(head, joined(head.files_named(paths)), rows.ids, head.schema, condition)
        if count:
            name = log.head.name if line == MAIN else f"{log.head.name}, {line}"
            why = (
                f"{count:,} that matched at another version, or by a name that a column had then: they go too"
            )
            yield Lost(kind="rows", name=name, why=why)


def temporary(tree: NameTree, logs: Sequence[ErasedLog], *, delete: bool) -> tuple[list[Lost], list[str]]:
    """Return temporary folders and files of killed processes, and descriptions of folders that may be in use.

    They have rows that did not fit into memory, and half-written objects. With `delete`, they are deleted.
    """
    losses: list[Lost] = []
    messages: list[str] = []
    for store, prefix, url in _places(tree, logs):
        keys = [key for key, _ in store.list_leftovers(prefix)]
        if keys and delete:
            store.delete(keys)
        if keys:
            why = f"{len(keys):,} files of writes that were killed are deleted"
            losses.append(Lost(kind="temporary-files", name=url, why=why))
    folders = left_folders(delete=delete)
    for path, size in folders.killed.items():
        why = f"{size:,} bytes that a process that was killed has left there are deleted"
        losses.append(Lost(kind="temporary-folder", name=path, why=why))
    if folders.unclear:
        messages.append(
            f"{len(folders.unclear):,} temporary folders, {folders.unclear[0]} among them, and nothing says if "
            "a process still uses them: delete them where none does"
        )
    if folders.in_use:
        messages.append(
            f"{len(folders.in_use):,} temporary folders of processes that are running, {folders.in_use[0]} among them: "
            "each goes with its process"
        )
    return losses, messages


def _places(tree: NameTree, logs: Sequence[ErasedLog]) -> Iterator[tuple[ObjectStore, str, str]]:
    """Yield the folders of tables, and of the logs of their namespaces."""
    met: set[str] = set()
    for log in logs:
        table_log, link = log.head.tracked, log.head.state.link
        yield table_log.store, f"{table_log.prefix}/" if table_log.prefix else "", log.head.url
        if link is None or link.namespace in met:
            continue
        met.add(link.namespace)
        above = tree.logs.namespace(link.namespace)
        folder = f"{above.prefix}/" if above.prefix else ""
        for part in ("_log/", "_txn/"):
            yield above.store, f"{folder}{part}", f"{tree.logs.url(link.namespace)}/{part}"
