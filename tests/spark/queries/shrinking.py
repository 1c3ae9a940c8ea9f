"""Makes a query that differs smaller, and the lives of its tables shorter, as long as it differs in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.spark.queries.lives import Life
from tests.spark.queries.selects import Query
from tests.spark.queries.sql import Sql, TableRef

TRIES = 300
"""How many smaller queries are tried, and half as many lives."""

PATIENCE_S = 120
"""For how long a query is made smaller, and for how long again its tables are: some queries take seconds."""


def shrunk(query: Query, differs: Callable[[Query], bool], tries: int = TRIES) -> Query:
    """Return a query none of whose parts can be left out, or what is left when tries are used up."""
    seen: set[Sql] = set()
    smaller, ends = True, time.monotonic() + PATIENCE_S
    while smaller and tries > 0 and time.monotonic() < ends:
        smaller = False
        for candidate in _smaller(query):
            if candidate.sql in seen or size(candidate) >= size(query):
                continue
            seen.add(candidate.sql)
            tries -= 1
            if differs(candidate):
                query, smaller = candidate, True
                break
            if tries <= 0 or time.monotonic() > ends:
                break
    return query


def size(query: Query) -> int:
    return query.sql.size + len(query.order) + (query.limit is not None) + (query.offset is not None)


def _smaller(query: Query) -> Iterator[Query]:
    if query.order or query.limit is not None or query.offset is not None:
        yield replace(query, order=(), total=False, limit=None, offset=None)
        yield replace(query, offset=None)
        yield replace(query, order=(), total=False)
    for body in query.body.smaller():
        yield replace(query, body=body)


def tables_of(query: Query) -> set[TableRef]:
    return {part.ref for part in query.sql.walk() if part.ref is not None}


def shorter(lives: list[Life]) -> Iterator[list[Life]]:
    """Yield lives with a step, or rows, left out. Versions that are read are those of kept steps, which stay."""
    for number, life in enumerate(lives):
        for place, step in enumerate(life.steps):
            ids = sorted(step.rows)
            for some_id in (ids[: len(ids) // 2], ids[len(ids) // 2 :]) if len(ids) > 1 else ():
                less = step.with_rows({id: step.rows[id] for id in some_id})
                steps = (*life.steps[:place], less, *life.steps[place + 1 :])
                yield [*lives[:number], replace(life, steps=steps), *lives[number + 1 :]]
        for place in reversed(range(len(life.steps))):
            if place in life.kept:
                continue
            kept_numbers = frozenset(number - (number > place) for number in life.kept)
            steps = life.steps[:place] + life.steps[place + 1 :]
            yield [*lives[:number], replace(life, steps=steps, kept=kept_numbers), *lives[number + 1 :]]
        for column in life.columns:
            columns = tuple(each_column for each_column in life.columns if each_column != column)
            yield [*lives[:number], replace(life, columns=columns), *lives[number + 1 :]]


def renumbered(query: Query, versions: dict[TableRef, TableRef]) -> Query:
    """Return the query over other versions of its tables."""

    def changed_sql(sql: Sql) -> Sql:
        parts = tuple(changed_sql(part) for part in sql.parts)
        return replace(sql, parts=parts, ref=sql.ref and versions.get(sql.ref, sql.ref))

    return replace(query, body=changed_sql(query.body), whole=query.whole and changed_sql(query.whole))
