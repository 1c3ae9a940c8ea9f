"""Compaction: groups of files give way to others with the same rows, as many groups in one commit as there are.

A group whose files others have changed meanwhile gives way to them, and takes no other group along: what is left of its
files is planned anew. Engines that read and write rows themselves ask for a plan, and commit; from Python, all of it is
done here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.files import DataFile
from lakelog.catalog.logs import TableHead, Token
from lakelog.catalog.parquet import leftovers
from lakelog.catalog.planning import Constant, bind, may_match, unknown_parts
from lakelog.catalog.schema import Filter, as_predicate
from lakelog.catalog.state import Goal, Group, Operation, plan_compaction
from lakelog.catalog.writes import row_changes
from lakelog.log import WriteRef
from lakelog.log.errors import CommitUnknown, NotFound, Unsupported

TRIES_MAX = 5
"""So many times others may change what is being written anew, before a compaction gives up."""

_FILES_AT_ONCE = 8
"""From Python, about so many files of the size that they shall have are written before they are committed."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The live rows of the files `removed` are those of `files`, of which there is one at least."""

    removed: Sequence[str]
    files: Sequence[DataFile]


def plan_groups(
    head: TableHead, goal: Goal, filter: Filter | None, *, until: int, limit_bytes: int
) -> tuple[pa.Table, list[Group]]:
    """Return the next groups to be written anew, and their files (see `plan_compaction`), of the files that may have
    rows which match. Unsupported for a filter that files tell nothing of."""
    metadata, files = head.metadata, head.all_files()
    if filter is not None:
        bound = bind(as_predicate(filter), metadata.schema)
        unknown = unknown_parts(bound)
        if unknown:
            raise Unsupported(
                f"the condition {unknown[0]} cannot choose files to be compacted, as lakelog cannot tell which ones "
                "may have rows that match: compare columns with values"
            )
        files = files.filter(may_match(files, bound, metadata.specs))
    return plan_compaction(files, metadata, goal, until=until, limit_bytes=limit_bytes)


def commit(
    base: TableHead, groups: Sequence[Rewritten], *, write: WriteRef, token: Token | None
) -> tuple[TableHead, list[int]]:
    """Commit the groups, which were prepared against `base`, but for those whose files others have changed since.

    Return the newest version, and which groups were left out. Their files are in no commit. Raises as
    `row_changes.commit`; CommitUnknown where it happened before, in a version that has expired since.
    """
    # Without the others, they are the same request still.
    token = token or base.token_of(write)
    before = base.entries({path for group in groups for path in group.removed})
    left = list(range(len(groups)))
    head = base
    while left:
        change = row_changes.RowChange(
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
    """Return which groups are not in the commit: who asks again for what has happened asks for all of them at first.

    CommitUnknown where its version has expired by then: no files of them may be deleted.
    """
    tracked = head.tracked
    if tracked.transaction.is_open:
        return []
    try:
        then = head if head.version == version else head.at(tracked.view_at(version))
        there = then.entries([group.files[0].path for group in groups])
    except NotFound as error:
        raise CommitUnknown(
            f"a compaction was committed as version {version}, which is let go of since: which of its groups are in it "
            f"is not known ({error})",
            commit_id=commit_id,
            location=tracked.log.location,
        ) from error
    return [at for at, group in enumerate(groups) if group.files[0].path not in there]


def compact(head: TableHead, goal: Goal, filter: Filter | None) -> TableHead:
    """Write anew what is to be (see `plan_groups`), in as many commits as it takes, and return the newest version.

    CommitConflict where others change the same files again and again.
    """
    from lakelog.catalog.parquet import copied_files

    until, tries_left = head.version, TRIES_MAX
    limit_bytes = _FILES_AT_ONCE * goal.target_size_bytes
    while True:
        files, groups = plan_groups(head, goal, filter, until=until, limit_bytes=limit_bytes)
        if not groups:
            return head
        write = head.begin_write()
        copied = copied_files(head, files, Constant(False), write, target_size_bytes=goal.most_bytes)
        removed = files["path"].to_pylist()
        with leftovers.kept_by_commit(head.tracked, copied):
            head, lost = commit(head, [Rewritten(removed, copied)], write=write, token=None)
        if lost:
            leftovers.delete(head.tracked, [file.path for file in copied])
            tries_left -= 1
        if not tries_left:
            raise CommitConflict(
                f"others have changed files of {head.name} while they were written anew, {TRIES_MAX} times. What was "
                "compacted before that is: compact the rest when fewer rows are being changed",
                version=head.version,
            )
