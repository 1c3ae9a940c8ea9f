"""Compaction: groups of files are replaced by others with the same rows, all groups in one commit.

Rows that other writers have changed meanwhile are found in the new files by their ids, and are dead there. A group for
which that is not possible is left out, without any other group, and its files are planned anew. Engines that read and
write rows themselves request a plan, and commit; from Python, all of it is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import (
    NothingToDo,
    Progress,
    TableHead,
    Token,
    Written,
    check_conflicts,
    no_files,
)
from lakelog.catalog.core.parquet import copied_files, leftovers
from lakelog.catalog.core.planning import Constant, bind, may_match, unknown_parts
from lakelog.catalog.core.schema import Filter, as_predicate
from lakelog.catalog.core.state import ChangeKind, Goal, Group, Operation, TableState, plan_compaction
from lakelog.catalog.core.writes.prepared_rows import Prepared, RowChange
from lakelog.catalog.core.writes.row_reader import RowReader
from lakelog.catalog.core.writes.row_rebase import Rebase, draft_of
from lakelog.catalog.errors import CommitConflict, DoneInPart
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import CommitUnknown, InvalidInput, NotFound, StorageError, Unsupported

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
    head: TableHead,
    goal: Goal,
    filter: Filter | None,
    *,
    until: int,
    limit_bytes: int,
    only_own: bool = False,
) -> tuple[pa.Table, list[Group]]:
    """Return the next groups to be rewritten, and their files (see `plan_compaction`), of the files that may have
    rows which match; with `only_own`, of those in the table's own folder. Unsupported for a filter that cannot be
    checked against the entries of files."""
    files = files_like(head, filter, "compacted")
    if only_own:
        files = files.filter(pc.starts_with(files["path"], "data/"))
    return plan_compaction(files, head.metadata, goal, until=until, limit_bytes=limit_bytes)


def files_like(head: TableHead, filter: Filter | None, what: str) -> pa.Table:
    """Return the files that may have rows which match, to be compacted or so."""
    metadata, files = head.metadata, head.all_files()
    if filter is None:
        return files
    bound = bind(as_predicate(filter), metadata.schema)
    unknown = unknown_parts(bound)
    if unknown:
        raise Unsupported(
            f"the condition {unknown[0]} cannot choose files to be {what}, because lakelog cannot decide which "
            "files may have rows that match: compare columns with values"
        )
    return files.filter(may_match(files, bound, metadata.specs))


def commit(
    base: TableHead,
    groups: Sequence[Rewritten],
    *,
    write: WriteRef,
    token: Token | None,
    unless_branched: bool = False,
) -> tuple[TableHead, list[int]]:
    """Commit the groups, which were prepared against `base`, on the newest state: the rows of them that are live there.

    Return the newest version, and which groups were left out (see `_Groups`). Their files are in no commit. Raises as
    `row_changes.commit`; CommitUnknown where it happened before, in a version that has expired since. With
    `unless_branched`, all are left out where the table has branches by then.
    """
    token = token or base.token_of(write)
    prepared = _Groups(base, groups, write, unless_branched=unless_branched)
    try:
        done = base.commit(prepared.decide, token)
    except NothingToDo:
        return base.at(base.tracked.current()), list(range(len(groups)))
    head = base.at(done.view)
    return head, _left_out(head, done.version, groups, token.commit_id)


class _Groups:
    """Groups of files that were rewritten, decided one by one on each state that the commit is tried on.

    Rows that others have deleted or updated meanwhile are dead in the new files, which are committed with vectors; so
    are all rows of a file that is gone. A group is left out where rows are live again that its files do not have, where
    rows without ids were changed, and where so many of its files are gone that the others are no more than the new
    ones: it would be rewritten again for its dead rows.
    """

    def __init__(
        self, base: TableHead, groups: Sequence[Rewritten], write: WriteRef, *, unless_branched: bool
    ) -> None:
        self._base = base
        self._unless_branched = unless_branched
        named = [path for group in groups for path in (*group.removed, *(file.path for file in group.files))]
        if len(set(named)) < len(named):
            raise InvalidInput("a file occurs twice in the groups of a compaction: name each file once")
        reader = RowReader(base)
        changes = [
            RowChange(
                operation=Operation.COMPACT, files=group.files, removed=frozenset(group.removed), deletes={}
            )
            for group in groups
        ]
        self._prepared = [Prepared(base, change, write, reader) for change in changes]
        self._paths = {path for group in groups for path in group.removed}
        base.check_own_steps(Operation.COMPACT, self._written(lambda kind: "rows were changed"))

    def decide(self, view: View[TableState], passed: Sequence[Commit]) -> Draft:
        head = self._base.at(view)
        if self._unless_branched and view.state.branches:
            raise NothingToDo("the table has branches, which would need space for the same rows")
        check_conflicts(Operation.COMPACT, view, passed, self._written(lambda kind: None), head.name)
        since = [commit for commit in passed if commit.version > self._base.version]
        known = head.entries(self._paths) if since else None
        rebases = [Rebase(prepared, head, since, known) for prepared in self._prepared]
        found = [(each, each.touched(ChangeKind.REMOVED_FILES)) for each in rebases]
        fit = [each for each, why in found if why is None and _is_worth_it(each) and _keeps_rows(each)]
        if len(fit) < len(rebases) and head.tracked.transaction.is_open:
            raise CommitConflict(
                f"the compaction of {head.name} conflicts with another change of the files that it rewrites. Nothing "
                "was changed: run the transaction again",
                version=view.version,
            )
        if not fit:
            raise NothingToDo("all groups were changed")
        return draft_of(fit)

    def _written(self, touched: Callable[[ChangeKind], str | None]) -> Written:
        return Written(self._base.version, self._base.schema, no_files, touched)


def _is_worth_it(group: Rebase) -> bool:
    left, before = len(group.removed), len(group.prepared.change.removed)
    return left == before or left > len(group.new_files)


def _keeps_rows(group: Rebase) -> bool:
    """Return whether as many rows are live in the new files as in the old ones that are still there.

    It holds by construction; a commit of rows that are lost or there twice could not be repaired.
    """
    dead = sum(map(len, group.moves.dead.values()))
    return sum(file.rows for file in group.removed) == sum(f.rows for f in group.new_files.values()) - dead


def _left_out(head: TableHead, version: int, groups: Sequence[Rewritten], commit_id: str) -> list[int]:
    """Return which groups are not in the commit: a retry of a request that has happened begins with all of them.

    CommitUnknown where its version has expired by then: no files of the groups may be deleted.
    """
    tracked = head.tracked
    if tracked.transaction.is_open:
        return []
    try:
        then = head if head.version == version else head.at(tracked.view_at(version))
        there = then.entries([file.path for group in groups for file in group.files])
    except NotFound as error:
        raise CommitUnknown(
            f"a compaction was committed as version {version}, which has expired since: which of its groups it has is "
            f"not known ({error})",
            commit_id=commit_id,
            location=tracked.log.location,
        ) from error
    # A file without a live row is not added.
    return [at for at, group in enumerate(groups) if not any(file.path in there for file in group.files)]


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
