"""Random aggregates and window functions, such that the order of rows does not matter.

Floating point is neither summed nor averaged, and what a window numbers is ordered by all that can be distinguished.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.spark.queries import values
from tests.spark.queries.scalars import Column, Scalars, Scope
from tests.spark.queries.sql import NOTHING, Sql, clause, value


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Over the columns of a scope; `scalars` makes what is aggregated."""

    chance: random.Random
    scalars: Scalars

    def one(self, type: str, scope: Scope, depth: int) -> Sql:
        """Return an aggregate of that type which does not depend on the order of rows."""
        chance = self.chance

        def of(other: str) -> Sql:
            return self.scalars.value(other, scope, chance.choice([0, 0, 0, depth - 1]))

        choices = []
        if type == "bigint":
            some_text = chance.choice(
                [text for _, text in scope.columns if values.is_orderable(text)] or ["int"]
            )
            choices = [
                lambda: value(type, "count(*)", feature="count"),
                lambda: value(type, "count(1)", feature="count"),
                lambda: value(type, "count({})", of(some_text), feature="count"),
                lambda: value(type, "count(DISTINCT {})", of(some_text), feature="distinct aggregate"),
                lambda: value(type, "sum({})", of(chance.choice(["int", "smallint"])), feature="sum"),
                lambda: value(type, "sum(DISTINCT {})", of("int"), feature="distinct aggregate"),
                lambda: value(type, "count_if({})", of("boolean"), feature="count"),
                lambda: value(type, "approx_count_distinct({})", of("string"), feature="approximate count"),
            ]
        if type == "boolean":
            choices = [
                lambda: value(type, "bool_and({})", of(type), feature="boolean aggregate"),
                lambda: value(type, "bool_or({})", of(type), feature="boolean aggregate"),
                lambda: value(type, "(max({}) IS NOT NULL)", of("int"), feature="min and max"),
                lambda: value(type, "(count(*) > 3)", feature="count"),
            ]
        if type == "double":
            choices = [lambda: value(type, "avg({})", of("int"), feature="avg")]
        if type == "decimal(5,2)":
            choices = [lambda: value(type, "try_cast(sum({}) AS DECIMAL(5,2))", of(type), feature="sum")]
        if type == "array<int>":
            choices = [lambda: value(type, "sort_array(collect_list({}))", of("int"), feature="collect")]
        if values.is_orderable(type) and (not choices or chance.random() < 0.4):
            word, zero = chance.choice(["min", "max"]), " + 0" if values.is_real(type) else ""
            filter = clause(
                " FILTER (WHERE {})", self.scalars.condition(scope, 0), feature="filter of aggregate"
            )
            inner = (of(type), filter if chance.random() < 0.15 else NOTHING)
            # A zero that is the least may be the one or the other.
            text = f"({word}({{}}){{}}{zero})" if zero else f"{word}({{}}){{}}"
            if type == "float":
                text = f"CAST({text} AS FLOAT)"
            return value(type, text, *inner, feature="min and max")
        if not choices:
            return value(type, "max({})", self.scalars.literal(type, 1), feature="min and max")
        return chance.choice(choices)()

    def having(self, keys: tuple[Column, ...], scope: Scope, depth: int) -> Sql:
        chance = self.chance
        match chance.randrange(4):
            case 0 if keys:
                return self.scalars.condition(Scope(keys), 0)
            case 1:
                return value(
                    "boolean",
                    chance.choice(["true", "1 < 2", "1 > 2", "NULL IS NULL"]),
                    feature="constant having",
                )
        remaining_sql = self.one("bigint", scope, depth)
        return value(
            "boolean",
            f"{{}} {chance.choice(['>', '<=', '='])} {chance.randrange(4)}",
            remaining_sql,
            feature="having",
        )

    def of_group(self, type: str, keys: tuple[Column, ...], scope: Scope, depth: int) -> Sql:
        able = [name for name, of in keys if of == type]
        if able and self.chance.random() < 0.6:
            return value(type, self.chance.choice(able))
        if values.is_orderable(type):
            return self.one(type, scope, depth)
        return self.scalars.literal(type, 0.1)

    def window(self, type: str, scope: Scope) -> Sql:
        chance = self.chance
        able = [(name, of) for name, of in scope.columns if values.is_orderable(of)]
        if not able:
            return self.scalars.literal(type, 0.1)
        chance.shuffle(able)
        partition = f"PARTITION BY {able[0][0]} " if chance.random() < 0.6 else ""
        by = f"ORDER BY {able[-1][0]} {chance.choice(['', 'DESC', 'NULLS LAST'])}"
        texts = [name for name, of in able if values.is_real(of)]
        all_of_them = ", ".join([*(name for name, _ in able), *(f"CAST({name} AS STRING)" for name in texts)])
        total = f"ORDER BY {all_of_them}"
        if type in ("string", "date"):
            inner = self.scalars.value(type, scope, 0)
            word = chance.choice(["min({})", "max({})"])
            # An order that is total where all columns have one: what lag sees is then one and the same.
            if len(able) == len(scope.columns) and chance.random() < 0.5:
                return value(type, f"lag({{}}) OVER ({partition}{total})", inner, feature="window")
            return value(type, f"{word} OVER ({partition}{by})", inner, feature="window")
        text = chance.choice([
            f"rank() OVER ({partition}{by})", f"dense_rank() OVER ({partition}{by})",
            f"row_number() OVER ({partition}{total})", f"ntile(3) OVER ({total})",
            f"count(*) OVER ({partition or by})", f"count({able[0][0]}) OVER ({partition}{by})",
            f"sum(1) OVER ({partition}{by} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        ])  # fmt: skip
        return value(type, f"CAST({text} AS {type})", feature="window")
