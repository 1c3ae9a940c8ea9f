"""Which form a random query has: of many parts, or a plain one of which most is handed down to the scans; a sample; a
mistake."""

from __future__ import annotations

from tests.spark.queries import values
from tests.spark.queries.scalars import Column, Scope
from tests.spark.queries.selects import Queries, Query, Table
from tests.spark.queries.sql import NOTHING, Sql, clause, value


def random_query(queries: Queries) -> Query:
    forms = {_scan: 16, _aggregate: 12, _join: 8, _sample: 3, _mistake: 2}
    if queries.chance.random() < 0.6:
        return queries.query()
    return queries.chance.choices(list(forms), list(forms.values()))[0](queries)


def _table(queries: Queries) -> tuple[Table, Sql, Scope, list[Column]]:
    """Return a table, what stands after FROM, its columns, and those of them that say where its rows are."""
    table, alias = queries.chance.choice(queries.tables), queries.name("t")
    source = Sql(f"{{}} AS {alias}", (Sql("", ref=table.ref),), "relation", "table")
    scope = Scope(tuple((f"{alias}.{name}", type) for name, type in table.columns))
    keys = [column for column in scope.columns if column[0].partition(".")[2] in table.keys]
    return table, source, scope, keys


def _where(queries: Queries, scope: Scope, keys: list[Column], often: float) -> Sql:
    chance = queries.chance
    if chance.random() >= often:
        return NOTHING
    favoured = Scope(tuple(keys)) if keys and chance.random() < 0.5 else scope
    bare = queries.scalars.bare(favoured) if chance.random() < 0.6 else None
    condition = bare or queries.scalars.condition(favoured, chance.choice([0, 0, 1]))
    return clause(" WHERE {}", condition, feature="where")


def _scan(queries: Queries) -> Query:
    """Some columns of a table, perhaps the first rows by an order."""
    chance = queries.chance
    _, source, scope, keys = _table(queries)
    where = _where(queries, scope, keys, 0.5)
    chosen = chance.sample(scope.columns, min(len(scope.columns), chance.choice([1, 2, 3, 9])))
    outputs, types = [value(type, name) for name, type in chosen], [type for _, type in chosen]
    body, columns = queries.selected(NOTHING, types, outputs, source, (where,), "scan of a table")
    return queries.limited(body, columns) if chance.random() < 0.6 else Query(body, columns)


def _aggregate(queries: Queries) -> Query:
    """Counts and extremes of a table, perhaps by what it is partitioned by."""
    chance = queries.chance
    _, source, scope, keys = _table(queries)
    able = [
        column for column in scope.columns if values.is_orderable(column[1]) and not values.is_real(column[1])
    ]
    outputs, types = [], []
    for name, type in chance.sample(able, min(len(able), chance.choice([1, 1, 2, 4]))):
        word = chance.choice(["min", "max", "count"])
        types.append("bigint" if word == "count" else type)
        outputs.append(
            value(types[-1], f"{word}({name})", feature="count" if word == "count" else "min and max")
        )
    if chance.random() < 0.5:
        types.append("bigint")
        outputs.append(value("bigint", "count(*)", feature="count"))
    group = NOTHING
    keys = [column for column in keys if values.is_orderable(column[1])]
    if keys and chance.random() < 0.6:
        by = chance.sample(keys, chance.randint(1, len(keys)))
        outputs += [value(type, name) for name, type in by]
        types += [type for _, type in by]
        group = Sql(f" GROUP BY {', '.join(name for name, _ in by)}", feature="group by")
    where = _where(queries, scope, keys, 0.2)
    return Query(*queries.selected(NOTHING, types, outputs, source, (where, group), "aggregate of a table"))


def _join(queries: Queries) -> Query:
    """A join by what both tables may be partitioned by, of which one may have a filter."""
    chance = queries.chance
    one, left, of_one, _ = _table(queries)
    other, right, of_other, _ = _table(queries)
    able = [
        column for column in one.columns
        if column in other.columns and values.is_orderable(column[1]) and not values.is_real(column[1])
    ]  # fmt: skip
    favoured = [name for name, _ in able if name in one.keys or name in other.keys]
    name = chance.choice(favoured or ["id"])
    word = chance.choice(
        ["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
    )
    names = [scope.columns[0][0].partition(".")[0] for scope in (of_one, of_other)]
    on = f"{names[0]}.{name} = {names[1]}.{name}"
    source = Sql(f"{{}} {word} {{}} ON {on}", (left, right), "relation", "join by partitions")
    is_half = word in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    where = _where(queries, of_one if is_half else chance.choice([of_one, of_other]), [], 0.6)
    chosen = of_one.columns[:3] + (() if is_half else of_other.columns[:3])
    outputs, types = [value(type, each) for each, type in chosen], [type for _, type in chosen]
    return Query(*queries.selected(NOTHING, types, outputs, source, (where,), "join of tables"))


def _sample(queries: Queries) -> Query:
    chance = queries.chance
    table = chance.choice(queries.tables)
    outputs = table.columns[:4]
    named = ", ".join(f"{name} AS c{place}" for place, (name, _) in enumerate(outputs))
    columns = tuple((f"c{place}", type) for place, (_, type) in enumerate(outputs))
    whole = Sql(f"SELECT {named} FROM {{}}", (Sql("", ref=table.ref),))
    part = chance.choice(["100 PERCENT", "0 PERCENT", "50 PERCENT", "30 PERCENT) REPEATABLE (7", "3 ROWS"])
    body = Sql(f"SELECT {named} FROM {{}} TABLESAMPLE ({part})", whole.parts, feature="sample")
    if part.startswith(("100", "0")):
        return Query(body, columns)
    return Query(body, columns, whole=whole)


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
