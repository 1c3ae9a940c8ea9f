"""Random queries of all forms over given tables: typed, with a name for each output, and with one right answer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.spark.queries import values
from tests.spark.queries.aggregates import Aggregates
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

    present: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Literals of the values that are in a column, which are the bounds of its files."""

    rows: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """What runs on both sides: a body with outputs c0, c1 and so on, and perhaps an order and a limit.

    `order` has outputs with their directions. It is `total` if no two different rows are equal by it. With `whole`, the
    body is a sample: each side chooses for itself among the rows of that.
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
            for word, other_order in (
                ("order by", self.order), ("limit", self.limit is not None), ("offset", self.offset is not None)
            )
            if other_order
        )  # fmt: skip
        return Sql("{}" + tail, (self.body,), feature=feature, others=(("unlimited", apart),))


@dataclass
class Queries:
    """Makes queries over `tables`; all that is random comes from `chance`."""

    chance: random.Random
    tables: Sequence[Table]
    names: int = 0
    scalars: Scalars = field(init=False)
    aggregates: Aggregates = field(init=False)
    relations: Relations = field(init=False)

    def __post_init__(self) -> None:
        self.scalars = Scalars(self.chance, self._subquery)
        self.aggregates = Aggregates(self.chance, self.scalars)
        self.relations = Relations(self.chance, self.tables, self.scalars, self.select, self.name)

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def query(self) -> Query:
        """Return a query of many parts."""
        chance = self.chance
        depth = chance.choice([1, 1, 2, 2, 3])
        body, columns = self.any(None, depth, ())
        return self.limited(body, columns) if chance.random() < 0.35 else Query(body, columns)

    def limited(self, body: Sql, columns: tuple[Column, ...]) -> Query:
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
        chosen_pairs = able if total else able[: chance.choice([1, 1, 2])]
        order = []
        for name, type in chosen_pairs:
            direction = chance.choice(["", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST"])
            order.append((name, direction))
            if values.is_real(type) and total:
                order.append((f"CAST({name} AS STRING)", ""))  # zero is of two kinds
        return Query(body, columns, tuple(order), total and len(able) == len(columns), limit, offset)

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
        left_sql, columns = self.any(types, depth - 1, outer)
        right, _ = self.any(types, depth - 1, outer)
        return Sql(f"({{}}) {word} ({{}})", (left_sql, right), _kind(types), word.lower()), columns

    def _with(
        self, types: list[str] | None, depth: int, outer: tuple[Column, ...]
    ) -> tuple[Sql, tuple[Column, ...]]:
        inner, columns = self.any(None, depth - 1, ())
        name = self.name("w")
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
        return self.selected(distinct, types, outputs, source, (where,), feature)

    def selected(
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

    # Groups

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
            outputs.append(
                self.aggregates.one(type, scope, depth) if able else self.scalars.literal(type, 0.1)
            )
        condition = self.aggregates.having((), scope, depth)
        having_clause = clause(" HAVING {}", condition, feature="having without group by")
        if chance.random() < 0.6 and any(output.text.endswith(")") for output in outputs) and not constant:
            having_clause = NOTHING
        feature = "global aggregate of constants" if constant else "global aggregate"
        return self.selected(NOTHING, types, outputs, source, (where, having_clause), feature)

    def _grouped(
        self, types: list[str] | None, source: Sql, where: Sql, scope: Scope, depth: int
    ) -> tuple[Sql, tuple[Column, ...]]:
        chance = self.chance
        keys = [column for column in scope.columns if values.is_orderable(column[1])]
        keys = chance.sample(keys, min(len(keys), chance.choice([1, 1, 2, 3])))
        if not keys:
            return self._total(types, source, where, scope, depth)
        named_values = [value(type, name) for name, type in keys]
        words = ", ".join(name for name, _ in keys)
        first, last = keys[0][0], keys[-1][0]
        form, feature = chance.choices([
            (f"{words}", "group by"),
            (f"GROUPING SETS (({words}), ({first}), ())", "grouping sets"),
            ("GROUPING SETS ((), ())", "grouping sets"),
            (f"GROUPING SETS (({first}), ({last}), ({words}))", "grouping sets"),
            (f"ROLLUP ({words})", "rollup"),
            (f"CUBE ({words})", "cube"),
        ], [6, 1, 0.3, 1, 1, 1])[0]  # fmt: skip
        used_keys = tuple(keys) if form != "GROUPING SETS ((), ())" else ()
        if feature != "group by":
            # Spark loses metadata columns there, those of its own files too.
            scope = replace(scope, metadata=())
        if types is None:
            outputs = named_values if used_keys and chance.random() < 0.9 else []
            types = [type for _, type in keys] if outputs else []
            more = [
                chance.choice(["bigint", "bigint", "boolean", keys[0][1]])
                for _ in range(chance.randint(1, 2))
            ]
            outputs = outputs + [self.aggregates.one(type, scope, depth) for type in more]
            types = types + more
        else:
            outputs = [self.aggregates.of_group(type, used_keys, scope, depth) for type in types]
        having_clause = NOTHING
        if chance.random() < 0.3:
            having_clause = clause(
                " HAVING {}", self.aggregates.having(used_keys, scope, depth), feature="having with group by"
            )
        group = Sql(f" GROUP BY {form}", feature=feature)
        return self.selected(NOTHING, types, outputs, source, (where, group, having_clause), "grouped")

    # Windows

    def _windowed(
        self, types: list[str] | None, source: Sql, where: Sql, scope: Scope, depth: int
    ) -> tuple[Sql, tuple[Column, ...]]:
        types = self._types(scope, 3) if types is None else types
        outputs = [
            self.aggregates.window(type, scope)
            if type in ("bigint", "int", "string", "date")
            else self.scalars.value(type, scope, 0)
            for type in types
        ]
        return self.selected(NOTHING, types, outputs, source, (where,), "windowed")

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
            sql = self.aggregates.one(types[0], Scope(inner.columns), 0)
            return Sql("SELECT {} FROM {}{}", (sql, source, where), _kind(types))
        if kind == "exists":
            return self.select(None, depth, outer)[0]
        return self.any(types, depth, outer)[0]


def _kind(types: Sequence[str]) -> str:
    return f"query {', '.join(types)}"
