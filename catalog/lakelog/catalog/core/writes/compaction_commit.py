"""Compaction: groups of files are replaced by other files with the same rows, all groups in one commit.

Rows that other writers have changed since the plan are found in the new files by their ids, and are dead
there. If that is not possible for a group, it alone is left out, and its files are planned again. Engines that
read and write rows themselves request a plan, and commit. For Python, everything is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.commits import NothingToDo, OperationFacts, Token, check_conflicts, no_files
from lakelog.catalog.core.logs.scope import Progress
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet import leftovers
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import ConstantCondition, unknown_parts
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.schema.filters import Filter, as_predicate
from lakelog.catalog.core.state.compaction import CompactionTarget, FileGroup, plan_compaction
from lakelog.catalog.core.state.conflicts import ChangeKind, OperationKind
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.prepared_rows import PreparedChange, RowChange
from lakelog.catalog.core.writes.row_reader import RowReader
from lakelog.catalog.core.writes.row_rebase import RowRebase, draft_of
from lakelog.catalog.errors import CommitConflict, DoneInPart
from lakelog.log import Commit, Draft, LogView, WriteRef
from lakelog.log.errors import CommitUnknown, InvalidInput, NotFound, StorageError, Unsupported

TRIES_MAX = 5
"""After this many changes of its files by other writers, a compaction gives up."""

_FILES_AT_ONCE = 8
"""For Python, about this many files of the target size are written before they are committed."""


@dataclass(frozen=True, slots=True)
class RewrittenFiles:
    """A group: the live rows of the files `removed` are the rows of `files`, which are not empty."""

    removed: Sequence[str]
    files: Sequence[DataFile]


def plan_groups(
    head: TableHead,
    goal: CompactionTarget,
    filter: Filter | None,
    *,
    until: int,
    limit_bytes: int,
    only_own: bool = False,
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the next groups to rewrite, and their files (see `plan_compaction`), from files that may have
    matching rows.

    With `only_own`, only files in the table's own folder count. Raises Unsupported for a filter that cannot
    be checked against the entries of files.
    """
    files = files_like(head, filter, "compacted")
    if only_own:
        files = files.filter(pc.starts_with(files["path"], "data/"))
    return plan_compaction(files, head.metadata, goal, until=until, limit_bytes=limit_bytes)


def files_like(head: TableHead, filter: Filter | None, what: str) -> pa.Table:
    """Return the files that may have matching rows. `what` says in messages what happens to them."""
    metadata, files = head.metadata, head.all_files()
    if filter is None:
        return files
    condition = bind(as_predicate(filter), metadata.schema)
    unknown = unknown_parts(condition)
    if unknown:
        raise Unsupported(
            f"the condition {unknown[0]} cannot choose files to be {what}, because lakelog cannot decide which "
            "files may have rows that match: compare columns with values"
        )
    return files.filter(may_match(files, condition, metadata.specs))


def commit(
    base: TableHead,
    groups: Sequence[RewrittenFiles],
    *,
    write: WriteRef,
    token: Token | None,
    unless_branched: bool = False,
) -> tuple[TableHead, list[int]]:
    """Commit the groups, which were prepared against `base`, on the newest state: the rows of them that are
    live there.

    Returns the newest version, and the indexes of groups that were left out (see `_Groups`). Files of these
    are in no commit. Raises the errors of `row_changes.commit`. Raises CommitUnknown if it happened before,
    in a version that has expired since. With `unless_branched`, all groups are left out if the table has
    branches by then.
    """
    token = token or base.token_of(write)
    prepared_groups = _Groups(base, groups, write, unless_branched=unless_branched)
    try:
        result = base.commit(prepared_groups.decide, token)
    except NothingToDo:
        return base.at(base.tracked.current()), list(range(len(groups)))
    head = base.at(result.view)
    return head, _left_out(head, result.version, groups, token.commit_id)


class _Groups:
    """Groups of files that were rewritten, decided individually on each state that the commit is tried on.

    Rows that others have deleted or updated since are dead in the new files, which are committed with
    vectors. The same holds for all rows of a file that is gone. A group is left out if rows that its files
    lack are live again, or if rows without ids were changed. It is also left out if so many of its files are
    gone that no more remain than it has new files. Then its dead rows would soon cause another rewrite.
    """

    def __init__(
        self, base: TableHead, groups: Sequence[RewrittenFiles], write: WriteRef, *, unless_branched: bool
    ) -> None:
        self._base = base
        self._unless_branched = unless_branched
        all_paths = [
            path for group in groups for path in (*group.removed, *(file.path for file in group.files))
        ]
        if len(set(all_paths)) < len(all_paths):
            raise InvalidInput("a file occurs twice in the groups of a compaction: name each file once")
        reader = RowReader(base)
        changes = [
            RowChange(
                operation=OperationKind.COMPACT,
                files=group.files,
                removed=frozenset(group.removed),
                deletes={},
            )
            for group in groups
        ]
        self._prepared = [PreparedChange(base, change, write, reader) for change in changes]
        self._paths = {path for group in groups for path in group.removed}
        base.check_own_steps(OperationKind.COMPACT, self._written(lambda kind: "rows were changed"))

    def decide(self, view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        head = self._base.at(view)
        if self._unless_branched and view.state.branches:
            raise NothingToDo("the table has branches, which would need space for the same rows")
        check_conflicts(
            OperationKind.COMPACT, view, passed_commits, self._written(lambda kind: None), head.name
        )
        since = [commit for commit in passed_commits if commit.version > self._base.version]
        entries = head.entries(self._paths) if since else None
        rebases = [RowRebase(change, head, since, entries) for change in self._prepared]
        verdicts = [(rebase, rebase.touched(ChangeKind.REMOVED_FILES)) for rebase in rebases]
        fit = [
            rebase for rebase, why in verdicts if why is None and _is_worth_it(rebase) and _keeps_rows(rebase)
        ]
        if len(fit) < len(rebases) and head.tracked.transaction.is_open:
            raise CommitConflict(
                f"the compaction of {head.name} conflicts with another change of the files that it rewrites. Nothing "
                "was changed: run the transaction again",
                version=view.version,
            )
        if not fit:
            raise NothingToDo("all groups were changed")
        return draft_of(fit)

    def _written(self, touched: Callable[[ChangeKind], str | None]) -> OperationFacts:
        return OperationFacts(self._base.version, self._base.schema, no_files, touched)


def _is_worth_it(group: RowRebase) -> bool:
    remaining_count, original_count = len(group.removed), len(group.prepared.change.removed)
    return remaining_count == original_count or remaining_count > len(group.new_files)


def _keeps_rows(group: RowRebase) -> bool:
    """Return whether as many rows are live in the new files as in the old files that still exist.

    It holds by construction. A commit that lost or doubled rows could not be repaired.
    """
    dead = sum(map(len, group.moves.dead.values()))
    return sum(file.rows for file in group.removed) == sum(f.rows for f in group.new_files.values()) - dead


def _left_out(head: TableHead, version: int, groups: Sequence[RewrittenFiles], commit_id: str) -> list[int]:
    """Return the indexes of groups that are not in the commit. A retry of a finished request begins with all
    of them.

    Raises CommitUnknown if the commit's version has expired. Then no files of the groups may be deleted.
    """
    log = head.tracked
    if log.transaction.is_open:
        return []
    try:
        commit_head = head if head.version == version else head.at(log.view_at(version))
        added_paths = commit_head.entries([file.path for group in groups for file in group.files])
    except NotFound as error:
        raise CommitUnknown(
            f"a compaction was committed as version {version}, which has expired since: which of its groups it has is "
            f"not known ({error})",
            commit_id=commit_id,
            location=log.log.location,
        ) from error
    # A file without a live row is not added.
    return [
        at for at, group in enumerate(groups) if not any(file.path in added_paths for file in group.files)
    ]


def compact(head: TableHead, goal: CompactionTarget, filter: Filter | None, progress: Progress) -> TableHead:
    """Rewrite the planned groups (see `plan_groups`), in as many commits as needed, and return the newest
    version.

    Raises CommitConflict if other writers keep changing the same files. Raises DoneInPart if some groups were
    rewritten before the store failed.
    """
    until, tries_left, commits = head.version, TRIES_MAX, 0
    while True:
        try:
            result = _compact_next(head, goal, filter, until, progress)
        except StorageError as error:
            if not commits:
                raise
            raise DoneInPart(
                f"of the compaction of {head.name}, {commits} commits have happened: {error}. Compact the rest again"
            ) from error
        if result is None:
            return head
        head, is_lost = result
        commits += not is_lost
        tries_left -= is_lost
        if not tries_left:
            raise CommitConflict(
                f"the compaction of {head.name} conflicted with other writers, which changed its files, {TRIES_MAX} "
                "times. Earlier groups of it are committed. Compact the rest when fewer rows are changed",
                version=head.version,
            )


def _compact_next(
    head: TableHead, goal: CompactionTarget, filter: Filter | None, until: int, progress: Progress
) -> tuple[TableHead, bool] | None:
    """Rewrite the next groups in one commit. Return the version after it, and whether other writers caused
    its loss.

    Returns None if there are no groups.
    """
    files, groups = plan_groups(
        head, goal, filter, until=until, limit_bytes=_FILES_AT_ONCE * goal.target_size_bytes
    )
    if not groups:
        return None
    total = sum(group.size_bytes for group in groups)
    progress(f"rewriting {files.num_rows:,} files of {head.name}, {total:,} bytes")
    write = head.begin_write()
    new_files = copied_files(head, files, ConstantCondition(False), write, target_size_bytes=goal.most_bytes)
    with leftovers.kept_by_commit(head.tracked, new_files):
        head, groups_left_out = commit(
            head, [RewrittenFiles(files["path"].to_pylist(), new_files)], write=write, token=None
        )
    if groups_left_out:
        leftovers.delete(head.tracked, [file.path for file in new_files])
    return head, bool(groups_left_out)
