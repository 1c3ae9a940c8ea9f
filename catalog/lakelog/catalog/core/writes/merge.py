"""A merge from Python: rows of the table and of a source that match are found by DuckDB, and changed in one commit.

First the pairs of rows that match are found, with what happens to each, from the columns that conditions name, of
files that may have such rows. Then the new rows are computed, each clause by itself, and written. Rows that stay as
they are are not read again, or, where files are rewritten, copied without DuckDB. Rule: what a merge does is decided
on one version; what it depends on goes along with its commit.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from lakelog.catalog.core.logs import TableHead, Token
from lakelog.catalog.core.parquet import Ingestible, stream_of
from lakelog.catalog.core.planning import Bound, bind
from lakelog.catalog.core.schema import Predicate
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes.computed_rows import ChangedRows, Computed, Projection, TargetRows
from lakelog.catalog.core.writes.identity_values import refresh_taken
from lakelog.catalog.core.writes.merge_clauses import (
    Action,
    Actions,
    Clause,
    Does,
    Rows,
    check_order,
    checked,
)
from lakelog.catalog.core.writes.merge_source import (
    KeysOfSource,
    Matching,
    Source,
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
"""Up to so many rows of a source, files are read where they may have one of its keys; of more, where these are in their
range."""

COMMITTED_VALUES_MAX = 10_000
"""Of so many rows at most, the keys go along with a commit that meets another one, as those of Spark's MERGE do."""

_PAIRS, _ALONE = "pairs", "alone"


def merge(
    head: TableHead,
    data: Ingestible,
    on: str | Sequence[str],
    clauses: Sequence[Clause],
    token: Token | None,
    *,
    is_unique: bool = False,
) -> TableHead:
    """Merge the rows of `data` and return the newest version. `is_unique`: a key may not occur twice in `data`.

    Reads the source once, and of the table the columns in conditions, of files that may have rows that match. Raises as
    `Table.merge`.
    """
    check_order(clauses)
    stream = stream_of(data)
    check_names(stream.schema)
    with SqlEngine.opened() as engine:
        actions = checked(engine, clauses, head.schema, stream.schema)
        how = matching(engine, on, head.schema, stream.schema)
        needed = {name for each in actions.all for part in each.expressions for name in part.source}
        source = load(engine, stream, needed | how.condition.source)
        engine.begin()
        if is_unique:
            check_unique(engine, how.keys)
        return _Merge(head, engine, source, how, actions).done(token)


class _Merge:
    def __init__(
        self, head: TableHead, engine: SqlEngine, source: Source, how: Matching, actions: Actions
    ) -> None:
        self._head = head
        self._engine = engine
        self._source = source
        self._how = how
        self._actions = actions
        self._schema = head.schema
        self._ordinal = f"{SOURCE}.{quoted_name(source.ordinal)}"
        taken = [*source.columns.names, *(field.name for field in self._schema.fields)]
        # What rows have beside columns of the user's, by the names in the table of pairs.
        self._own = {name: own_name(f"_{name}", taken) for name in ("file", "position", "id")}

    def done(self, token: Token | None) -> TableHead:
        head = self._head
        keys = KeysOfSource(self._engine, () if self._reads_all else self._how.keys, self._source)
        within = keys.within()
        few = keys.among(PRUNED_BY_VALUES_MAX)
        wanted = within if few is None else few
        head.tracked.transaction.note_rows_read(wanted)
        if self._actions.writes:
            refresh_taken(head)
        plan = head.plan_bound(self._bound(wanted))
        rows = TargetRows(head, plan.filter(pc.greater(plan["rows"], 0)), self._bound(within))
        self._find_pairs(rows)
        self._check_matches_once()
        changed = ChangedRows(head, rows, Operation.MERGE, self._positions(rows))
        for action in self._actions.all:
            if action.does is Does.UPDATE:
                changed.add_updated(self._updated(action, rows), action.values)
            elif action.does is Does.INSERT:
                changed.add_new(self._inserted(action))
        return changed.commit(within, lambda: keys.among(COMMITTED_VALUES_MAX), token)

    @property
    def _reads_all(self) -> bool:
        """Whether rows matter that match nothing."""
        return bool(self._actions.of(Rows.NOT_MATCHED_BY_SOURCE))

    def _bound(self, predicate: Predicate | None) -> Bound | None:
        return None if predicate is None else bind(predicate, self._schema, case_sensitive=True)

    # Which rows

    def _find_pairs(self, rows: TargetRows) -> None:
        """Make the table of pairs: a row's place, its id, the number of the source's row, and what happens to it."""
        matched = self._actions.of(Rows.MATCHED)
        self._from_target(
            _PAIRS,
            rows,
            [self._how.condition, *_conditions(matched)],
            f"{self._ordinal} AS ordinal, {_choice(matched)} AS action",
            f"JOIN {SOURCE} ON {self._how.condition.sql}",
        )
        alone = self._actions.of(Rows.NOT_MATCHED_BY_SOURCE)
        if alone:
            # In one join with the pairs, conditions beside keys would have DuckDB compare all rows with all.
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
        """Make a table of places and ids of rows, with what else is `selected`, from the columns that `parts` name."""
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

    # What becomes of them

    def _updated(self, action: Action, rows: TargetRows) -> Generator[Computed]:
        """Yield the rows that a clause updates, as they are to be, with their ids."""
        is_matched = action.rows is Rows.MATCHED
        chosen = f"action = {action.number} AND ordinal IS {'NOT ' if is_matched else ''}NULL"
        values = Projection.of(action.values, self._schema, self._source.columns)
        pairs = f"(SELECT * FROM {_PAIRS} WHERE {chosen})"
        both = f"{SOURCE} JOIN {pairs} AS pair ON {self._ordinal} = pair.ordinal"
        if not values.target:
            yield from values.rows(self._engine, f"SELECT pair.id AS id{values.sql} FROM {both}")
            return
        own = {name: quoted_name(each) for name, each in self._own.items()}
        there = f"SELECT pair.file AS {own['file']}, pair.position AS {own['position']}"
        # The rows of the table come as a stream, which the join sends past a table of the others.
        other = f"({there}, {SOURCE}.* FROM {both})" if is_matched else f"({there} FROM {pairs} AS pair)"
        at = rows.positions(self._engine.rows(f"SELECT file, position FROM {_PAIRS} WHERE {chosen}"))
        on = " AND ".join(f"{TARGET}.{own[each]} = {SOURCE}.{own[each]}" for each in ("file", "position"))
        stream = rows.stream(values.target, list(self._own.values()), only=at)
        with self._engine.stream("target_rows", *stream):
            yield from values.rows(
                self._engine,
                f"SELECT {TARGET}.{own['id']} AS id{values.sql} FROM {fenced('target_rows')} AS {TARGET} "
                f"JOIN {other} AS {SOURCE} ON {on}",
            )

    def _inserted(self, action: Action) -> Generator[Computed]:
        """Yield the rows that a clause inserts."""
        values = Projection.of(action.values, self._schema, self._source.columns)
        choice = _choice(self._actions.of(Rows.NOT_MATCHED))
        yield from values.rows(
            self._engine,
            f"SELECT NULL::BIGINT AS id{values.sql} FROM {SOURCE} ANTI JOIN {_PAIRS} AS pair "
            f"ON {self._ordinal} = pair.ordinal WHERE {choice} = {action.number}",
        )


def _conditions(actions: Sequence[Action]) -> list[SqlExpression]:
    return [each.condition for each in actions if each.condition is not None]


def _choice(actions: Sequence[Action]) -> str:
    """Return the number of the first action whose condition is true, as an expression; NULL where there is none."""
    if not actions:
        return "NULL::TINYINT"
    tests = (
        f"WHEN {'TRUE' if each.condition is None else each.condition.sql} THEN {each.number}::TINYINT"
        for each in actions
    )
    return f"CASE {' '.join(tests)} END"
