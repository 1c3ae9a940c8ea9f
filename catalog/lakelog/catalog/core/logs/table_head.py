"""One version of a table as this process knows it: its log, the view that a caller has, and its name in messages.

Rule: what a caller decides on a version is committed by `commit`, on the newest version that allows it; the cases in
between (an earlier step of the same transaction, another table at the place, a drop, a retry) are handled here and
nowhere else. A table that was found by a name is changed only while it has that name, by its own log. It must not know
what is decided, or which callers are allowed: a handle of the past is refused above.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs.branch_log import LineLog, seen_on
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.changed import Changed, changed
from lakelog.catalog.core.logs.commits import (
    NothingToDo,
    Token,
    Written,
    check_conflicts,
    gone_as_no_such_table,
    is_final,
    was_applied,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.file_entries import entries_of
from lakelog.catalog.core.logs.live_files import all_files, chunks_of, files_named, files_only_in
from lakelog.catalog.core.logs.name_path import known_path_to
from lakelog.catalog.core.logs.name_tree import Found
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.planning import Bound, TopRows, bind, choosing, plan_scan
from lakelog.catalog.core.schema import Filter, Metadata, Schema, as_predicate
from lakelog.catalog.core.state import MAIN, NO_ROWS, TAG, Link, Operation, RowCounts, TableState
from lakelog.catalog.errors import NoSuchTable, TableRenamed
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, Draft, View, WriteRef, each_change
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.placing import Decide
from lakelog.log.replay import hash_before_expiry


@dataclass(frozen=True, slots=True)
class FoundBy:
    """The name that a table was found by, and the location of the namespace that this name led through."""

    identifier: Identifier
    namespace: str

    @property
    def link(self) -> Link:
        return Link(namespace=self.namespace, name=self.identifier[-1])


@dataclass(frozen=True, slots=True)
class TableHead:
    """`name` is the table's name in messages. In a transaction, `view` includes the transaction's changes.

    `found_by` is None for a table that was found by its place: that may be renamed meanwhile. `rows` says how many rows
    the change has changed that returned this; None where none did, and where that is not known.
    """

    logs: LogCache
    tracked: TrackedLog[TableState]
    view: View[TableState]
    name: str
    found_by: FoundBy | None = None
    rows: RowCounts | None = field(default=None, compare=False)

    @staticmethod
    def named(logs: LogCache, found: Found[TableState], identifier: Identifier) -> TableHead:
        """Return the table that a name was found to lead to."""
        link = found.view.state.link
        assert link is not None, "a name leads to a table whose log has it"
        by = FoundBy(identifier, link.namespace)
        return TableHead(logs, found.tracked, found.view, quoted(identifier), by)

    @staticmethod
    def at_place(logs: LogCache, tracked: TrackedLog[TableState], view: View[TableState]) -> TableHead:
        """Return a table that is known by its place, whatever name it has."""
        return TableHead(logs, tracked, view, logs.url(tracked.location))

    # What it is

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
    def features(self) -> tuple[str, ...]:
        return self.view.features

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
        """The id of the tag or branch, unlike that of others of the same name before and after it; None for the table
        itself."""
        return None if self.ref == MAIN else self.view.state.refs[self.ref].id

    @property
    def is_tag(self) -> bool:
        return self.ref != MAIN and self.view.state.refs[self.ref].kind == TAG

    def known_by(self, found_by: FoundBy) -> TableHead:
        """Return the same version of the table, as it is known to a caller who has found it by that name."""
        return replace(self, name=quoted(found_by.identifier), found_by=found_by)

    # Other versions

    def at(self, view: View[TableState]) -> TableHead:
        """Return the same log at another view of it."""
        return replace(self, view=view, rows=None)

    def after(self, done: Changed) -> TableHead:
        """Return the same log as a change has left it."""
        return replace(self, view=done.view, rows=done.rows)

    def unchanged(self) -> TableHead:
        """Return this version, of which a change has found that there is nothing to do."""
        return replace(self, rows=NO_ROWS)

    def at_version(self, version: int) -> TableHead:
        """Return the table at a version, as that was committed. NotFound for one that does not exist or has expired."""
        if version == self.version and not self.logs.is_a_cut:
            return self.at(self.view)
        try:
            view = self.tracked.view_at(version)
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

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version at or before a time. NotFound where there is none."""
        try:
            return self.tracked.version_at_time(time_us)
        except NotFound as error:
            asked = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=time_us)
            raise NotFound(
                f"{self.name} has no version of {asked.isoformat(' ')} or before: its first version is later. "
                "`lakelog history` shows the times of all versions"
            ) from error

    def hash_of(self, version: int) -> str:
        """Return the hash of the commit of an existing version, expired or not. One GET."""
        entry = self.tracked.log.entry_at(version)
        if entry is None:
            raise FormatError(f"version {version} of {self.name} is missing: run `lakelog fsck`")
        return hash_before_expiry(entry)

    def at_write(self, write: WriteRef | None) -> TableHead:
        """Return the version that a write started from, on the same tag or branch; this one where that is it."""
        if write is None or write.version == self.version:
            return self
        view = self.tracked.log.view_at(write.version)
        return self.at(view if self.ref == MAIN else seen_on(view, self.ref, self.ref_id))

    def at_write_to_commit(
        self, write: WriteRef | None, token: Token | None, *, may_be_proposed: bool
    ) -> TableHead | None:
        """As `at_write`, to commit what the write brought; None where that version has expired and this has happened
        before. What others may do yet, as it `may_be_proposed`, is refused in the log before NotFound is raised."""
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
        """Return the newest version. Costs 1 GET when nothing is newer.

        NoSuchTable when the table was dropped, TableRenamed when it was renamed, NoSuchRef when the branch was dropped.
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

    def check_name(self, view: View[TableState]) -> None:
        """Raise TableRenamed where the table no longer has, at `view`, the name that it was found by."""
        if self.found_by is None or view.state.link == self.found_by.link or view.log_id != self.id:
            # Another table at the place is not this one under another name: that is found out otherwise.
            return
        now = self._name_of(view.state.link)
        raise TableRenamed(
            f"{self.name} was renamed to {now} since it was loaded, and nothing was changed: load {now} for the same "
            f"table, or {self.name} again for the table that has this name now"
        )

    def _name_of(self, link: Link | None) -> str:
        assert self.found_by is not None and link is not None, "a table that had a name keeps one"
        if link.namespace == self.found_by.namespace:
            return quoted((*self.found_by.identifier[:-1], link.name))
        path = known_path_to(self.logs, link.namespace)
        return quoted([link.name]) if path is None else quoted((*path, link.name))

    def newest_known(self) -> TableHead:
        """Return the newest version that is known without a request: the base of a commit that read nothing."""
        known = self.tracked.known
        if (
            known is not None
            and known.log_id == self.id
            and known.version > self.version
            and known.state.current.generation == self.metadata.generation
        ):
            return self.at(known)
        return self

    def at_least(self, version: int) -> TableHead:
        """Return a known version that is not older, else the newest. NoSuchTable where another is at its place."""
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
        """Return this version as it is on a tag or branch, or on main. NoSuchRef."""
        table, view = self.whole, seen_on(self.view, name)
        if name == MAIN:
            return table
        return replace(self, tracked=LineLog(table.tracked, name, view.state.refs[name].id), view=view)

    # Its contents

    def chunks(self, statistics: Collection[int] | None = None, bound: Bound | None = None) -> list[pa.Table]:
        """Return the live files (see `FileSet.chunks`), perhaps without some in which no row matches `bound`."""
        return chunks_of(self.tracked, self.view, statistics, choosing(bound, self.metadata.specs))

    def files_named(self, paths: Collection[str]) -> list[pa.Table]:
        """Return those of `paths` that are live, in the form of `chunks`."""
        return files_named(self.tracked, self.view, paths)

    def all_files(self) -> pa.Table:
        """Return the live files in one table."""
        return all_files(self.tracked, self.view)

    def files_only_here(self, there: View[TableState]) -> pa.Table:
        """Return the files that another view does not have, or has differently (see `files_only_in`)."""
        return files_only_in(self.tracked, self.view, there)

    def entries(self, paths: Collection[str]) -> dict[str, DataFile]:
        """Return those of `paths` that are live, as files that can be added again in a commit on this version."""
        return entries_of(self.tracked, self.view, paths)

    def commits(self, *, newest_first: bool = False) -> Iterator[Commit]:
        """Yield the commits up to this version that have not expired, none of another table before it."""
        if self.tracked.transaction.creates_log:
            return
        first = max(1, self.state.expired)
        for commit in self.tracked.log.commits(first, self.version, newest_first=newest_first):
            if commit.log_id == self.id:
                yield commit
            elif newest_first:
                return

    def changes(self, *, newest_first: bool = False) -> Iterator[Commit]:
        """As `commits`, one for each author: several of one version, where it has several."""
        for commit in self.commits(newest_first=newest_first):
            yield from each_change(commit, newest_first=newest_first)

    def note_rows_read(self, predicate: Any) -> None:
        """Note, for a transaction, that the rows which match were read; None stands for all rows."""
        self.tracked.transaction.note_rows_read(predicate)

    def plan(self, predicate: Filter | None, top: TopRows | None = None) -> pa.Table:
        """Return the data files that may hold rows matching `predicate` or, without one, one of the `top` rows."""
        condition = None if predicate is None else as_predicate(predicate)
        self.note_rows_read(condition)
        bound = None if condition is None else bind(condition, self.schema)
        return self.plan_bound(bound, top=top)

    def plan_bound(
        self, bound: Bound | None, *, limit: int | None = None, top: TopRows | None = None
    ) -> pa.Table:
        """As `plan`, of a condition whose columns are bound; with `limit`, as many files as hold that many rows."""
        fetch, specs, schema = self.tracked.log.read_blobs, self.metadata.specs, self.schema
        return self.tracked.read(
            self.view,
            lambda view: plan_scan(
                view.state.files, fetch, bound, specs, limit=limit, top=top, schema=schema
            ),
        )

    # Changing it

    def begin_write(self) -> WriteRef:
        """Return the id of a new write, which starts from this version; it goes into the names of its files."""
        write = WriteRef(id=self.logs.new_id(), version=self.version)
        self.logs.write_times.began(write.id)
        return write

    def token_of(self, write: WriteRef) -> Token:
        """Return the token of a write that has no other: one write is one commit, however often it is retried."""
        return Token(commit_id=write.id, bases={self.tracked.location: write.version})

    def check_own_steps(self, operation: Operation, written: Written) -> None:
        """Raise CommitConflict where an own change of the transaction after this version conflicts.

        A handle from before an earlier step does not know that step, but has to be checked against it all the same;
        see `check_conflicts`.
        """
        own = self.tracked.transaction.own_since(self.view)
        if own:
            unversioned = replace(written, version=-1)
            check_conflicts(operation, self.tracked.current(), own, unversioned, self.name)

    def commit(
        self, decide: Decide[TableState], token: Token | None = None, *, shared: bool = False
    ) -> Changed:
        """Commit what was decided on this version, on the newest one that allows it, and with what other threads commit
        meanwhile where it may be `shared` (see `Log.commit`).

        NoSuchTable when the table was dropped, or another one was created at its place. TableRenamed when it no longer
        has the name that it was found by, on the very version that the commit would follow: another table may have it.

        Commits nothing where the request of `token` was already applied to the table that its name led to at first.
        """
        if was_applied_elsewhere(self.logs, self.tracked, token):
            view = self._newest().view
            return Changed(view, view.version)
        start = self.at_least(self.version)
        decided: list[Draft] = []

        def decide_by_name(view: View[TableState], passed: Sequence[Commit]) -> Draft:
            self.check_name(view)
            decided[:] = [decide(view, passed)]
            return decided[0]

        times = self.logs.write_times
        began_s = times.now_s()
        with gone_as_no_such_table(self.name):
            done = self.tracked.commit(
                start.view,
                decide_by_name,
                commit_id=token.commit_id if token else None,
                base=min(self.version, token.base(self.tracked)) if token else self.version,
                shared=shared,
            )
        times.ended(token.commit_id if token else None, began_s)
        return changed(self.tracked, done, decided, token)

    def commit_or_refresh(self, decide: Decide[TableState], token: Token | None) -> TableHead:
        """As `commit`; return the newest version. Commits nothing where there is nothing to do."""
        try:
            return self.at(self.commit(decide, token).view)
        except NothingToDo:
            return self.refreshed()


class HasHead(Protocol):
    """An object that stands for a version of a table to its user, and has its head."""

    @property
    def head(self) -> TableHead: ...


def another_table(name: str) -> NoSuchTable:
    return NoSuchTable(f"there is no table {name}: it was dropped, and another one is at its place")
