"""A version of a table as this process knows it: its log, a caller's view, and its name in messages.

Rule: a caller's decision on a version is committed by `commit`, on the newest version that allows it. The
cases in between (an earlier step of the same transaction, another table at the place, a drop, a retry) are
handled here and nowhere else. A table that was found by a name is changed only while it has that name, by its
own log. It must not know the decisions, or which callers are allowed: a handle of the past is refused above.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.branch_log import LineLog, seen_on
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.changed import TableCommit, changed
from lakelog.catalog.core.logs.commits import (
    NothingToDo,
    OperationFacts,
    Token,
    check_conflicts,
    gone_as_no_such_table,
    is_final,
    was_applied,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.file_entries import entries_of
from lakelog.catalog.core.logs.live_files import (
    all_files,
    chunks_of,
    files_named,
    files_only_in,
    replaced_files,
)
from lakelog.catalog.core.logs.name_path import known_path_to
from lakelog.catalog.core.logs.name_tree import FoundLog
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound
from lakelog.catalog.core.planning.scan_plan import choosing, plan_scan
from lakelog.catalog.core.planning.top_rows import TopRows
from lakelog.catalog.core.schema.filters import Filter, as_predicate
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.refs import MAIN, TAG
from lakelog.catalog.core.state.row_counts import NO_ROWS, RowCounts
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import NoSuchTable, TableRenamed
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.times import exact_text
from lakelog.log import Commit, Draft, LogView, WriteRef, each_change
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.placing import Decide
from lakelog.log.replay import hash_before_expiry


@dataclass(frozen=True, slots=True)
class FoundName:
    """The name that a table was found by, and the location of the namespace that this name led through."""

    identifier: Identifier
    namespace: str

    @property
    def link(self) -> NameLink:
        return NameLink(namespace=self.namespace, name=self.identifier[-1])


@dataclass(frozen=True, slots=True)
class TableHead:
    """A version of a table.

    In a transaction, `view` includes the transaction's changes. `name` is the table's name in messages.
    `found_by` is None for a table that was found by its place, which may be renamed in the meantime. `rows`
    says how many rows the change that returned this has changed. It is None without such a change, or if the
    number is not known.
    """

    logs: LogCache
    tracked: TrackedLog[TableState]
    view: LogView[TableState]
    name: str
    found_by: FoundName | None = None
    rows: RowCounts | None = field(default=None, compare=False)

    @staticmethod
    def named(logs: LogCache, found: FoundLog[TableState], identifier: Identifier) -> TableHead:
        """Return the table that a name was found to lead to."""
        link = found.view.state.link
        assert link is not None, "a name leads to a table whose log has it"
        by = FoundName(identifier, link.namespace)
        return TableHead(logs, found.tracked, found.view, quoted(identifier), by)

    @staticmethod
    def at_place(logs: LogCache, tracked: TrackedLog[TableState], view: LogView[TableState]) -> TableHead:
        """Return a table that is known by its place, whatever name it has."""
        return TableHead(logs, tracked, view, logs.url(tracked.location))

    # Its facts

    @property
    def id(self) -> str:
        return self.view.log_id

    @property
    def version(self) -> int:
        return self.view.version

    @property
    def time_us(self) -> int:
        return self.view.time_us

    @property
    def state(self) -> TableState:
        return self.view.state

    @property
    def metadata(self) -> Metadata:
        return self.view.state.current

    @property
    def schema(self) -> Schema:
        return self.view.state.current.schema

    @property
    def url(self) -> str:
        """The folder or S3 URL that holds the log, and the table's files below `data/`."""
        return self.logs.url(self.tracked.location)

    @property
    def ref(self) -> str:
        """The tag or branch that this is on, `main` for the table itself."""
        return self.view.state.line

    @property
    def ref_id(self) -> str | None:
        """The id of the tag or branch, which no other ref of the name ever has; None for the table itself."""
        return None if self.ref == MAIN else self.view.state.refs[self.ref].id

    @property
    def is_tag(self) -> bool:
        return self.ref != MAIN and self.view.state.refs[self.ref].kind == TAG

    def known_by(self, found_by: FoundName) -> TableHead:
        """Return the same version of the table, as known to a caller who has found it by that name."""
        return replace(self, name=quoted(found_by.identifier), found_by=found_by)

    # Other versions

    def at(self, view: LogView[TableState]) -> TableHead:
        """Return the same log at another view of it."""
        return replace(self, view=view, rows=None)

    def after(self, change: TableCommit) -> TableHead:
        """Return the same log as a change has left it."""
        return replace(self, view=change.view, rows=change.rows)

    def unchanged(self) -> TableHead:
        """Return this version as the result of a change that found nothing to do."""
        return replace(self, rows=NO_ROWS)

    def at_version(self, version: int) -> TableHead:
        """Return the table at a version, as that was committed.

        Raises NotFound if it does not exist or has expired.
        """
        if version == self.version and not self.logs.is_a_cut:
            return self.at(self.view)
        try:
            view = self.view_at(version)
        except NotFound as error:
            newest = self.tracked.current().version
            if 1 <= version <= newest:
                raise
            raise NotFound(f"{self.name} has no version {version}: its newest is {newest}") from error
        if view.log_id != self.id:
            raise NotFound(
                f"version {version} at {self.url} belongs to another table, which was dropped before this one was "
                "created there"
            )
        return self.at(view)

    def view_at(self, version: int) -> LogView[TableState]:
        """Return the table's log as of a version. Raises NotFound, with the table's name, if it has expired."""
        try:
            return self.tracked.view_at(version)
        except NotFound as error:
            location = self.tracked.log.location
            if type(error) is not NotFound or location not in error.message:
                raise
            raise NotFound(error.message.replace(location, self.name)) from error

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version at or before a time. Raises NotFound if there is none."""
        try:
            return self.tracked.version_at_time(time_us)
        except NotFound as error:
            raise NotFound(
                f"{self.name} has no version of {exact_text(time_us)} or before: its first version is later. "
                "`lakelog history` shows the times of all versions"
            ) from error

    def hash_of(self, version: int) -> str:
        """Return the hash of the commit of an existing version, expired or not. Costs a GET."""
        entry = self.tracked.log.entry_at(version)
        if entry is None:
            raise FormatError(f"version {version} of {self.name} is missing: run `lakelog fsck`")
        return hash_before_expiry(entry)

    def at_write(self, write: WriteRef | None) -> TableHead:
        """Return the version that a write started from, on the same tag or branch; it may be this version."""
        if write is None or write.version == self.version:
            return self
        view = self.tracked.log.view_at(write.version)
        return self.at(view if self.ref == MAIN else seen_on(view, self.ref, self.ref_id))

    def at_write_to_commit(
        self, write: WriteRef | None, token: Token | None, *, may_be_proposed: bool
    ) -> TableHead | None:
        """Return `at_write`, to commit a write.

        None if that version has expired and the write was committed before. If others may still commit the
        write, as it `may_be_proposed`, the log refuses it before NotFound is raised.
        """
        try:
            return self.at_write(write)
        except NotFound as error:
            if (
                is_final(self.tracked, token, error)
                if may_be_proposed
                else not was_applied(self.tracked, token)
            ):
                raise
            return None

    def refreshed(self) -> TableHead:
        """Return the newest version.

        Costs a GET if nothing is newer. Raises NoSuchTable if the table was dropped, TableRenamed if it was
        renamed, NoSuchRef if the branch was dropped.
        """
        newest = self._newest()
        self.check_name(newest.view)
        return newest

    def _newest(self) -> TableHead:
        with gone_as_no_such_table(self.name):
            view = self.tracked.current()
        if view.sealed or view.log_id != self.id:
            raise NoSuchTable(f"there is no table {self.name}: it was dropped")
        return self.at(view)

    def check_name(self, view: LogView[TableState]) -> None:
        """Raise TableRenamed if the table no longer has, at `view`, the name that it was found by."""
        if self.found_by is None or view.state.link == self.found_by.link or view.log_id != self.id:
            # Another table at the place is not this table under another name. Other checks find that out.
            return
        new_name = self._name_of(view.state.link)
        raise TableRenamed(
            f"{self.name} was renamed to {new_name} since it was loaded, and nothing was changed: load {new_name} "
            f"for the same table, or {self.name} again for the table that has this name now"
        )

    def _name_of(self, link: NameLink | None) -> str:
        assert self.found_by is not None and link is not None, "a table that had a name keeps one"
        if link.namespace == self.found_by.namespace:
            return quoted((*self.found_by.identifier[:-1], link.name))
        path = known_path_to(self.logs, link.namespace)
        return quoted([link.name]) if path is None else quoted((*path, link.name))

    def newest_known(self) -> TableHead:
        """Return the newest version known without a request: the base of a commit that read nothing."""
        known_view = self.tracked.known
        if (
            known_view is not None
            and known_view.log_id == self.id
            and known_view.version > self.version
            and known_view.state.current.generation == self.metadata.generation
        ):
            return self.at(known_view)
        return self

    def at_least(self, version: int) -> TableHead:
        """Return a known version that is not older, else the newest.

        Raises NoSuchTable if another table is at its place.
        """
        view = self.tracked.at_least(version)
        if view.log_id != self.id:
            raise another_table(self.name)
        return self.at(view)

    # Tags and branches

    @property
    def whole(self) -> TableHead:
        """This version of the table itself, with all its tags and branches."""
        if not isinstance(self.tracked, LineLog):
            return self.at(self.view)
        return replace(self, tracked=self.tracked.under, view=seen_on(self.view, MAIN), rows=None)

    def on(self, name: str) -> TableHead:
        """Return this version as it is on a tag or branch, or on main. Raises NoSuchRef."""
        table, view = self.whole, seen_on(self.view, name)
        if name == MAIN:
            return table
        return replace(self, tracked=LineLog(table.tracked, name, view.state.refs[name].id), view=view)

    # Its contents

    def chunks(self, statistics: Collection[int] | None = None, bound: Bound | None = None) -> list[pa.Table]:
        """Return the live files (see `FileSet.chunks`).

        With `bound`, perhaps without some files in which no row matches it.
        """
        return chunks_of(self.tracked, self.view, statistics, choosing(bound, self.metadata.specs))

    def files_named(self, paths: Collection[str]) -> list[pa.Table]:
        """Return those of `paths` that are live, in the form of `chunks`."""
        return files_named(self.tracked, self.view, paths)

    def all_files(self) -> pa.Table:
        """Return the live files in a single Arrow table."""
        return all_files(self.tracked, self.view)

    def files_only_here(self, other_view: LogView[TableState]) -> pa.Table:
        """Return the files that another view does not have, or has differently (see `files_only_in`)."""
        return files_only_in(self.tracked, self.view, other_view)

    def replaced_by(self, then: LogView[TableState]) -> tuple[pa.Table, pa.Table]:
        """Return the files to add and to remove, so that this version's become those of `then`."""
        return replaced_files(self.tracked, self.view, then)

    def entries(self, paths: Collection[str]) -> dict[str, DataFile]:
        """Return those of `paths` that are live, as files to add again in a commit on this version."""
        return entries_of(self.tracked, self.view, paths)

    def commits(self, *, newest_first: bool = False) -> Iterator[Commit]:
        """Yield the commits up to this version that have not expired.

        Commits of an earlier table at its place are left out.
        """
        if self.tracked.transaction.creates_log:
            return
        first = max(1, self.state.expired)
        for commit in self.tracked.log.commits(first, self.version, newest_first=newest_first):
            if commit.log_id == self.id:
                yield commit
            elif newest_first:
                return

    def changes(self, *, newest_first: bool = False) -> Iterator[Commit]:
        """Yield `commits` by author: a version that several authors share gives several commits."""
        for commit in self.commits(newest_first=newest_first):
            yield from each_change(commit, newest_first=newest_first)

    def note_rows_read(self, predicate: Any) -> None:
        """Note, for a transaction, that the rows which match were read; None stands for all rows."""
        self.tracked.transaction.note_rows_read(predicate)

    def plan(self, predicate: Filter | None, top: TopRows | None = None) -> pa.Table:
        """Return the data files that may hold rows that match `predicate`.

        Without it, return the files that may hold any of the `top` rows.
        """
        condition = None if predicate is None else as_predicate(predicate)
        self.note_rows_read(condition)
        condition_bound = None if condition is None else bind(condition, self.schema)
        return self.plan_bound(condition_bound, top=top)

    def plan_bound(
        self, bound_condition: Bound | None, *, limit: int | None = None, top: TopRows | None = None
    ) -> pa.Table:
        """Return `plan` of a condition whose columns are bound.

        With `limit`, return as many files as hold that many rows.
        """
        fetch, specs, schema = self.tracked.log.read_blobs, self.metadata.specs, self.schema
        return self.tracked.read(
            self.view,
            lambda view: plan_scan(
                view.state.files, fetch, bound_condition, specs, limit=limit, top=top, schema=schema
            ),
        )

    # Changing it

    def begin_write(self) -> WriteRef:
        """Return the id of a new write, which starts from this version. The names of its files contain it.

        Raises UnsupportedFormat, before any file is written, if writers need features that are unknown here.
        """
        self.tracked.log.check_writable(self.view)
        write = WriteRef(id=self.logs.new_id(), version=self.version)
        self.logs.write_times.began(write.id)
        return write

    def token_of(self, write: WriteRef) -> Token:
        """Return the token of a write that has no other token.

        A write is a single commit, however often it is retried.
        """
        return Token(commit_id=write.id, bases={self.tracked.location: write.version})

    def check_own_steps(self, operation: OperationKind, operation_facts: OperationFacts) -> None:
        """Raise CommitConflict if an own change of the transaction after this version conflicts.

        A handle from before an earlier step does not know that step, but has to be checked against it all the
        same (see `check_conflicts`).
        """
        own = self.tracked.transaction.own_since(self.view)
        if own:
            unversioned_facts = replace(operation_facts, version=-1)
            check_conflicts(operation, self.tracked.current(), own, unversioned_facts, self.name)

    def commit(
        self, decide: Decide[TableState], token: Token | None = None, *, shared: bool = False
    ) -> TableCommit:
        """Commit a decision that was made on this version, on the newest version that allows it.

        If it may be `shared`, it is committed together with concurrent commits of other threads (see
        `Log.commit`).

        Raises NoSuchTable if the table was dropped, or another table was created at its place. Raises
        TableRenamed if it no longer has the name that it was found by, on the very version that the commit
        would follow: another table may have the name. Commits nothing if the request of `token` was already
        applied to the table that its name led to at first.
        """
        if was_applied_elsewhere(self.logs, self.tracked, token):
            view = self._newest().view
            return TableCommit(view, view.version)
        start = self.at_least(self.version)
        last_draft: list[Draft] = []

        def decide_by_name(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
            self.check_name(view)
            last_draft[:] = [decide(view, passed_commits)]
            return last_draft[0]

        times = self.logs.write_times
        began_s = times.now_s()
        with gone_as_no_such_table(self.name):
            commit_result = self.tracked.commit(
                start.view,
                decide_by_name,
                commit_id=token.commit_id if token else None,
                base=min(self.version, token.base(self.tracked)) if token else self.version,
                shared=shared,
            )
        times.ended(token.commit_id if token else None, began_s)
        return changed(self.tracked, commit_result, last_draft, token)

    def commit_or_refresh(self, decide: Decide[TableState], token: Token | None) -> TableHead:
        """Commit as `commit` does, and return the newest version.

        Commits nothing if there is nothing to do.
        """
        try:
            return self.at(self.commit(decide, token).view)
        except NothingToDo:
            return self.refreshed()


class HasHead(Protocol):
    """An object that stands for a version of a table to its user, and has its head."""

    @property
    def table_head(self) -> TableHead: ...


def another_table(name: str) -> NoSuchTable:
    return NoSuchTable(f"there is no table {name}: it was dropped, and another one is at its place")
