"""What can be read no more after an erasure, and what of killed processes goes with it, for people to read beforehand.

It counts, and changes nothing of a table; of temporary files, those of killed processes are deleted if that is asked.
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
    """Yield what can be read no more once the log is erased."""
    name = log.head.name
    first = max(log.head.state.expired, 1)
    why = f"from {first} to {log.head.version}: they cannot be read any more"
    yield Lost(kind="versions", name=name, why=why)
    for tag in sorted(log.held.tags):
        yield Lost(kind="tag", name=f"{name}, {tag}", why="has such rows")
    yield from _rows_of_then(log, work)
    for tracked, cut in cuts_of(tree, log.head.tracked.location):
        where = tree.logs.url(tracked.location)
        yield Lost(kind="cut", name=cut, why=f"saved in {where}, needs older versions of {name}")
    if moved := moved_away(log.head):
        why = f"{moved:,} objects that a repair has moved to _lost/ are deleted"
        yield Lost(kind="repairs", name=name, why=why)
    # The versions in which such rows were removed expire too, before any stream can have read them.
    why = "that read it begin anew, from its rows as they are then; those that write to it go on"
    yield Lost(kind="streams", name=name, why=why)


def moved_away(head: TableHead) -> int:
    """Return how many objects of a log a repair has moved to `_lost/`."""
    own = head.tracked
    return sum(1 for _ in own.store.list_sizes(own.log.keys.lost))


def _rows_of_then(log: ErasedLog, work: ErasureWork) -> Iterator[Lost]:
    """Count rows that the condition does not find now."""
    rows = log.rows
    if rows is None:
        return
    for line, counts in log.held.lines.items():
        now = rows.matching_now(counts)
        paths = [path for path in counts if now[path] != counts[path]]
        if not paths:
            continue
        head = log.head.on(line)
        bound = None if rows.present is None else rows.present.bound
        count = work.matching_no_more(head, joined(head.files_named(paths)), rows.ids, head.schema, bound)
        if count:
            name = log.head.name if line == MAIN else f"{log.head.name}, {line}"
            why = (
                f"{count:,} that matched at another version, or by a name that a column had then: they go too"
            )
            yield Lost(kind="rows", name=name, why=why)


def temporary(tree: NameTree, logs: Sequence[ErasedLog], *, delete: bool) -> tuple[list[Lost], list[str]]:
    """Return temporary folders and files of processes that were killed, deleted if that is asked for, and what may be
    another's, in words. They have rows that did not fit into memory, and half of what was being written."""
    lost: list[Lost] = []
    unreached: list[str] = []
    for store, prefix, url in _places(tree, logs):
        keys = [key for key, _ in store.list_leftovers(prefix)]
        if keys and delete:
            store.delete(keys)
        if keys:
            why = f"{len(keys):,} files of writes that were killed are deleted"
            lost.append(Lost(kind="temporary-files", name=url, why=why))
    found = left_folders(delete=delete)
    for path, size in found.killed.items():
        why = f"{size:,} bytes that a process that was killed has left there are deleted"
        lost.append(Lost(kind="temporary-folder", name=path, why=why))
    if found.unclear:
        unreached.append(
            f"{len(found.unclear):,} temporary folders, {found.unclear[0]} among them, and nothing says if "
            "a process still uses them: delete them where none does"
        )
    if found.in_use:
        unreached.append(
            f"{len(found.in_use):,} temporary folders of processes that are running, {found.in_use[0]} among them: "
            "each goes with its process"
        )
    return lost, unreached


def _places(tree: NameTree, logs: Sequence[ErasedLog]) -> Iterator[tuple[ObjectStore, str, str]]:
    """Yield the folders of tables, and of the logs of their namespaces."""
    met: set[str] = set()
    for each in logs:
        tracked, link = each.head.tracked, each.head.state.link
        yield tracked.store, f"{tracked.prefix}/" if tracked.prefix else "", each.head.url
        if link is None or link.namespace in met:
            continue
        met.add(link.namespace)
        above = tree.logs.namespace(link.namespace)
        folder = f"{above.prefix}/" if above.prefix else ""
        for part in ("_log/", "_txn/"):
            yield above.store, f"{folder}{part}", f"{tree.logs.url(link.namespace)}/{part}"
