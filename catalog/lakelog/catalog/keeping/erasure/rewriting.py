"""Removing rows from a table's present state: files on its lines are rewritten, and tags are dropped.

States that are kept for clones are kept without these files. Each file is rewritten as a delete by copying
does, because a deletion vector would leave the rows in the file. A step that loses to another client is
decided again on the new state. The last commit confirms that no line has such a file. It is a fence, too: a
write that began before it cannot add a file that it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import joined
from lakelog.catalog.core.logs import NothingToDo, TableHead
from lakelog.catalog.core.state import (
    MAIN,
    TAG,
    ClonePromised,
    HistoryExpired,
    OperationKind,
    RowsErased,
    TableState,
    encode,
)
from lakelog.catalog.core.writes import drop_ref, moved_files
from lakelog.catalog.errors import CommitConflict, NoSuchRef
from lakelog.catalog.keeping.erasure.holdings import held_by
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import WriteFenced

ROUNDS_MAX = 20


def erase_lines(
    head: TableHead,
    rows: RowSet,
    event: RowsErased,
    released: Callable[[str], bool],
    progress: Callable[[str], None],
) -> tuple[TableHead, set[str]]:
    """Remove the rows from all lines, and commit that. Return the confirmed version, and the removed paths.

    `released` returns whether a clone needs none of the files any more. Raises CommitConflict if other
    writers keep changing the same rows, or keep bringing in new rows.
    """
    erased_paths: set[str] = set()
    for _ in range(ROUNDS_MAX):
        head = head.refreshed()
        holdings = held_by(head, rows, past=False)
        for name in holdings.tags:
            drop_ref(head, TAG, name, if_exists=True, is_past=False, token=None)
        for name, counts in holdings.lines.items():
            progress(f"{head.name}: {len(counts):,} files of {name} are written anew")
            _rewritten(head, name, counts, rows)
        paths = holdings.live.keys()
        erased_paths |= paths
        for id, counts in holdings.clones.items():
            if released(id):
                promise_without(head.refreshed(), id, counts.keys())
        try:
            return _said(head.refreshed(), rows, event, released), erased_paths
        except _MoreToDo:
            continue
    raise CommitConflict(
        f"rows of {head.name} cannot be forgotten now: in {ROUNDS_MAX} tries, other writers brought in such rows "
        "again. What was done stays done: call it again when they have stopped",
        version=head.version,
    )


def _rewritten(head: TableHead, name: str, counts: Mapping[str, int], rows: RowSet) -> None:
    """Rewrite files of a line.

    If exactly the rows that match by the present names are to be removed, the condition selects them. If a
    file has copies that do not match now, only ids select them.
    """
    own, counts_now = rows.present, rows.matching_now(counts)
    alike = [path for path in counts if counts_now[path] == counts[path]]
    unlike = [path for path in counts if counts_now[path] != counts[path]]
    try:
        for paths, by_id in ((alike, False), (unlike, True)):
            line = head.refreshed() if name == MAIN else head.refreshed().on(name)
            line_paths = sorted(line.entries(paths).keys())
            if not line_paths:
                continue
            if by_id or own is None:
                condition = None if own is None else rows.predicate
                rows.work.rewrite_without(line, line_paths, rows.ids, condition)
            else:
                rows.work.rewrite(line, line_paths, own.bound, rows.predicate)
    except (CommitConflict, NothingToDo, NoSuchRef, WriteFenced):
        return  # the next round reads the other writers' result


def promise_without(head: TableHead, clone: str, paths: Collection[str]) -> None:
    """Keep the same state for a clone, except for these files, which it does not need any more."""
    removed_paths = pa.array(sorted(paths), pa.string())

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        promise = view.state.clones.get(clone)
        if promise is None:
            raise NothingToDo("it has ended")
        promised_view = replace(
            view, state=replace(view.state, files=promise.files, metadata=promise.metadata, whole=view.state)
        )
        new_files = head.at(promised_view).files_only_here(view)
        new_files = new_files.filter(pc.invert(pc.is_in(new_files["path"], value_set=removed_paths)))
        old_files = head.at(view).files_only_here(promised_view)
        also = (
            joined(head.at(view).files_named(paths)) if _any(head.at(view), paths) else old_files.slice(0, 0)
        )
        change, blobs = moved_files(
            OperationKind.CLONE, new_files, _each_once(old_files, also), view.state.current
        )
        again = ClonePromised(
            **{field: getattr(change, field) for field in change.__struct_fields__},
            clone=clone,
            location=promise.location,
            version=promise.version,
            metadata=None if promise.metadata == view.state.current else promise.metadata,
        )
        return Draft(events=encode([again]), blobs=blobs)

    try:
        head.tracked.commit(head.view, decide)
    except NothingToDo:
        return


def _any(head: TableHead, paths: Collection[str]) -> bool:
    return bool(head.entries(paths))


def _each_once(files: pa.Table, more: pa.Table) -> pa.Table:
    if not more.num_rows:
        return files
    new = more.filter(pc.invert(pc.is_in(more["path"], value_set=files["path"].combine_chunks())))
    return joined([files, new]) if new.num_rows else files


def _said(
    head: TableHead,
    rows: RowSet,
    event: RowsErased,
    released: Callable[[str], bool],
) -> TableHead:
    """Commit that no line has rows to erase.

    Checks before the commit, and again after another client's commit.
    """
    looked_at = -1

    def is_clean(view: LogView[TableState]) -> bool:
        holdings = held_by(head.at(view), rows, past=False)
        return not (holdings.lines or holdings.tags or any(released(id) for id in holdings.clones))

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        nonlocal looked_at
        if view.version != looked_at and not is_clean(view):
            raise _MoreToDo
        looked_at = view.version
        version = view.version + 1
        return Draft(events=encode([event, HistoryExpired(version=version)]), fence=version)

    return head.at(head.tracked.commit(head.view, decide).view)


class _MoreToDo(Exception):
    """Ends the commit if there are rows to erase again."""
