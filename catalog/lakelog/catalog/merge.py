"""A merge that is being written down: its clauses one after the other, in the words of delta-rs, then `execute`.

    table = (
        table.merge(rows, on="id")
        .when_matched_delete("source.deleted")
        .when_matched_update_all()
        .when_not_matched_insert_all("NOT source.deleted")
        .execute()
    )

Each method returns another merge; nothing is read before `execute`. It must not know what a table is: it hands the
clauses on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from lakelog.catalog.core.logs import OfThisProcess, Token
from lakelog.catalog.core.writes import Clause, Does, Rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Merge(OfThisProcess, Generic[T]):
    """What happens to rows of a table and of a source. Of the clauses about the same rows, the first applies whose
    predicate is true, or that has none.

    A predicate is an expression in DuckDB's SQL that names columns as `target.<column>` and `source.<column>`.
    `updates` are values by columns of the table: a text is such an expression (a text in quotes: `"'new'"`), any
    other value of Python's is what it is. The methods `…_all` take each column of the source for the table's column
    of the same name, except those in `except_cols`: an update leaves columns alone that the source does not have, an
    inserted row gets their default or NULL.
    """

    _instead: ClassVar[str] = "give the table and the source"

    _apply: Callable[[Sequence[Clause], Token | None], T]
    _clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, updates: Mapping[str, Any], predicate: str | None = None) -> Merge[T]:
        """Set columns of rows that match a row of the source."""
        return self._with(Rows.MATCHED, Does.UPDATE, predicate, dict(updates))

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] = ()
    ) -> Merge[T]:
        """Set all columns that the source has, of rows that match a row of it."""
        return self._with(Rows.MATCHED, Does.UPDATE, predicate, None, except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> Merge[T]:
        """Delete rows that match a row of the source."""
        return self._with(Rows.MATCHED, Does.DELETE, predicate)

    def when_not_matched_insert(self, updates: Mapping[str, Any], predicate: str | None = None) -> Merge[T]:
        """Insert a row for each row of the source that matches none. Values and predicate name the source only."""
        return self._with(Rows.NOT_MATCHED, Does.INSERT, predicate, dict(updates))

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] = ()
    ) -> Merge[T]:
        """Insert the rows of the source that match none. The predicate names the source only."""
        return self._with(Rows.NOT_MATCHED, Does.INSERT, predicate, None, except_cols)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, Any], predicate: str | None = None
    ) -> Merge[T]:
        """Set columns of rows that match no row of the source. Values and predicate name the target only."""
        return self._with(Rows.NOT_MATCHED_BY_SOURCE, Does.UPDATE, predicate, dict(updates))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Merge[T]:
        """Delete rows that match no row of the source. The predicate names the target only."""
        return self._with(Rows.NOT_MATCHED_BY_SOURCE, Does.DELETE, predicate)

    def execute(self, *, token: Token | None = None) -> T:
        """Change the table by one commit, and return its newest version; where no row is changed, there is no commit.

        CommitConflict where another commit has changed the same rows since this version, or has brought rows that
        match. InvalidInput for a clause or a value that does not fit, and where a row of the table matches several
        rows of the source, unless the only clause about matching rows deletes all of them; CheckViolated;
        Unsupported. A source that is a stream is used up then.
        """
        return self._apply(self._clauses, token)

    def _with(
        self,
        rows: Rows,
        does: Does,
        predicate: str | None,
        values: Mapping[str, Any] | None = None,
        except_cols: Sequence[str] = (),
    ) -> Merge[T]:
        excepted = (except_cols,) if isinstance(except_cols, str) else tuple(except_cols)
        clause = Clause(rows, does, predicate, values, excepted)
        return replace(self, _clauses=(*self._clauses, clause))
