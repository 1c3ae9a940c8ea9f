"""One version of a table as it is planned and looked into: its commits, its files, and where those are listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.files import StoredIn
from lakelog.catalog.logs.cache import TrackedLog
from lakelog.catalog.logs.live_files import chunks_of
from lakelog.catalog.planning import TopRows, bind, plan
from lakelog.catalog.schema import Filter, Metadata, as_predicate
from lakelog.catalog.state import TableState
from lakelog.log import Commit, View
from lakelog.log.errors import NotFound
from lakelog.log.keys import Keys


@dataclass(frozen=True, slots=True)
class TableVersion:
    """`location` is the url of the table's place. In a transaction, `view` has what that has changed."""

    tracked: TrackedLog[TableState]
    view: View[TableState]
    location: str

    @property
    def metadata(self) -> Metadata:
        return self.view.state.current

    @property
    def version(self) -> int:
        return self.view.version

    @property
    def is_new(self) -> bool:
        """Whether a transaction is about to create the table, so that it has no version yet."""
        return self.tracked.is_new

    def commits(self, *, newest_first: bool = False) -> Iterator[Commit]:
        """Yield the commits up to this version that have not expired, none of another table before it."""
        if self.is_new:
            return
        first = max(1, self.view.state.expired)
        for commit in self.tracked.log.commits(first, self.version, newest_first=newest_first):
            if commit.log_id == self.view.log_id:
                yield commit
            elif newest_first:
                return

    def before(self, first: Commit | None) -> View[TableState] | None:
        """Return the oldest version that can be read, where it is older than `first`, the oldest commit that is left.

        What expiry keeps of it is its state, and no commit.
        """
        if first is not None and first.version <= max(1, self.view.state.expired):
            return None
        try:
            found = self.tracked.log.view_at(self.version if first is None else first.version - 1)
        except NotFound:
            return None
        return found if found.log_id == self.view.log_id else None

    def at(self, commit: Commit) -> View[TableState]:
        return self.tracked.log.view_at(commit.version)

    def plan(self, predicate: Filter | None, top: TopRows | None) -> pa.Table:
        """Return the data files that may hold rows matching `predicate` or, without one, one of the `top` rows."""
        self.tracked.note_rows_read(predicate)
        schema, specs = self.metadata.schema, self.metadata.specs
        bound = None if predicate is None else bind(as_predicate(predicate), schema)
        fetch = self.tracked.log.read_blobs
        return self.tracked.read(
            self.view, lambda view: plan(view.state.files, fetch, bound, specs, top=top, schema=schema)
        )

    def file_chunks(self) -> list[pa.Table]:
        """Return the live files (see `FileSet.chunks`)."""
        self.tracked.note_rows_read(None)
        return chunks_of(self.tracked, self.view)

    @property
    def file_count(self) -> int:
        return self.view.state.files.file_count

    def stored_in(self) -> StoredIn:
        return self.view.state.files.stored_in()

    def manifest_url(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{Keys('').manifest(name)}"
