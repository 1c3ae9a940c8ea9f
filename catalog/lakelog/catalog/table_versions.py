"""The part of `Table` about its other versions: how it was, how it is on tags and branches, and making these."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.logs import LineLog, LogCache, NothingToDo, Token, TrackedLog, seen_on, whole
from lakelog.catalog.state import BRANCH, MAIN, TAG, Ref, TableState
from lakelog.catalog.writes import tags_and_branches
from lakelog.log import View
from lakelog.log.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from lakelog.catalog.table import Table


class TableVersions:
    """What `Table` can do about its past, and about tags and branches."""

    _logs: LogCache
    _tracked: TrackedLog[TableState]
    _view: View[TableState]
    _of_the_past: bool

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

        @property
        def version(self) -> int: ...

        @property
        def location(self) -> str: ...

        @property
        def id(self) -> str: ...

        def _made(
            self, tracked: TrackedLog[TableState], view: View[TableState], *, of_the_past: bool
        ) -> Table: ...

    @property
    def ref(self) -> str:
        """The tag or branch that this is the table on, `main` for the table itself."""
        return self._view.state.line

    @property
    def ref_id(self) -> str | None:
        """What tells the tag or branch from others of the same name before and after it; None for the table itself."""
        return None if self.ref == MAIN else self.refs[self.ref].id

    @property
    def is_tag(self) -> bool:
        return self.ref != MAIN and self.refs[self.ref].kind == TAG

    @property
    def refs(self) -> Mapping[str, Ref]:
        """The tags and branches that there are in this version, by name."""
        return self._view.state.refs

    def at(
        self, *, version: int | None = None, timestamp_us: int | None = None, ref: str | None = None
    ) -> Table:
        """Return the table as it was at a version, or at a time (the newest version not after it), or on a tag or
        branch (`main` is the table itself); or on that as it was then.

        On a branch, the table is read and written to as always, but not altered. A tag is of the past.
        NotFound, with what there is, for one that does not exist: NoSuchRef for a tag or branch.
        """
        if ref is not None:
            past = (
                self
                if version is None and timestamp_us is None
                else self.at(version=version, timestamp_us=timestamp_us)
            )
            return past._on(ref)
        for asked in (version, timestamp_us):
            if asked is not None and type(asked) is not int:
                raise InvalidInput(
                    f"{asked!r} is not a version or a time in microseconds: give a whole number"
                )
        if (version is None) == (timestamp_us is None):
            raise InvalidInput(
                "a table's past is asked for by version or by timestamp_us: give exactly one of them"
            )
        if self.is_tag:
            raise InvalidInput(
                f"{self.ref} is a tag, which has no other versions: ask the table itself for them"
            )
        if version is None:
            assert timestamp_us is not None
            version = self._version_at(timestamp_us)
        is_this = version == self.version and not self._logs.is_a_cut
        view = self._view if is_this else self._view_at(version)
        if view.log_id != self.id:
            raise NotFound(
                f"version {version} at {self.location} is of another table, which was dropped before this one was "
                "created there"
            )
        return self._made(self._tracked, view, of_the_past=True)

    def _version_at(self, timestamp_us: int) -> int:
        try:
            return self._tracked.version_at_time(timestamp_us)
        except NotFound as error:
            asked = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=timestamp_us)
            raise NotFound(
                f"{self.name} has no version of {asked.isoformat(' ')} or before: its first version is later; "
                "`lakelog history` tells the times of all"
            ) from error

    def _view_at(self, version: int) -> View[TableState]:
        try:
            return self._tracked.view_at(version)
        except NotFound as error:
            newest = self._tracked.current().version
            if 1 <= version <= newest:
                raise
            raise NotFound(f"{self.name} has no version {version}: its newest is {newest}") from error

    def create_tag(
        self,
        name: str,
        version: int | None = None,
        *,
        replace: bool = False,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Give a version, by default this one, a name by which it can be read as long as the tag is there.

        On a branch, versions are those of the branch. RefExists, unless one shall `replace` the other or there may be
        one; NotFound for a version that there is not (any more).
        """
        return self._set_ref(TAG, name, version, replace, if_not_exists, token)

    def create_branch(
        self,
        name: str,
        version: int | None = None,
        *,
        replace: bool = False,
        if_not_exists: bool = False,
        token: Token | None = None,
    ) -> Table:
        """Make a second line of contents, which begins with those of a version, by default this one; see `create_tag`.

        InvalidInput where the rows of that version do not fit the columns of now, which branches share.
        """
        return self._set_ref(BRANCH, name, version, replace, if_not_exists, token)

    def replace_tag(self, name: str, version: int | None = None, *, token: Token | None = None) -> Table:
        """As `create_tag` in place of a tag that there is. NoSuchRef."""
        return self._set_ref(TAG, name, version, True, False, token, is_known=True)

    def replace_branch(self, name: str, version: int | None = None, *, token: Token | None = None) -> Table:
        """As `create_branch` in place of a branch that there is, whose rows are gone. NoSuchRef."""
        return self._set_ref(BRANCH, name, version, True, False, token, is_known=True)

    def drop_tag(self, name: str, *, if_exists: bool = False, token: Token | None = None) -> Table:
        """Drop a tag. NoSuchRef."""
        return self._drop_ref(TAG, name, if_exists, token)

    def drop_branch(self, name: str, *, if_exists: bool = False, token: Token | None = None) -> Table:
        """Drop a branch, with the rows that only it has. NoSuchRef."""
        return self._drop_ref(BRANCH, name, if_exists, token)

    def fast_forward(self, branch: str, to: str, *, token: Token | None = None) -> Table:
        """Give `branch` the contents of the branch `to`, which was made from it; either may be `main`.

        InvalidInput where `branch` was changed since, NoSuchRef where one of them is not there.
        """
        decide = tags_and_branches.fast_forwarding(
            self._whole_log, branch, to, base=self.version, title=self.name
        )
        return self._commit_refs("fast-forward branches of", decide, token)

    def _set_ref(
        self,
        kind: str,
        name: str,
        version: int | None,
        replace: bool,
        if_not_exists: bool,
        token: Token | None,
        is_known: bool = False,
    ) -> Table:
        then: View[TableState] | None = self._view
        if version is not None:
            then = self.at(version=version)._view
        elif self._tracked.in_transaction and not self._of_the_past:
            # What the transaction itself has changed is to be in it, as it will be committed.
            self._tracked.note_rows_read(None)
            then = None
        on_branch = self.ref != MAIN and self.refs[self.ref].kind == BRANCH
        decide = tags_and_branches.setting(
            self._whole_log,
            then,
            (self.ref, self.ref_id) if on_branch else (MAIN, None),
            (kind, name, self._logs.new_id()),
            base=self.version,
            replace=replace,
            if_not_exists=if_not_exists,
            is_known=is_known,
            title=self.name,
        )
        return self._commit_refs(f"create a {kind} of", decide, token)

    def _drop_ref(self, kind: str, name: str, if_exists: bool, token: Token | None) -> Table:
        decide = tags_and_branches.dropping(
            kind, name, base=self.version, if_exists=if_exists, title=self.name
        )
        return self._commit_refs(f"drop a {kind} of", decide, token)

    @property
    def _whole_log(self) -> TrackedLog[TableState]:
        return self._tracked.under if isinstance(self._tracked, LineLog) else self._tracked

    def _commit_refs(self, what: str, decide: Any, token: Token | None) -> Table:
        """Commit a change of tags and branches, which may be asked for by any handle, and return the table itself."""
        self._logs.check_writable()
        view = whole(self._view)
        if self._of_the_past:
            # What was committed since then is nothing that the change could conflict with, or that has to be read.
            view = self._whole_log.at_least(self.version)
            if view.log_id != self.id:
                raise NoSuchTable(f"there is no table {self.name} any more: another one is at its place")
        table = self._made(self._whole_log, view, of_the_past=False)
        try:
            return table._commit(decide, token)
        except NothingToDo:
            return table.refresh()

    def _on(self, name: str) -> Table:
        """Return this version as it is on a tag or branch, or on main."""
        under, view = self._whole_log, seen_on(self._view, name)
        if name == MAIN:
            return self._made(under, view, of_the_past=self._of_the_past)
        ref = self.refs[name]
        tracked = LineLog(under, name, ref.id)
        is_past = self._of_the_past or ref.kind == TAG
        return self._made(tracked, view, of_the_past=is_past)

    def _check_main(self, what: str) -> None:
        if self.ref != MAIN:
            raise InvalidInput(
                f"{self.ref} of {self.name} cannot be {what} by itself: tags and branches have the columns and "
                "properties of the table. Ask for it of the table itself"
            )
