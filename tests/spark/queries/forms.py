"""Which form a random query has: of many parts, or a plain one of which most is handed down to the scans; a sample; a
mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.spark.queries import values
from tests.spark.queries.scalars import Column, Scope
from tests.spark.queries.selects import Queries, Query, Table
from tests.spark.queries.sql import NOTHING, Sql, clause, value


def random_query(queries: Queries) -> Query:
    forms = {
        _scan: 12, _filtered_query: 6, _first_rows: 3, _top_rows: 4, _aggregate: 12, _join: 8, _join_of_some: 4,
        _sample: 3, _mistake: 2,
    }  # fmt: skip
    if queries.chance.random() < 0.6:
        return queries.query()
    return queries.chance.choices(list(forms), list(forms.values()))[0](queries)


def focused_query(queries: Queries, kind: str) -> Query:
    """Return a query in which what is handed down, of that kind, most often decides which rows come back."""
    return {
        "filters": _filtered_query, "limit": _first_rows, "top-n": _top_rows, "aggregates": _aggregate,
        "runtime filters": _join_of_some, "partitioning": _join, "columns": _scan,
    }[kind](queries)  # fmt: skip


def _table(queries: Queries, among: Sequence[Table] = ()) -> tuple[Table, Sql, Scope, list[Column]]:
    """Return a table, what stands after FROM, its columns, and those of them that say where its rows are."""
    table, alias = queries.chance.choice(among or queries.tables), queries.name("t")
    source = Sql(f"{{}} AS {alias}", (Sql("", ref=table.ref),), "relation", "table")
    present = {f"{alias}.{name}": other_texts for name, other_texts in table.present.items()}
    scope = Scope(tuple((f"{alias}.{name}", type) for name, type in table.columns), present=present)
    keys = [column for column in scope.columns if column[0].partition(".")[2] in table.keys]
    return table, source, scope, keys


def _where(queries: Queries, scope: Scope, keys: list[Column], often: float) -> Sql:
    chance = queries.chance
    if chance.random() >= often:
        return NOTHING
    favoured_scope = replace(scope, columns=tuple(keys)) if keys and chance.random() < 0.5 else scope
    bare = queries.scalars.bare(favoured_scope) if chance.random() < 0.6 else None
    condition = bare or queries.scalars.condition(favoured_scope, chance.choice([0, 0, 1]))
    return clause(" WHERE {}", condition, feature="where")


def _scan(queries: Queries) -> Query:
    """Some columns of a table, perhaps the first rows by an order."""
    _, source, scope, keys = _table(queries)
    body, columns = _selected(queries, source, scope, _where(queries, scope, keys, 0.5))
    return queries.limited(body, columns) if queries.chance.random() < 0.6 else Query(body, columns)


def _selected(queries: Queries, source: Sql, scope: Scope, where: Sql) -> tuple[Sql, tuple[Column, ...]]:
    chosen_columns = queries.chance.sample(
        scope.columns, min(len(scope.columns), queries.chance.choice([1, 2, 3, 9]))
    )
    outputs, types = (
        [value(type, name) for name, type in chosen_columns],
        [type for _, type in chosen_columns],
    )
    return queries.selected(NOTHING, types, outputs, source, (where,), "scan of a table")


def _filtered_query(queries: Queries) -> Query:
    """The rows of which one column is compared with a value, most often one at a bound of some file."""
    _, source, scope, keys = _table(queries)
    favoured_scope = replace(scope, columns=tuple(keys)) if keys and queries.chance.random() < 0.4 else scope
    condition = queries.scalars.bare(favoured_scope) or queries.scalars.condition(scope, 0)
    where = clause(" WHERE {}", condition, feature="where")
    return Query(*_selected(queries, source, scope, where))


def _first_rows(queries: Queries) -> Query:
    """So many rows, of a table that has more or just as many."""
    table, source, scope, _ = _table(queries)
    body, columns = _selected(queries, source, scope, NOTHING)
    return Query(body, columns, limit=queries.chance.randint(1, max(table.rows, 1)))


def _top_rows(queries: Queries) -> Query:
    """The first rows by one column, of which statistics of files say something."""
    chance = queries.chance
    table, source, scope, keys = _table(queries)
    able = [
        column
        for column in scope.columns
        if values.is_orderable(column[1]) and not values.is_nested(column[1])
    ]
    chosen_key = chance.choice(
        [key for key in keys if key in able] if keys and chance.random() < 0.3 else able
    )
    outputs = [chosen_key, *(column for column in scope.columns if column != chosen_key)][
        : chance.choice([1, 2, 4])
    ]
    types = [type for _, type in outputs]
    named_values = [value(type, name) for name, type in outputs]
    body, columns = queries.selected(NOTHING, types, named_values, source, (NOTHING,), "scan of a table")
    order = (("c0", chance.choice(["", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST"])),)
    return Query(body, columns, order, limit=chance.randint(1, max(table.rows, 1)))


def _aggregate(queries: Queries) -> Query:
    """Counts and extremes of a table, perhaps by what it is partitioned by."""
    chance = queries.chance
    _, source, scope, keys = _table(queries)
    able = [
        column for column in scope.columns if values.is_orderable(column[1]) and not values.is_real(column[1])
    ]
    outputs, types = [], []
    chosen_columns = chance.sample(able, min(len(able), chance.choice([1, 1, 2, 4])))
    if chance.random() < 0.5:
        # The ids, by which rows are deleted; alone, they are what metadata has most often.
        chosen_columns = [scope.columns[0], *chosen_columns][: chance.choice([1, 9])]
    for name, type in chosen_columns:
        word = chance.choice(["min", "max", "count"])
        types.append("bigint" if word == "count" else type)
        outputs.append(
            value(types[-1], f"{word}({name})", feature="count" if word == "count" else "min and max")
        )
    if chance.random() < 0.3:
        types.append("bigint")
        outputs.append(value("bigint", "count(*)", feature="count"))
    group = NOTHING
    keys = [column for column in keys if values.is_orderable(column[1])]
    if keys and chance.random() < 0.4:
        by = chance.sample(keys, chance.randint(1, len(keys)))
        outputs += [value(type, name) for name, type in by]
        types += [type for _, type in by]
        group = Sql(f" GROUP BY {', '.join(name for name, _ in by)}", feature="group by")
    where = _where(queries, scope, keys, 0.2)
    return Query(*queries.selected(NOTHING, types, outputs, source, (where, group), "aggregate of a table"))


def _join(queries: Queries) -> Query:
    """A join by what both tables may be partitioned by, of which one may have a filter."""
    return _joined_query(queries, filtered=0.6)


def _join_of_some(queries: Queries) -> Query:
    """A join with the rows that match a filter: what they are joined by is known when the other side is read."""
    return _joined_query(queries, filtered=1)


def _joined_query(queries: Queries, filtered: float) -> Query:
    chance = queries.chance
    first_table, left_sql, of_one, _ = _table(queries)
    alike = [table for table in queries.tables if set(table.keys) & set(first_table.keys)]
    other_table, right, of_other, _ = _table(queries, alike if chance.random() < 0.7 else ())
    able = [
        column for column in first_table.columns
        if column in other_table.columns and values.is_orderable(column[1]) and not values.is_real(column[1])
    ]  # fmt: skip
    of_both = [name for name, _ in able if name in first_table.keys and name in other_table.keys]
    of_any = [name for name, _ in able if name in first_table.keys or name in other_table.keys]
    name = chance.choice(of_both or of_any or ["id"])
    word = chance.choice(
        ["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
    )
    names = [scope.columns[0][0].partition(".")[0] for scope in (of_one, of_other)]
    on = f"{names[0]}.{name} = {names[1]}.{name}"
    source = Sql(f"{{}} {word} {{}} ON {on}", (left_sql, right), "relation", "join by partitions")
    is_half = word in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    where = _where(queries, of_one if is_half else chance.choice([of_one, of_other]), [], filtered)
    chosen_columns = of_one.columns[:3] + (() if is_half else of_other.columns[:3])
    outputs, types = (
        [value(type, text) for text, type in chosen_columns],
        [type for _, type in chosen_columns],
    )
    return Query(*queries.selected(NOTHING, types, outputs, source, (where,), "join of tables"))


def _sample(queries: Queries) -> Query:
    chance = queries.chance
    table = chance.choice(queries.tables)
    outputs = table.columns[:4]
    named_text = ", ".join(f"{name} AS c{place}" for place, (name, _) in enumerate(outputs))
    columns = tuple((f"c{place}", type) for place, (_, type) in enumerate(outputs))
    sql = Sql(f"SELECT {named_text} FROM {{}}", (Sql("", ref=table.ref),))
    part = chance.choice(["100 PERCENT", "0 PERCENT", "50 PERCENT", "30 PERCENT) REPEATABLE (7", "3 ROWS"])
    body = Sql(f"SELECT {named_text} FROM {{}} TABLESAMPLE ({part})", sql.parts, feature="sample")
    if part.startswith(("100", "0")):
        return Query(body, columns)
    return Query(body, columns, whole=sql)


def _mistake(queries: Queries) -> Query:
    """A query that fails for certain, and for its own sake: errors have to be the same ones."""
    table = queries.chance.choice(queries.tables)
    name = table.columns[0][0]
    text = queries.chance.choice([
        "SELECT nothing AS c0 FROM {}", f"SELECT {name} + struct(1) AS c0 FROM {{}}",
        f"SELECT {name} AS c0, count(*) FROM {{}}", f"SELECT max(count({name})) AS c0 FROM {{}}",
        f"SELECT (SELECT {name} FROM {{}} t2 WHERE id > -1 AND (SELECT count(*) FROM {{}}) > 1) AS c0",
        "SELECT CAST('x' AS INT) AS c0 FROM (SELECT count(*) FROM {})",
        "SELECT 1 / c0 AS c0 FROM (SELECT count(*) - count(*) AS c0 FROM {})",
    ])  # fmt: skip
    parts = (Sql("", ref=table.ref),) * text.count("{}")
    return Query(Sql(text, parts, feature="error"), (("c0", "int"),))
