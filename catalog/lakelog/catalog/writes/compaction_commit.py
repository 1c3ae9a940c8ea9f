"""Compaction: groups of files are replaced by others with the same rows, all groups in one commit.

A group whose files other writers have changed meanwhile is left out, without any other group: the rest of its files is
planned anew. Engines that read and write rows themselves request a plan, and commit; from Python, all of it is done
here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.errors import CommitConflict, DoneInPart
from lakelog.catalog.files import DataFile
from lakelog.catalog.logs import Progress, TableHead, Token
from lakelog.catalog.parquet import copied_files, leftovers
from lakelog.catalog.planning import Constant, bind, may_match, unknown_parts
from lakelog.catalog.schema import Filter, as_predicate
from lakelog.catalog.state import Goal, Group, Operation, plan_compaction
from lakelog.catalog.writes import row_changes
from lakelog.catalog.writes.prepared_rows import RowChange
from lakelog.log import WriteRef
from lakelog.log.errors import CommitUnknown, NotFound, StorageError, Unsupported

TRIES_MAX = 5
"""After this many changes of its files by other writers, a compaction gives up."""

_FILES_AT_ONCE = 8
"""From Python, about this many files of the target size are written before they are committed."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The live rows of the files `removed` are those of `files`, which has at least one."""

    removed: Sequence[str]
    files: Sequence[DataFile]


def plan_groups(
    head: TableHead, goal: Goal, filter: Filter | None, *, until: int, limit_bytes: int
) -> tuple[pa.Table, list[Group]]:
    """Return the next groups to be rewritten, and their files (see `plan_compaction`), of the files that may have
    rows which match. Unsupported for a filter that cannot be checked against the entries of files."""
    metadata, files = head.metadata, head.all_files()
    if filter is not None:
        bound = bind(as_predicate(filter), metadata.schema)
        unknown = unknown_parts(bound)
        if unknown:
            raise Unsupported(
                f"the condition {unknown[0]} cannot choose files to be compacted, because lakelog cannot decide which "
                "files may have rows that match: compare columns with values"
            )
        files = files.filter(may_match(files, bound, metadata.specs))
    return plan_compaction(files, metadata, goal, until=until, limit_bytes=limit_bytes)


def commit(
    base: TableHead, groups: Sequence[Rewritten], *, write: WriteRef, token: Token | None
) -> tuple[TableHead, list[int]]:
    """Commit the groups, which were prepared against `base`, except those whose files others have changed since.

    Return the newest version, and which groups were left out. Their files are in no commit. Raises as
    `row_changes.commit`; CommitUnknown where it happened before, in a version that has expired since.
    """
    # With fewer groups, it is still the same request.
    token = token or base.token_of(write)
    before = base.entries({path for group in groups for path in group.removed})
    left = list(range(len(groups)))
    head = base
    while left:
        change = RowChange(
            operation=Operation.COMPACT,
            files=[file for at in left for file in groups[at].files],
            removed=frozenset(path for at in left for path in groups[at].removed),
            deletes={},
        )
        try:
            done = row_changes.commit(base, change, write=write, token=token)
        except CommitConflict:
            head = base.at(base.tracked.current())
            now = head.entries(before.keys())
            untouched = [at for at in left if _is_untouched(groups[at].removed, before, now)]
            if base.tracked.transaction.is_open or len(untouched) == len(left):
                raise
            left = untouched
        else:
            head = base.at(done.view)
            return head, _left_out(head, done.version, groups, token.commit_id)
    return head, list(range(len(groups)))


def _is_untouched(
    paths: Collection[str], before: Mapping[str, DataFile], now: Mapping[str, DataFile]
) -> bool:
    return all(
        path in now
        and now[path].write_id == before[path].write_id
        and now[path].deletes == before[path].deletes
        for path in paths
    )


def _left_out(head: TableHead, version: int, groups: Sequence[Rewritten], commit_id: str) -> list[int]:
    """Return which groups are not in the commit: a retry of a request that has happened begins with all of them.

    CommitUnknown where its version has expired by then: no files of the groups may be deleted.
    """
    tracked = head.tracked
    if tracked.transaction.is_open:
        return []
    try:
        then = head if head.version == version else head.at(tracked.view_at(version))
        there = then.entries([group.files[0].path for group in groups])
    except NotFound as error:
        raise CommitUnknown(
            f"a compaction was committed as version {version}, which has expired since: which of its groups it has is "
            f"not known ({error})",
            commit_id=commit_id,
            location=tracked.log.location,
        ) from error
    return [at for at, group in enumerate(groups) if group.files[0].path not in there]


def compact(head: TableHead, goal: Goal, filter: Filter | None, progress: Progress) -> TableHead:
    """Rewrite the planned groups (see `plan_groups`), in as many commits as needed, and return the newest version.

    CommitConflict where other writers keep changing the same files; DoneInPart where some were rewritten before the
    store failed.
    """
    until, tries_left, commits = head.version, TRIES_MAX, 0
    while True:
        try:
            done = _compact_next(head, goal, filter, until, progress)
        except StorageError as error:
            if not commits:
                raise
            raise DoneInPart(
                f"of the compaction of {head.name}, {commits} commits have happened: {error}. Compact the rest again"
            ) from error
        if done is None:
            return head
        head, lost = done
        commits += not lost
        tries_left -= lost
        if not tries_left:
            raise CommitConflict(
                f"the compaction of {head.name} conflicted with other writers, which changed its files, {TRIES_MAX} "
                "times. Earlier groups of it are committed. Compact the rest when fewer rows are changed",
                version=head.version,
            )


def _compact_next(
    head: TableHead, goal: Goal, filter: Filter | None, until: int, progress: Progress
) -> tuple[TableHead, bool] | None:
    """Rewrite the next groups in one commit; None where there are none. With whether that was lost to other writers."""
    files, groups = plan_groups(
        head, goal, filter, until=until, limit_bytes=_FILES_AT_ONCE * goal.target_size_bytes
    )
    if not groups:
        return None
    total = sum(group.size_bytes for group in groups)
    progress(f"rewriting {files.num_rows:,} files of {head.name}, {total:,} bytes")
    write = head.begin_write()
    copied = copied_files(head, files, Constant(False), write, target_size_bytes=goal.most_bytes)
    with leftovers.kept_by_commit(head.tracked, copied):
        head, lost = commit(head, [Rewritten(files["path"].to_pylist(), copied)], write=write, token=None)
    if lost:
        leftovers.delete(head.tracked, [file.path for file in copied])
    return head, bool(lost)
