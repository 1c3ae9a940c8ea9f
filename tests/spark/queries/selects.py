"""Random queries of all forms over given tables: typed, with a name for each output, and with one right answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.spark.queries import values
from tests.spark.queries.relations import Relations
from tests.spark.queries.scalars import Column, Scalars, Scope
from tests.spark.queries.sql import NOTHING, Sql, TableRef, clause, listed, value

TYPES = ("boolean", "int", "bigint", "string", "date", "timestamp", "decimal(5,2)", "double")


@dataclass(frozen=True, slots=True)
class Table:
    """A table, or a version of it, as queries see it."""

    ref: TableRef
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    """Columns that it is, or was, partitioned, clustered or ordered by."""


@dataclass(frozen=True, slots=True)
class Query:
    """What runs on both sides: a body with outputs c0, c1 and so on, and perhaps an order and a limit.

    `order` has outputs with their directions. It is `total` if no two different rows are equal by it. With `sampled`, the
    body is a sample: which rows, each side chooses for itself among those of `whole`.
    """

    body: Sql
    columns: tuple[Column, ...]
    order: tuple[tuple[str, str], ...] = ()
    total: bool = False
    limit: int | None = None
    offset: int | None = None
    whole: Sql | None = None

    @property
    def sql(self) -> Sql:
        """The whole of it. A side that hands down no limit has one over rows that only it can filter."""
        if self.limit is None and self.offset is None and not self.order:
            return self.body
        tail = ""
        if self.order:
            tail += " ORDER BY " + ", ".join(f"{name} {direction}" for name, direction in self.order)
        if self.limit is not None:
            tail += f" LIMIT {self.limit}"
        if self.offset is not None:
            tail += f" OFFSET {self.offset}"
        apart = f"SELECT * FROM ({{}}) WHERE monotonically_increasing_id() >= 0{tail}"
        feature = " ".join(
            word
            for word, there in (
                ("order by", self.order), ("limit", self.limit is not None), ("offset", self.offset is not None)
            )
            if there
        )  # fmt: skip
        return Sql("{}" + tail, (self.body,), feature=feature, others=(("unlimited", apart),))


@dataclass
class Queries:
    """Makes queries over `tables`; all that is random comes from `chance`."""

    chance: random.Random
    tables: Sequence[Table]
    names: int = 0
    scalars: Scalars = field(init=False)
    relations: Relations = field(init=False)

    def __post_init__(self) -> None:
        self.scalars = Scalars(self.chance, self._subquery)
        self.relations = Relations(self.chance, self.tables, self.scalars, self.select, self._name)

    def _name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def query(self) -> Query:
        chance = self.chance
        depth = chance.choice([1, 1, 2, 2, 3])
        if chance.random() < 0.04:
            return self._sample()
        if chance.random() < 0.03:
            return Query(self._wrong(), (("c0", "int"),))
        if chance.random() < 0.3:
            return self._direct()
        body, columns = self.any(None, depth, ())
        return self._limited(body, columns) if chance.random() < 0.35 else Query(body, columns)

    def _limited(self, body: Sql, columns: tuple[Column, ...]) -> Query:
        chance = self.chance
        limit = chance.choice([0, 1, 2, 3, 5, 5, 12, 20, None])
        offset = chance.choice([None, None, None, 0, 1, 3])
        able = [(name, type) for name, type in columns if values.is_orderable(type)]
        if not able or chance.random() < 0.3:
            return Query(
                body, columns, limit=limit if limit is not None or offset is not None else 4, offset=offset
            )
        chance.shuffle(able)
        total = chance.random() < 0.6
        chosen = able if total else able[: chance.choice([1, 1, 2])]
        order = []
        for name, type in chosen:
            direction = chance.choice(["", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST"])
            order.append((name, direction))
            if values.is_real(type) and total:
                order.append((f"CAST({name} AS STRING)", ""))  # zero is of two kinds
        return Query(body, columns, tuple(order), total and len(able) == len(columns), limit, offset)

    def _direct(self) -> Query:
        """Return a query of one table, of which most is handed down to the scan."""
        chance = self.chance
        table, alias = chance.choice(self.tables), self._name("t")
        source = Sql(f"{{}} AS {alias}", (Sql("", ref=table.ref),), "relation", "table")
        scope = Scope(tuple((f"{alias}.{name}", type) for name, type in table.columns))
        keys = [column for column in scope.columns if column[0].partition(".")[2] in table.keys]
        where = NOTHING
        if chance.random() < 0.5:
            favoured = Scope(tuple(keys) or scope.columns) if chance.random() < 0.5 else scope
            where = clause(
                " WHERE {}", self.scalars.condition(favoured, chance.choice([0, 0, 1])), feature="where"
            )
        if chance.random() < 0.5:
            chosen = chance.sample(scope.columns, min(len(scope.columns), chance.choice([1, 2, 3, 9])))
            outputs, types = [value(type, name) for name, type in chosen], [type for _, type in chosen]
            body, columns = self._selected(NOTHING, types, outputs, source, (where,), "scan of a table")
            return self._limited(body, columns) if chance.random() < 0.6 else Query(body, columns)
        able = [
            column
            for column in scope.columns
            if values.is_orderable(column[1]) and not values.is_real(column[1])
        ]
        outputs, types = [], []
        for name, type in chance.sample(able, min(len(able), chance.choice([1, 1, 2, 4]))):
            word = chance.choice(["min", "max", "count"])
            types.append("bigint" if word == "count" else type)
            outputs.append(
                value(types[-1], f"{word}({name})", feature="min and max" if word != "count" else "count")
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
        if chance.random() < 0.7:
            where = NOTHING
        return Query(*self._selected(NOTHING, types, outputs, source, (where, group), "aggregate of a table"))

    def any(
        self, types: list[str] | None, depth: int, outer: tuple[Column, ...]
    ) -> tuple[Sql, tuple[Column, ...]]:
        """Return a query of whatever form; with `types`, its outputs have these."""
        chance = self.chance
        match chance.randrange(12) if depth > 0 else 11:
            case 0 | 1:
                return self._union(types, depth, outer)
            case 2:
                return self._with(types, depth, outer)
        return self.select(types, depth, outer)

    def _union(
        self, types: list[str] | None, depth: int, outer: tuple[Column, ...]
    ) -> tuple[Sql, tuple[Column, ...]]:
        chance = self.chance
        word = chance.choice(["UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        if types is None:
            types = [chance.choice(TYPES) for _ in range(chance.randint(1, 3))]
        if word != "UNION ALL" and any(not values.is_orderable(type) for type in types):
            word = "UNION ALL"
        left, columns = self.any(types, depth - 1, outer)
        right, _ = self.any(types, depth - 1, outer)
        return Sql(f"({{}}) {word} ({{}})", (left, right), _kind(types), word.lower()), columns

    def _with(
        self, types: list[str] | None, depth: int, outer: tuple[Column, ...]
    ) -> tuple[Sql, tuple[Column, ...]]:
        inner, columns = self.any(None, depth - 1, ())
        name = self._name("w")
        self.relations.named.append((name, columns))
        body, outputs = self.select(types, depth, outer)
        self.relations.named.pop()
        return Sql(
            f"WITH {name} AS ({{}}) {{}}", (inner, body), _kind([t for _, t in outputs]), "cte"
        ), outputs

    def select(
        self, types: list[str] | None, depth: int, outer: tuple[Column, ...]
    ) -> tuple[Sql, tuple[Column, ...]]:
        source, scope = self.relations.source(depth, outer)
        where = NOTHING
        if self.chance.random() < 0.5:
            where = clause(" WHERE {}", self.scalars.condition(scope, depth), feature="where")
        match self.chance.randrange(10):
            case 0 | 1:
                return self._grouped(types, source, where, scope, depth)
            case 2:
                return self._total(types, source, where, scope, depth)
            case 3 if types is None or all(not values.is_nested(type) for type in types):
                return self._windowed(types, source, where, scope, depth)
        return self._plain(types, source, where, scope, depth)

    def _types(self, scope: Scope, most: int = 4) -> list[str]:
        present = [type for _, type in scope.columns] or list(TYPES)
        return [
            self.chance.choice(present if self.chance.random() < 0.7 else TYPES)
            for _ in range(self.chance.randint(1, most))
        ]

    def _plain(
        self, types: list[str] | None, source: Sql, where: Sql, scope: Scope, depth: int
    ) -> tuple[Sql, tuple[Column, ...]]:
        chance = self.chance
        if types is None:
            types = self._types(scope)
        constant = chance.random() < 0.08
        outputs = [
            self.scalars.literal(type, 0.1)
            if constant
            else self.scalars.value(type, scope, chance.choice([0, 0, depth]))
            for type in types
        ]
        distinct = NOTHING
        if chance.random() < 0.12 and all(map(values.is_orderable, types)):
            distinct = clause("DISTINCT ", feature="distinct")
        feature = "constant outputs" if constant else "select"
        return self._selected(distinct, types, outputs, source, (where,), feature)

    def _selected(
        self,
        distinct: Sql,
        types: list[str],
        outputs: list[Sql],
        source: Sql,
        rest: tuple[Sql, ...],
        feature: str,
    ) -> tuple[Sql, tuple[Column, ...]]:
        named = [Sql(f"{{}} AS c{place}", (output,)) for place, output in enumerate(outputs)]
        text = "SELECT {}{} FROM {}" + "{}" * len(rest)
        sql = Sql(text, (distinct, listed(named), source, *rest), _kind(types), feature)
        return sql, tuple((f"c{place}", type) for place, type in enumerate(types))

    # Aggregates

    def aggregate(self, type: str, scope: Scope, depth: int) -> Sql:
        """Return an aggregate of that type which does not depend on the order of rows."""
        chance = self.chance

        def of(other: str) -> Sql:
            return self.scalars.value(other, scope, chance.choice([0, 0, 0, depth - 1]))

        choices = []
        if type == "bigint":
            some = chance.choice([each for _, each in scope.columns if values.is_orderable(each)] or ["int"])
            choices = [
                lambda: value(type, "count(*)", feature="count"),
                lambda: value(type, "count(1)", feature="count"),
                lambda: value(type, "count({})", of(some), feature="count"),
                lambda: value(type, "count(DISTINCT {})", of(some), feature="distinct aggregate"),
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

    def _total(
        self, types: list[str] | None, source: Sql, where: Sql, scope: Scope, depth: int
    ) -> tuple[Sql, tuple[Column, ...]]:
        """An aggregate without groups: one row, whatever is in the table, unless HAVING has none."""
        chance = self.chance
        types = (
            [t if values.is_orderable(t) else "int" for t in self._types(scope, 3)]
            if types is None
            else types
        )
        constant = chance.random() < 0.25
        outputs = []
        for type in types:
            able = values.is_orderable(type) and not constant and chance.random() < 0.9
            outputs.append(self.aggregate(type, scope, depth) if able else self.scalars.literal(type, 0.1))
        condition = self._having((), scope, depth)
        having = clause(" HAVING {}", condition, feature="having without group by")
        if chance.random() < 0.6 and any(output.text.endswith(")") for output in outputs) and not constant:
            having = NOTHING
        feature = "global aggregate of constants" if constant else "global aggregate"
        return self._selected(NOTHING, types, outputs, source, (where, having), feature)

    def _having(self, keys: tuple[Column, ...], scope: Scope, depth: int) -> Sql:
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
        left = self.aggregate("bigint", scope, depth)
        return value(
            "boolean", f"{{}} {chance.choice(['>', '<=', '='])} {chance.randrange(4)}", left, feature="having"
        )

    def _grouped(
        self, types: list[str] | None, source: Sql, where: Sql, scope: Scope, depth: int
    ) -> tuple[Sql, tuple[Column, ...]]:
        chance = self.chance
        keys = [column for column in scope.columns if values.is_orderable(column[1])]
        keys = chance.sample(keys, min(len(keys), chance.choice([1, 1, 2, 3])))
        if not keys:
            return self._total(types, source, where, scope, depth)
        named = [value(type, name) for name, type in keys]
        words = ", ".join(name for name, _ in keys)
        first, last = keys[0][0], keys[-1][0]
        form, feature = chance.choices([
            (f"{words}", "group by"),
            (f"GROUPING SETS (({words}), ({first}), ())", "grouping sets"),
            (f"GROUPING SETS ((), ())", "grouping sets"),
            (f"GROUPING SETS (({first}), ({last}), ({words}))", "grouping sets"),
            (f"ROLLUP ({words})", "rollup"),
            (f"CUBE ({words})", "cube"),
        ], [6, 1, 0.3, 1, 1, 1])[0]  # fmt: skip
        used = tuple(keys) if form != "GROUPING SETS ((), ())" else ()
        if feature != "group by":
            # Spark loses metadata columns there, those of its own files too.
            scope = replace(scope, metadata=())
        if types is None:
            outputs = named if used and chance.random() < 0.9 else []
            types = [type for _, type in keys] if outputs else []
            more = [
                chance.choice(["bigint", "bigint", "boolean", keys[0][1]])
                for _ in range(chance.randint(1, 2))
            ]
            outputs = outputs + [self.aggregate(type, scope, depth) for type in more]
            types = types + more
        else:
            outputs = [self._of_group(type, used, scope, depth) for type in types]
        having = NOTHING
        if chance.random() < 0.3:
            having = clause(" HAVING {}", self._having(used, scope, depth), feature="having with group by")
        group = Sql(f" GROUP BY {form}", feature=feature)
        return self._selected(NOTHING, types, outputs, source, (where, group, having), "grouped")

    def _of_group(self, type: str, keys: tuple[Column, ...], scope: Scope, depth: int) -> Sql:
        able = [name for name, of in keys if of == type]
        if able and self.chance.random() < 0.6:
            return value(type, self.chance.choice(able))
        if values.is_orderable(type):
            return self.aggregate(type, scope, depth)
        return self.scalars.literal(type, 0.1)

    # Windows

    def _windowed(
        self, types: list[str] | None, source: Sql, where: Sql, scope: Scope, depth: int
    ) -> tuple[Sql, tuple[Column, ...]]:
        types = self._types(scope, 3) if types is None else types
        outputs = [
            self._window(type, scope)
            if type in ("bigint", "int", "string", "date")
            else self.scalars.value(type, scope, 0)
            for type in types
        ]
        return self._selected(NOTHING, types, outputs, source, (where,), "windowed")

    def _window(self, type: str, scope: Scope) -> Sql:
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
        made = chance.choice([
            f"rank() OVER ({partition}{by})", f"dense_rank() OVER ({partition}{by})",
            f"row_number() OVER ({partition}{total})", f"ntile(3) OVER ({total})",
            f"count(*) OVER ({partition or by})", f"count({able[0][0]}) OVER ({partition}{by})",
            f"sum(1) OVER ({partition}{by} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        ])  # fmt: skip
        return value(type, f"CAST({made} AS {type})", feature="window")

    # Queries inside of others, and those of their own kind

    def _subquery(self, kind: str, types: list[str], scope: Scope, depth: int) -> Sql | None:
        if depth < 0:
            return None
        outer = scope.columns if self.chance.random() < 0.5 else ()
        depth = min(depth, 1)
        if kind == "scalar":
            if not values.is_orderable(types[0]):
                return None
            source, inner = self.relations.source(0, outer)
            where = NOTHING
            if self.chance.random() < 0.7:
                where = clause(" WHERE {}", self.scalars.condition(inner, depth), feature="where")
            found = self.aggregate(types[0], Scope(inner.columns), 0)
            return Sql("SELECT {} FROM {}{}", (found, source, where), _kind(types))
        if kind == "exists":
            return self.select(None, depth, outer)[0]
        return self.any(types, depth, outer)[0]

    def _sample(self) -> Query:
        chance = self.chance
        table = chance.choice(self.tables)
        outputs = table.columns[:4]
        named = ", ".join(f"{name} AS c{place}" for place, (name, _) in enumerate(outputs))
        columns = tuple((f"c{place}", type) for place, (_, type) in enumerate(outputs))
        whole = Sql(f"SELECT {named} FROM {{}}", (Sql("", ref=table.ref),))
        part = chance.choice(
            ["100 PERCENT", "0 PERCENT", "50 PERCENT", "30 PERCENT) REPEATABLE (7", "3 ROWS"]
        )
        body = Sql(f"SELECT {named} FROM {{}} TABLESAMPLE ({part})", whole.parts, feature="sample")
        if part.startswith(("100", "0")):
            return Query(body, columns)
        return Query(body, columns, whole=whole)

    def _wrong(self) -> Sql:
        """A query that fails for certain, and for its own sake: errors have to be the same ones."""
        table = self.chance.choice(self.tables)
        name = table.columns[0][0]
        text = self.chance.choice([
            f"SELECT nothing AS c0 FROM {{}}", f"SELECT {name} + struct(1) AS c0 FROM {{}}",
            f"SELECT {name} AS c0, count(*) FROM {{}}", f"SELECT max(count({name})) AS c0 FROM {{}}",
            f"SELECT (SELECT {name} FROM {{}} t2 WHERE id > -1 AND (SELECT count(*) FROM {{}}) > 1) AS c0",
            "SELECT CAST('x' AS INT) AS c0 FROM (SELECT count(*) FROM {})",
            "SELECT 1 / c0 AS c0 FROM (SELECT count(*) - count(*) AS c0 FROM {})",
        ])  # fmt: skip
        return Sql(text, (Sql("", ref=table.ref),) * text.count("{}"), feature="error")


def _kind(types: Sequence[str]) -> str:
    return f"query {', '.join(types)}"
