"""Taking such rows out of what a table has now: files on its lines are written anew, tags with them are dropped, and
what is kept for clones is kept without them.

Each file is rewritten as a delete does by copying; a vector beside the file would leave the rows in it. A step that
loses to another client is decided anew on what that has left. At the end stands a commit that says so, on a version of
which no line has such a file; it is a fence, too: no write that began before it can add one that it has read.
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
    Operation,
    RowsErased,
    TableState,
    encode,
)
from lakelog.catalog.core.writes import drop_ref, moved_files
from lakelog.catalog.errors import CommitConflict, NoSuchRef
from lakelog.catalog.keeping.erasure.holdings import held_by
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import WriteFenced

ROUNDS_MAX = 20


def erase_lines(
    head: TableHead,
    rows: RowSet,
    event: RowsErased,
    released: Callable[[str], bool],
    progress: Callable[[str], None],
) -> tuple[TableHead, set[str]]:
    """Take the rows out of all lines, and commit that; return the version that says so, and the paths that are gone.

    `released` says of a clone whether it needs none of the files any more. CommitConflict where other writers keep
    changing the same rows, or bringing in new ones.
    """
    gone: set[str] = set()
    for _ in range(ROUNDS_MAX):
        head = head.refreshed()
        held = held_by(head, rows, past=False)
        for name in held.tags:
            drop_ref(head, TAG, name, if_exists=True, is_past=False, token=None)
        for name, counts in held.lines.items():
            progress(f"{head.name}: {len(counts):,} files of {name} are written anew")
            _rewritten(head, name, counts, rows)
        paths = held.live.keys()
        gone |= paths
        for id, counts in held.clones.items():
            if released(id):
                promise_without(head.refreshed(), id, counts.keys())
        try:
            return _said(head.refreshed(), rows, event, released), gone
        except _MoreToDo:
            continue
    raise CommitConflict(
        f"rows of {head.name} cannot be forgotten now: in {ROUNDS_MAX} tries, other writers brought in such rows "
        "again. What was done stays done: call it again when they have stopped",
        version=head.version,
    )


def _rewritten(head: TableHead, name: str, counts: Mapping[str, int], rows: RowSet) -> None:
    """Write files of a line anew. Where the rows that match by the present names are all that is to go, the condition
    says which; where a file has copies that do not match, or no longer, only ids say that."""
    own, now = rows.present, rows.matching_now(counts)
    alike = [path for path in counts if now[path] == counts[path]]
    others = [path for path in counts if now[path] != counts[path]]
    try:
        for paths, by_id in ((alike, False), (others, True)):
            line = head.refreshed() if name == MAIN else head.refreshed().on(name)
            there = sorted(line.entries(paths).keys())
            if not there:
                continue
            if by_id or own is None:
                condition = None if own is None else rows.predicate
                rows.work.rewrite_without(line, there, rows.ids, condition)
            else:
                rows.work.rewrite(line, there, own.bound, rows.predicate)
    except (CommitConflict, NothingToDo, NoSuchRef, WriteFenced):
        return  # the next round looks at what others have made of it


def promise_without(head: TableHead, clone: str, paths: Collection[str]) -> None:
    """Keep for a clone what was kept, without these files, which it needs no more."""
    gone = pa.array(sorted(paths), pa.string())

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        promise = view.state.clones.get(clone)
        if promise is None:
            raise NothingToDo("it has ended")
        kept = replace(
            view, state=replace(view.state, files=promise.files, metadata=promise.metadata, whole=view.state)
        )
        added = head.at(kept).files_only_here(view)
        added = added.filter(pc.invert(pc.is_in(added["path"], value_set=gone)))
        removed = head.at(view).files_only_here(kept)
        also = joined(head.at(view).files_named(paths)) if _any(head.at(view), paths) else removed.slice(0, 0)
        changed, blobs = moved_files(Operation.CLONE, added, _each_once(removed, also), view.state.current)
        again = ClonePromised(
            **{field: getattr(changed, field) for field in changed.__struct_fields__},
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
    """Commit that no line has such rows. Looked at before, and anew where another commit came in between."""
    looked_at = -1

    def is_clean(view: View[TableState]) -> bool:
        held = held_by(head.at(view), rows, past=False)
        return not (held.lines or held.tags or any(released(id) for id in held.clones))

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        nonlocal looked_at
        if view.version != looked_at and not is_clean(view):
            raise _MoreToDo
        looked_at = view.version
        version = view.version + 1
        return Draft(events=encode([event, HistoryExpired(version=version)]), fence=version)

    return head.at(head.tracked.commit(head.view, decide).view)


class _MoreToDo(Exception):
    """Ends the commit where there are such rows again."""
