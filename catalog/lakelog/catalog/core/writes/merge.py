"""A merge from Python: DuckDB finds matching rows of the table and of a source, which change in one commit.

First it finds the pairs of matching rows, and the action for each, from the columns that conditions name. It
reads only files that may have such rows. Then the new rows are computed, each clause on its own, and written.
Unchanged rows are not read again, or are copied without DuckDB if files are rewritten. Rule: a merge is
decided on a single version, and its commit carries the conditions that it depends on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.given_rows import Ingestible, stream_of
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes.computed_rows import ChangedRows, ComputedRows, TargetRows, ValueProjection
from lakelog.catalog.core.writes.identity_values import refresh_taken
from lakelog.catalog.core.writes.merge_clauses import (
    CheckedClause,
    CheckedClauses,
    ClauseEffect,
    ClauseRows,
    MergeClause,
    check_order,
    checked,
)
from lakelog.catalog.core.writes.merge_source import (
    KeysOfSource,
    MatchCondition,
    MergeSource,
    check_names,
    check_unique,
    load,
    matching,
    own_name,
)
from lakelog.catalog.core.writes.sql.engine import SqlEngine, fenced, quoted_name
from lakelog.catalog.core.writes.sql.expressions import SOURCE, TARGET, SqlExpression
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap

PRUNED_BY_VALUES_MAX = 1_000
"""Up to this many source rows, only files that may have one of their keys are read. Beyond it, the keys'
range counts."""

COMMITTED_VALUES_MAX = 10_000
"""Up to this many source rows, their keys go with a commit that meets another commit, as with Spark's
MERGE."""

_PAIRS, _ALONE = "pairs", "alone"


def merge(
    head: TableHead,
    data: Ingestible,
    on: str | Sequence[str],
    clauses: Sequence[MergeClause],
    token: Token | None,
    *,
    is_unique: bool = False,
) -> TableHead:
    """Merge the rows of `data` and return the newest version. With `is_unique`, a key may not occur twice in
    `data`.

    Reads the source once. Of the table it reads the columns in conditions, in files that may have matching
    rows. Raises the errors of `Table.merge`.
    """
    check_order(clauses)
    stream = stream_of(data)
    check_names(stream.schema)
    with SqlEngine.opened() as engine:
        actions = checked(engine, clauses, head.schema, stream.schema)
        how = matching(engine, on, head.schema, stream.schema)
        source_names = {name for action in actions.all for part in action.expressions for name in part.source}
        source = load(engine, stream, source_names | how.condition.source)
        engine.begin()
        if is_unique:
            check_unique(engine, how.keys)
        return _Merge(head, engine, source, how, actions).done(token)


class _Merge:
    def __init__(
        self,
        head: TableHead,
        engine: SqlEngine,
        source: MergeSource,
        how: MatchCondition,
        actions: CheckedClauses,
    ) -> None:
        self._head = head
        self._engine = engine
        self._source = source
        self._how = how
        self._actions = actions
        self._schema = head.schema
        self._ordinal = f"{SOURCE}.{quoted_name(source.ordinal)}"
        names_in_use = [*source.columns.names, *(field.name for field in self._schema.fields)]
        # The additional columns of rows, by their names in the table of pairs.
        self._own = {name: own_name(f"_{name}", names_in_use) for name in ("file", "position", "id")}

    def done(self, token: Token | None) -> TableHead:
        head = self._head
        keys = KeysOfSource(self._engine, () if self._reads_all else self._how.keys, self._source)
        within = keys.within()
        few = keys.among(PRUNED_BY_VALUES_MAX)
        row_filter = within if few is None else few
        head.tracked.transaction.note_rows_read(row_filter)
        if self._actions.writes:
            refresh_taken(head)
        plan = head.plan_bound(self._bound(row_filter))
        rows = TargetRows(head, plan.filter(pc.greater(plan["rows"], 0)), self._bound(within))
        self._find_pairs(rows)
        self._check_matches_once()
        changes = ChangedRows(head, rows, OperationKind.MERGE, self._positions(rows))
        for action in self._actions.all:
            if action.does is ClauseEffect.UPDATE:
                changes.add_updated(self._updated(action, rows), action.values)
            elif action.does is ClauseEffect.INSERT:
                changes.add_new(self._inserted(action))
        return changes.commit(within, lambda: keys.among(COMMITTED_VALUES_MAX), token)

    @property
    def _reads_all(self) -> bool:
        """Return whether rows without a match matter."""
        return bool(self._actions.of(ClauseRows.NOT_MATCHED_BY_SOURCE))

    def _bound(self, predicate: Predicate | None) -> Bound | None:
        return None if predicate is None else bind(predicate, self._schema, case_sensitive=True)

    # Which rows

    def _find_pairs(self, rows: TargetRows) -> None:
        """Make the table of pairs: a row's place, its id, the number of the source's row, and the action for
        it."""
        actions = self._actions.of(ClauseRows.MATCHED)
        self._from_target(
            _PAIRS,
            rows,
            [self._how.condition, *_conditions(actions)],
            f"{self._ordinal} AS ordinal, {_choice(actions)} AS action",
            f"JOIN {SOURCE} ON {self._how.condition.sql}",
        )
        alone = self._actions.of(ClauseRows.NOT_MATCHED_BY_SOURCE)
        if alone:
            # In a single join with the pairs, conditions other than keys would make DuckDB compare all rows with
            # all rows.
            self._from_target(
                _ALONE,
                rows,
                _conditions(alone),
                f"NULL::BIGINT AS ordinal, {_choice(alone)} AS action",
                f"ANTI JOIN {_PAIRS} AS pair ON {self._place('file')} AND {self._place('position')}",
            )
            self._engine.run(f"INSERT INTO {_PAIRS} SELECT * FROM {_ALONE} WHERE action IS NOT NULL")

    def _from_target(
        self, table: str, rows: TargetRows, parts: Sequence[SqlExpression], selected: str, join: str
    ) -> None:
        """Make a table of places and ids of rows, and of `selected`, from the columns that `parts` name."""
        columns = sorted({name for part in parts for name in part.target})
        places = ", ".join(f"{TARGET}.{quoted_name(own)} AS {name}" for name, own in self._own.items())
        with self._engine.stream("target_rows", *rows.stream(columns, list(self._own.values()))):
            self._engine.run(
                f"CREATE TABLE {table} AS SELECT {places}, {selected} FROM {fenced('target_rows')} AS {TARGET} {join}"
            )

    def _place(self, part: str) -> str:
        return f"{TARGET}.{quoted_name(self._own[part])} = pair.{part}"

    def _check_matches_once(self) -> None:
        if not self._actions.matches_once:
            return
        twice = self._engine.table(
            f"SELECT min(ordinal), max(ordinal) FROM {_PAIRS} WHERE ordinal IS NOT NULL GROUP BY file, position "
            "HAVING count(*) > 1 LIMIT 1"
        )
        if twice.num_rows:
            first, last = (column[0].as_py() for column in twice.columns)
            raise InvalidInput(
                f"a row of {self._head.name} matches several rows of the source, of which it is not clear which one "
                f"changes it; rows {first:,} and {last:,} of the source, counted from 0, are two of them: leave one out"
            )

    def _positions(self, rows: TargetRows) -> dict[str, BitMap]:
        """Return the rows that are updated or deleted, by the paths of their files."""
        return rows.positions(
            self._engine.rows(f"SELECT file, position FROM {_PAIRS} WHERE action IS NOT NULL")
        )

    # New rows

    def _updated(self, action: CheckedClause, rows: TargetRows) -> Generator[ComputedRows]:
        """Yield the rows that a clause updates, with their new values and their ids."""
        is_pair = action.rows is ClauseRows.MATCHED
        condition = f"action = {action.number} AND ordinal IS {'NOT ' if is_pair else ''}NULL"
        values = ValueProjection.of(action.values, self._schema, self._source.columns)
        pairs = f"(SELECT * FROM {_PAIRS} WHERE {condition})"
        both = f"{SOURCE} JOIN {pairs} AS pair ON {self._ordinal} = pair.ordinal"
        if not values.target:
            yield from values.rows(self._engine, f"SELECT pair.id AS id{values.sql} FROM {both}")
            return
        own = {name: quoted_name(column) for name, column in self._own.items()}
        place_columns = f"SELECT pair.file AS {own['file']}, pair.position AS {own['position']}"
        # The table's rows come as a stream. The join sends it past a table of the other rows.
        source_rows = (
            f"({place_columns}, {SOURCE}.* FROM {both})"
            if is_pair
            else f"({place_columns} FROM {pairs} AS pair)"
        )
        at = rows.positions(self._engine.rows(f"SELECT file, position FROM {_PAIRS} WHERE {condition}"))
        on = " AND ".join(
            f"{TARGET}.{own[column]} = {SOURCE}.{own[column]}" for column in ("file", "position")
        )
        stream = rows.stream(values.target, list(self._own.values()), only=at)
        with self._engine.stream("target_rows", *stream):
            yield from values.rows(
                self._engine,
                f"SELECT {TARGET}.{own['id']} AS id{values.sql} FROM {fenced('target_rows')} AS {TARGET} "
                f"JOIN {source_rows} AS {SOURCE} ON {on}",
            )

    def _inserted(self, action: CheckedClause) -> Generator[ComputedRows]:
        """Yield the rows that a clause inserts."""
        values = ValueProjection.of(action.values, self._schema, self._source.columns)
        choice = _choice(self._actions.of(ClauseRows.NOT_MATCHED))
        yield from values.rows(
            self._engine,
            f"SELECT NULL::BIGINT AS id{values.sql} FROM {SOURCE} ANTI JOIN {_PAIRS} AS pair "
            f"ON {self._ordinal} = pair.ordinal WHERE {choice} = {action.number}",
        )


def _conditions(actions: Sequence[CheckedClause]) -> list[SqlExpression]:
    return [action.condition for action in actions if action.condition is not None]


def _choice(actions: Sequence[CheckedClause]) -> str:
    """Return the number of the first action whose condition is true, as an expression. It is NULL if there is
    none."""
    if not actions:
        return "NULL::TINYINT"
    tests = (
        f"WHEN {'TRUE' if action.condition is None else action.condition.sql} THEN {action.number}::TINYINT"
        for action in actions
    )
    return f"CASE {' '.join(tests)} END"
