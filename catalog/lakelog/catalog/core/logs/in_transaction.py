"""The part of a log's interface that is about its transaction: its changes, and notes of its reads.

It is apart from `TrackedLog`, whose users need not know whether there is a transaction. Outside of a
transaction, all answers are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from lakelog.catalog.core.schema.filters import Filter
from lakelog.log import Commit, LogView

S = TypeVar("S")


class InTransaction(Protocol[S]):
    """The part of a transaction in a log."""

    @property
    def is_open(self) -> bool:
        """Whether a commit is a step of a transaction, which may have read and done other things."""
        ...

    @property
    def creates_log(self) -> bool:
        """Whether the transaction creates the log. It is not committed yet."""
        ...

    def own_since(self, view: LogView[S]) -> Sequence[Commit]:
        """Return the transaction's steps after `view`, as commits. Outside of transactions there are none."""
        ...

    def note_staged(self, commit_id: str, view: LogView[S]) -> None:
        """Note that the commit of this id is prepared on `view`."""
        ...

    def own_since_staged(self, commit_id: str) -> Sequence[Commit]:
        """Return `own_since` after the view that `note_staged` was given."""
        ...

    def note_moved(self) -> None:
        """Note that others have moved rows that the step being decided changes.

        The step was judged row by row, and may remove other files than when it was made.
        """
        ...

    def note_rows_read(self, predicate: Filter | None) -> None:
        """Note, for later validation, that the rows which match were read; None stands for all rows."""
        ...

    def note_rows_of_line_read(self, name: str, id: str, predicate: Filter | None) -> None:
        """Note the same as `note_rows_read`, for the tag or branch of that name and id."""
        ...

    def note_name_read(self, space: str, name: str | None) -> None:
        """Note that this name was looked up in this namespace; None stands for all names of the space."""
        ...


class NoTransaction(Generic[S]):
    """The answers of a log outside of transactions."""

    @property
    def is_open(self) -> bool:
        return False

    @property
    def creates_log(self) -> bool:
        return False

    def own_since(self, view: LogView[S]) -> Sequence[Commit]:
        return ()

    def note_staged(self, commit_id: str, view: LogView[S]) -> None:
        return None

    def own_since_staged(self, commit_id: str) -> Sequence[Commit]:
        return ()

    def note_moved(self) -> None:
        return None

    def note_rows_read(self, predicate: Filter | None) -> None:
        return None

    def note_rows_of_line_read(self, name: str, id: str, predicate: Filter | None) -> None:
        return None

    def note_name_read(self, space: str, name: str | None) -> None:
        return None
