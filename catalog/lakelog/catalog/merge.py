"""The builder of a merge: its clauses in order, in the words of delta-rs, then `execute`.

    table = (
        table.merge(rows, on="id")
        .when_matched_delete("source.deleted")
        .when_matched_update_all()
        .when_not_matched_insert_all("NOT source.deleted")
        .execute()
    )

Each method returns another merge. Nothing is read before `execute`. It must not know tables, because it only
hands the clauses on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from lakelog.catalog.core.logs import OfThisProcess, Token
from lakelog.catalog.core.writes import merge_clauses as clauses
from lakelog.catalog.foreign_calls import explaining

T = TypeVar("T")


@explaining
@dataclass(frozen=True, slots=True)
class Merge(OfThisProcess, Generic[T]):
    """The clauses of a merge, about rows of a table and of a source.

    Of the clauses about the same rows, the first clause applies whose predicate is true, or that has none. A
    predicate is an expression in DuckDB's SQL that names columns as `target.<column>` and `source.<column>`.
    `updates` are values by columns of the table. A text is such an expression (a text in quotes: `"'new'"`).
    Any other value of Python is taken as it is. The methods `…_all` take each column of the source for the
    table's column of the same name, except columns in `except_cols`. If the source lacks a column, an update
    leaves it alone, and an inserted row gets its default or NULL.
    """

    _instead: ClassVar[str] = "give the table and the source"

    _apply: Callable[[Sequence[clauses.MergeClause], Token | None], T]
    _clauses: tuple[clauses.MergeClause, ...] = ()

    def __repr__(self) -> str:
        clauses = f"{len(self._clauses)} clause{'' if len(self._clauses) == 1 else 's'}"
        return f"<Merge with {clauses}, which has changed nothing: execute() changes the table>"

    def when_matched_update(self, updates: Mapping[str, Any], predicate: str | None = None) -> Merge[T]:
        """Set columns of rows that match a row of the source."""
        return self._with(clauses.ClauseRows.MATCHED, clauses.ClauseEffect.UPDATE, predicate, dict(updates))

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] = ()
    ) -> Merge[T]:
        """Set all columns that the source has, in rows that match a row of the source."""
        return self._with(
            clauses.ClauseRows.MATCHED, clauses.ClauseEffect.UPDATE, predicate, None, except_cols
        )

    def when_matched_delete(self, predicate: str | None = None) -> Merge[T]:
        """Delete rows that match a row of the source."""
        return self._with(clauses.ClauseRows.MATCHED, clauses.ClauseEffect.DELETE, predicate)

    def when_not_matched_insert(self, updates: Mapping[str, Any], predicate: str | None = None) -> Merge[T]:
        """Insert a row for each row of the source that matches no row.

        Values and predicate name the source only.
        """
        return self._with(
            clauses.ClauseRows.NOT_MATCHED, clauses.ClauseEffect.INSERT, predicate, dict(updates)
        )

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] = ()
    ) -> Merge[T]:
        """Insert the rows of the source that match no row. The predicate names the source only."""
        return self._with(
            clauses.ClauseRows.NOT_MATCHED, clauses.ClauseEffect.INSERT, predicate, None, except_cols
        )

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, Any], predicate: str | None = None
    ) -> Merge[T]:
        """Set columns of rows that match no row of the source. Values and predicate name the target only."""
        return self._with(
            clauses.ClauseRows.NOT_MATCHED_BY_SOURCE, clauses.ClauseEffect.UPDATE, predicate, dict(updates)
        )

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Merge[T]:
        """Delete rows that match no row of the source. The predicate names the target only."""
        return self._with(clauses.ClauseRows.NOT_MATCHED_BY_SOURCE, clauses.ClauseEffect.DELETE, predicate)

    def execute(self, *, token: Token | None = None) -> T:
        """Change the table by a single commit, and return its newest version.

        If no row changes, there is no commit. Raises CommitConflict if another commit has changed the same
        rows since this version, or has added rows that match. Raises InvalidInput if a clause or a value does
        not fit. Raises it too if a row of the table matches several rows of the source, unless the only
        clause about matching rows deletes all of them. Raises CheckViolated or Unsupported. Uses up a source
        that is a stream.
        """
        return self._apply(self._clauses, token)

    def _with(
        self,
        rows: clauses.ClauseRows,
        does: clauses.ClauseEffect,
        predicate: str | None,
        values: Mapping[str, Any] | None = None,
        except_cols: Sequence[str] = (),
    ) -> Merge[T]:
        excluded_columns = (except_cols,) if isinstance(except_cols, str) else tuple(except_cols)
        clause = clauses.MergeClause(rows, does, predicate, values, excluded_columns)
        return replace(self, _clauses=(*self._clauses, clause))
