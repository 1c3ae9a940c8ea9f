"""What stands after FROM: tables, their past, subqueries, VALUES, joins of all kinds, lateral subqueries."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.spark.queries import values
from tests.spark.queries.scalars import Column, Scalars, Scope
from tests.spark.queries.sql import Sql, listed, value

if TYPE_CHECKING:
    from tests.spark.queries.selects import Table

Source = tuple[Sql, tuple[Column, ...], tuple[str, ...]]
"""A relation, its columns as it names them, and the aliases that have metadata columns."""

JOINS = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN",
         "CROSS JOIN"]  # fmt: skip


class Relations:
    """`select` makes subqueries, `name` names that no other part of the query has. `named` are the CTEs in sight."""

    def __init__(
        self, chance: random.Random, tables: Sequence[Table], scalars: Scalars,
        select: Callable[[list[str] | None, int, tuple[Column, ...]], tuple[Sql, tuple[Column, ...]]],
        name: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._chance = chance
        self._tables = tables
        self._scalars = scalars
        self._select = select
        self._name = name
        self.named: list[tuple[str, tuple[Column, ...]]] = []

    def source(self, depth: int, outer: tuple[Column, ...]) -> tuple[Sql, Scope]:
        """Return all that stands after FROM, and what can be named then."""
        sql, columns, metadata = self._relation(depth)
        joins = (
            self._chance.choices([0, 1, 2], [5, 4, 1])[0] if depth > 0 else self._chance.choice([0, 0, 0, 1])
        )
        for _ in range(joins):
            sql, columns, metadata = self._joined((sql, columns, metadata), depth)
        return sql, Scope(columns, outer, metadata)

    def _relation(self, depth: int) -> Source:
        chance = self._chance
        if depth > 0 and chance.random() < 0.2:
            query, columns = self._select(None, depth - 1, ())
            alias = self._name("q")
            if (
                all(values.is_orderable(type) and not values.is_real(type) for _, type in columns)
                and chance.random() < 0.4
            ):
                return self._limited(query, alias, columns)
            return self._as("({})", (query,), alias, columns, "derived table")
        if self.named and chance.random() < 0.6:
            name, columns = chance.choice(self.named)
            return self._as(name, (), self._name("q"), columns, "cte used")
        if chance.random() < 0.05:
            types = [chance.choice(["int", "string", "bigint"]) for _ in range(2)]
            rows = [f"({', '.join(values.literal(chance, type) for type in types)})" for _ in range(3)]
            columns = tuple((f"c{place}", type) for place, type in enumerate(types))
            alias = self._name("v")
            text = f"VALUES {', '.join(rows)} AS {alias}(c0, c1)"
            return Sql(text, kind="relation", feature="values"), _under(alias, columns), ()
        return self._table()

    def _limited(self, query: Sql, alias: str, columns: tuple[Column, ...]) -> Source:
        """The first rows of a query, by an order that leaves no choice."""
        direction = self._chance.choice(["", " DESC", " NULLS LAST"])
        order = ", ".join(name + direction for name, _ in columns)
        offset = self._chance.choice(["", "", " OFFSET 1"])
        tail = f"ORDER BY {order} LIMIT {self._chance.choice([0, 1, 3, 5, 9, 9])}{offset}"
        apart = f"(SELECT * FROM ({{}}) WHERE monotonically_increasing_id() >= 0 {tail}) AS {alias}"
        sql = Sql(f"({{}} {tail}) AS {alias}", (query,), "relation", "inner limit", (("unlimited", apart),))
        return sql, _under(alias, columns), ()

    def _as(
        self, text: str, parts: tuple[Sql, ...], alias: str, columns: tuple[Column, ...], feature: str
    ) -> Source:
        return Sql(f"{text} AS {alias}", parts, "relation", feature), _under(alias, columns), ()

    def _table(self) -> Source:
        table, alias = self._chance.choice(self._tables), self._name("t")
        leaf = Sql("", ref=table.ref)
        feature = "table" if table.ref.version is None else "time travel"
        if self._chance.random() < 0.06:
            return self._by_itself(table, leaf, alias)
        metadata = (alias,) if table.ref.version is None else ()
        return Sql(f"{{}} AS {alias}", (leaf,), "relation", feature), _under(alias, table.columns), metadata

    def _by_itself(self, table: Table, leaf: Sql, alias: str) -> Source:
        """A table that is put together by its metadata columns; of the other side, the table."""
        text = self._chance.choice([
            "(SELECT a.* FROM {} a JOIN {} b ON a._file = b._file AND a._pos = b._pos)",
            "(SELECT a.* FROM {} a JOIN {} b ON a._row_id = b._row_id)",
            "(SELECT a.* FROM {} a LEFT SEMI JOIN {} b ON a._file <=> b._file)",
            "(SELECT * FROM {} WHERE _file IN (SELECT _file FROM {}))",
            "(SELECT * FROM {} WHERE _row_id % 2 = 0 UNION ALL SELECT * FROM {} WHERE _row_id % 2 = 1)",
            "(SELECT * FROM {} WHERE _pos < 2 UNION ALL SELECT * FROM {} WHERE _pos >= 2)",
            "(SELECT * FROM {} a WHERE EXISTS (SELECT 1 FROM {} b WHERE b._version = a._version AND b._pos = a._pos))",
        ])  # fmt: skip
        sql = Sql(
            f"{text} AS {alias}", (leaf, leaf), "relation", "by metadata columns",
            (("plain", f"(SELECT a.* FROM {{}} a LEFT SEMI JOIN {{}} b ON true) AS {alias}"),),
        )  # fmt: skip
        return sql, _under(alias, table.columns), ()

    def _joined(self, left: Source, depth: int) -> Source:
        chance = self._chance
        sql, columns, metadata = left
        if depth > 0 and chance.random() < 0.15:
            query, inner = self._select(None, depth - 1, columns)
            alias = self._name("q")
            word = chance.choice(["JOIN LATERAL", "LEFT JOIN LATERAL", "CROSS JOIN LATERAL"])
            tail = "" if word.startswith("CROSS") else " ON true"
            text = f"{{}} {word} ({{}}) AS {alias}{tail}"
            return Sql(text, (sql, query), "relation", "lateral"), columns + _under(alias, inner), metadata
        right, other_pairs, more = self._relation(depth - 1)
        word = chance.choice(JOINS)
        if chance.random() < 0.12 and (shared_texts := _shared_texts(columns, other_pairs)):
            return self._using(left, (right, other_pairs, more), word, shared_texts)
        both = Sql(f"{{}} {word} {{}}", (sql, right), "relation", word.lower())
        if word == "CROSS JOIN":
            return both, columns + other_pairs, metadata + more
        on = self._on(Scope(columns), Scope(other_pairs), depth)
        joined_sql = Sql(f"{{}} {word} {{}} ON {{}}", (sql, right, on), "relation", word.lower())
        if word in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            return joined_sql, columns, metadata
        # What a join has no partner for has no place in a file either.
        keeps = metadata if word in ("JOIN", "LEFT JOIN") else ()
        return joined_sql, columns + other_pairs, keeps + (more if word in ("JOIN", "RIGHT JOIN") else ())

    def _on(self, left: Scope, right: Scope, depth: int) -> Sql:
        chance = self._chance
        pairs = [
            (a, b, t) for a, t in left.columns for b, u in right.columns if t == u and values.is_orderable(t)
        ]
        same_pairs = [pair for pair in pairs if pair[0].rpartition(".")[2] == pair[1].rpartition(".")[2]]
        if not pairs:
            return self._scalars.condition(Scope(left.columns + right.columns), 0)
        chosen_pairs = chance.sample(pairs, min(len(pairs), chance.choice([1, 1, 1, 2])))
        if same_pairs and chance.random() < 0.3:
            chosen_pairs = [pair for pair in same_pairs if pair[0].endswith(".id")] or same_pairs[:1]
        elif same_pairs and chance.random() < 0.8:
            chosen_pairs = chance.sample(same_pairs, min(len(same_pairs), chance.choice([1, 1, 1, 2])))
        tests = [
            value(
                "boolean",
                f"{a} {chance.choice(['=', '=', '=', '=', '<=>', '<'])} {b}",
                feature="join condition",
            )
            for a, b, _ in chosen_pairs
        ]
        if chance.random() < 0.25:
            tests.append(self._scalars.condition(Scope(left.columns + right.columns), 0))
        return listed(tests, " AND ")

    def _using(self, left: Source, right: Source, word: str, shared: list[str]) -> Source:
        """A join by names. Columns that both have are then named without a table."""
        chance = self._chance
        if word == "CROSS JOIN":
            word = "JOIN"
        alias, chosen_names = self._name("u"), chance.sample(shared, min(len(shared), chance.choice([1, 2])))
        names = {name.rpartition(".")[2]: type for name, type in left[1]}
        if chance.random() < 0.3:
            text, chosen_names, feature = (
                f"NATURAL {word.replace('LEFT SEMI', 'LEFT').replace('LEFT ANTI', 'LEFT')}",
                shared,
                "natural join",
            )
            inner = Sql(
                f"(SELECT {', '.join(chosen_names)} FROM {{}} {text} {{}}) AS {alias}",
                (left[0], right[0]),
                "relation",
                feature,
            )
        else:
            inner = Sql(
                f"(SELECT {', '.join(chosen_names)} FROM {{}} {word} {{}} USING ({', '.join(chosen_names)})) "
                f"AS {alias}",
                (left[0], right[0]), "relation", "join using",
            )  # fmt: skip
        return inner, tuple((f"{alias}.{name}", names[name]) for name in chosen_names), ()


def _shared_texts(left: tuple[Column, ...], right: tuple[Column, ...]) -> list[str]:
    """Return names that both sides have once, with one type that can be compared."""
    ours = [(name.rpartition(".")[2], type) for name, type in left]
    theirs = [(name.rpartition(".")[2], type) for name, type in right]
    return [
        name for name, type in ours
        if (name, type) in theirs and values.is_orderable(type)
        and [n for n, _ in ours].count(name) == 1 and [n for n, _ in theirs].count(name) == 1
    ]  # fmt: skip


def _under(alias: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple((f"{alias}.{name}", type) for name, type in columns)
