"""Random values and conditions over the columns in scope, typed, and such that Spark has one answer for them.

Nothing here fails on some rows only: which rows an expression is computed for is the optimizer's choice. So numbers
are added by `try_add`, and texts become numbers by `try_cast`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.spark.queries import values
from tests.spark.queries.sql import Sql, TableRef, listed, value

Column = tuple[str, str]
"""What a column is called where it is used, and its type."""

IDS = 40
"""Tables have about so many rows; their ids count from 1."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What can be named: columns, those of the queries around it, and conditions that hold for each row of a table."""

    columns: tuple[Column, ...]
    outer: tuple[Column, ...] = ()
    metadata: tuple[str, ...] = ()
    """Aliases of tables that have metadata columns."""

    present: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of columns that literals of values which are there are known of, these."""


@dataclass
class Scalars:
    """`subquery(kind, types, scope, depth)` makes queries for EXISTS, IN and scalar subqueries."""

    chance: random.Random
    subquery: Callable[[str, list[str], Scope, int], Sql | None]
    types: Sequence[str] = field(
        default=("boolean", "int", "bigint", "string", "date", "timestamp", "double")
    )

    def value(self, type: str, scope: Scope, depth: int) -> Sql:
        """Return an expression of that type, most often one over the columns in scope."""
        chance = self.chance
        found_columns = columns_of(scope.columns, type)
        if found_columns and (depth <= 0 or chance.random() < 0.55):
            return chance.choice(found_columns)
        if scope.outer and chance.random() < 0.2 and (outer := columns_of(scope.outer, type)):
            return value(type, "{}", chance.choice(outer), feature="correlated")
        if depth <= 0 or chance.random() < 0.15:
            return self.literal(type, 0.1)
        match chance.randrange(9):
            case 0:
                return value(
                    type, "CASE WHEN {} THEN {} ELSE {} END", self.condition(scope, depth - 1),
                    self.value(type, scope, depth - 1), self.value(type, scope, depth - 1), feature="case",
                )  # fmt: skip
            case 1:
                parts = self.value(type, scope, depth - 1), self.value(type, scope, depth - 1)
                return value(type, "coalesce({}, {})", *parts, feature="coalesce")
            case 2 if values.is_orderable(type) and not values.is_nested(type) and not values.is_real(type):
                parts = self.value(type, scope, depth - 1), self.literal(type, 0)
                return value(type, "nullif({}, {})", *parts, feature="nullif")
            case 3 if not values.is_nested(type):
                query = self.subquery("scalar", [type], scope, depth - 1)
                if query:
                    return value(type, "({})", query, feature="scalar subquery")
        sql = self._made(type, scope, depth)
        return (
            sql
            if sql is not None
            else (chance.choice(found_columns) if found_columns else self.literal(type, 0.1))
        )

    def literal(self, type: str, nulls: float) -> Sql:
        if type == "bigint" and self.chance.random() < 0.3:
            return value(type, f"{self.chance.randint(1, IDS)}L")
        return value(type, values.literal(self.chance, type, nulls))

    def _near(self, column: Column, scope: Scope) -> Sql:
        """Return a literal to compare a column with, most often one that is in it."""
        name, type = column
        if values.is_real(type) and self.chance.random() < 0.3:
            return value(type, values.typed("'NaN'", type))
        if (other_texts := scope.present.get(name)) and self.chance.random() < 0.7:
            literal = self.chance.choice(other_texts)
            if values.is_collated(type) and self.chance.random() < 0.5:
                literal = values.alike(literal, type)
            return value(type, literal)
        return self.literal(type, 0)

    def _made(self, type: str, scope: Scope, depth: int) -> Sql | None:
        """Return an expression that only that type has."""
        chance = self.chance

        def of(other: str) -> Sql:
            return self.value(other, scope, depth - 1)

        if type == "boolean":
            return self.condition(scope, depth - 1)
        if values.is_whole(type):
            choices = [
                lambda: value(
                    type, f"try_{chance.choice(['add', 'subtract', 'multiply'])}({{}}, {{}})", of(type), of(type),
                    feature="arithmetic"),
                lambda: value(type, f"try_cast({{}} AS {type})", of("string"), feature="cast"),
                lambda: value(type, f"try_cast({{}} AS {type})", of("bigint"), feature="cast"),
                lambda: value(type, f"CAST(length(left({{}}, 9)) AS {type})", of("string"), feature="text"),
                lambda: value(type, f"CAST(coalesce(month({{}}), 1) AS {type})", of("date"), feature="date parts"),
                lambda: value(type, f"CAST(size({{}}) AS {type})", of("array<int>"), feature="array"),
            ]  # fmt: skip
            if type == "int":
                choices += [
                    lambda: value("int", "{}.x", of("struct<x:int,y:string>"), feature="field"),
                    lambda: value("int", "try_element_at({}, 'a')", of("map<string,int>"), feature="map"),
                    lambda: value("int", "try_element_at({}, 1)", of("array<int>"), feature="array"),
                    lambda: value("int", "year({})", of("timestamp"), feature="date parts"),
                ]
            return chance.choice(choices)()
        if values.is_collated(type):
            # What of equal texts is equal too, whichever of them an aggregate or a group has chosen.
            return value(type, f"{chance.choice(['upper', 'lower'])}({{}})", of(type), feature="collation")
        if values.is_decimal(type):
            return value(
                type,
                f"try_cast({{}} AS {type})",
                of(chance.choice(["int", "string", "decimal(5,2)"])),
                feature="cast",
            )
        match type:
            case "string":
                return chance.choice([
                    lambda: value(type, "concat({}, {})", of(type), of(type), feature="text"),
                    lambda: value(type, "upper({})", of(type), feature="text"),
                    lambda: value(type, "substring({}, 1, 2)", of(type), feature="text"),
                    lambda: value(type, "trim({})", of(type), feature="text"),
                    lambda: value(type, "CAST({} AS STRING)", of(chance.choice(
                        ["int", "date", "boolean", "decimal(5,2)", "timestamp", "double"])), feature="cast"),
                    lambda: value(type, "{}.y", of("struct<x:int,y:string>"), feature="field"),
                    lambda: value(type, "hex({})", of("binary"), feature="binary"),
                ])()  # fmt: skip
            case "date":
                return chance.choice([
                    lambda: value(type, "CAST({} AS DATE)", of("timestamp"), feature="cast"),
                    lambda: value(type, "date_add({}, 1)", of(type), feature="date parts"),
                    lambda: value(type, "last_day({})", of(type), feature="date parts"),
                ])()  # fmt: skip
            case "timestamp":
                return chance.choice([
                    lambda: value(type, "CAST({} AS TIMESTAMP)", of("date"), feature="cast"),
                    lambda: value(type, "date_trunc('HOUR', {})", of(type), feature="date parts"),
                    lambda: value(type, "({} + INTERVAL '1' DAY)", of(type), feature="interval"),
                ])()  # fmt: skip
            case "timestamp_ntz":
                return value(type, "CAST({} AS TIMESTAMP_NTZ)", of("date"), feature="cast")
            case "double":
                return chance.choice([
                    lambda: value(type, "CAST({} AS DOUBLE)", of(chance.choice(["int", "float"])), feature="cast"),
                    lambda: value(type, "try_divide({}, 2D)", of(type), feature="arithmetic"),
                    lambda: value(type, "abs({})", of(type), feature="arithmetic"),
                ])()  # fmt: skip
            case "float":
                return value(type, "CAST({} AS FLOAT)", of("tinyint"), feature="cast")
            case "binary":
                return value(type, "CAST({} AS BINARY)", of("string"), feature="cast")
            case "array<int>":
                return value(type, "array({}, {})", of("int"), of("int"), feature="array")
            case "array<string>":
                return value(type, "array({})", of("string"), feature="array")
            case "map<string,int>":
                return value(type, "map('a', {})", of("int"), feature="map")
            case "struct<x:int,y:string>":
                return value(
                    type, "named_struct('x', {}, 'y', {})", of("int"), of("string"), feature="struct"
                )
        return None

    def condition(self, scope: Scope, depth: int) -> Sql:
        chance = self.chance
        if depth > 0 and chance.random() < 0.45:
            match chance.randrange(5):
                case 0:
                    return value("boolean", "NOT ({})", self.condition(scope, depth - 1), feature="not")
                case 1:
                    parts = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
                    return value("boolean", "({} AND {})", *parts, feature="and")
                case _:
                    parts = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
                    return value("boolean", "({} OR {})", *parts, feature="or")
        if depth > 0 and chance.random() < 0.18:
            subquery_condition = self._subquery_condition(scope, depth)
            if subquery_condition:
                return subquery_condition
        if scope.metadata and chance.random() < 0.12:
            return self._metadata(chance.choice(scope.metadata))
        if scope.columns and chance.random() < 0.05 and (subquery_condition := self._transform(scope)):
            return subquery_condition
        return self._test(scope, depth)

    def _comparable(self, scope: Scope) -> str:
        """Return a type to compare by, most often of a column in scope."""
        types = [type for _, type in scope.columns if values.is_orderable(type)]
        return (
            self.chance.choice(types)
            if types and self.chance.random() < 0.85
            else self.chance.choice(self.types)
        )

    def _test(self, scope: Scope, depth: int) -> Sql:
        chance = self.chance
        type = self._comparable(scope)
        left_value = self.value(type, scope, chance.choice([0, 0, 0, depth - 1]))
        right = self.value(type, scope, depth - 1) if chance.random() < 0.25 else self.literal(type, 0.08)
        if values.is_collated(type) and "RTRIM" not in type and chance.random() < 0.2:
            word = chance.choice(["startswith", "endswith", "contains"])
            return value(
                "boolean", f"{word}({{}}, {{}})", left_value, right, feature="text test by a collation"
            )
        match chance.randrange(12):
            case 0 | 1:
                word = chance.choice(["IS NULL", "IS NOT NULL"])
                return value("boolean", f"{{}} {word}", left_value, feature="is null")
            case 2:
                items = [self.literal(type, 0.12) for _ in range(chance.choice([1, 2, 3, 11]))]
                word = chance.choice(["IN", "NOT IN"])
                return value(
                    "boolean",
                    f"{{}} {word} ({{}})",
                    left_value,
                    listed(items),
                    feature=word.lower() + " list",
                )
            case 3:
                parts = left_value, self.literal(type, 0.05), self.literal(type, 0.05)
                return value(
                    "boolean",
                    f"{{}} {chance.choice(['', 'NOT '])}BETWEEN {{}} AND {{}}",
                    *parts,
                    feature="between",
                )
            case 4:
                return value("boolean", "{} <=> {}", left_value, right, feature="null-safe equality")
            case 5 | 6:
                pattern = chance.choice(["a%", "%b", "%a%", "a_", "%", "", "ab", "_%", "\\_%", "b %"])
                text = self.value("string", scope, chance.choice([0, 0, depth - 1]))
                word = chance.choice(["LIKE", "LIKE", "NOT LIKE"])
                return value(
                    "boolean", f"{{}} {word} '{pattern.replace(chr(92), chr(92) * 2)}'", text, feature="like"
                )
            case 7 if columns_of(scope.columns, "boolean"):
                word = chance.choice(["", " IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT UNKNOWN"])
                return value(
                    "boolean", f"({{}}{word})", self.value("boolean", scope, 0), feature="boolean test"
                )
            case _:
                op = chance.choice(["=", "=", "<", "<=", ">", ">=", "<>", "<>"])
                return value("boolean", f"{{}} {op} {{}}", left_value, right, feature="comparison")

    def bare(self, scope: Scope) -> Sql | None:
        """Return a comparison of a column with literals, of which statistics and partitions say most."""
        chance = self.chance
        able = [column for column in scope.columns if not values.is_nested(column[1])]
        real = [column for column in able if values.is_real(column[1])]
        if not able:
            return None
        column = chance.choice(real if real and chance.random() < 0.25 else able)
        remaining_value = value(
            column[1], column[0], feature="collation" if values.is_collated(column[1]) else ""
        )
        match chance.randrange(6):
            case 0:
                items = listed([self._near(column, scope) for _ in range(chance.choice([2, 3]))])
                return value("boolean", "{} IN ({})", remaining_value, items, feature="in list")
            case 1:
                ends = self._near(column, scope), self._near(column, scope)
                return value("boolean", "{} BETWEEN {} AND {}", remaining_value, *ends, feature="between")
            case _:
                op = chance.choice(["=", "=", "<", "<=", ">", ">=", "<=>"])
                return value(
                    "boolean",
                    f"{{}} {op} {{}}",
                    remaining_value,
                    self._near(column, scope),
                    feature="comparison",
                )

    def _subquery_condition(self, scope: Scope, depth: int) -> Sql | None:
        chance = self.chance
        if chance.random() < 0.5:
            query = self.subquery("exists", [], scope, depth - 1)
            word = chance.choice(["EXISTS", "NOT EXISTS"])
            return query and value("boolean", f"{word} ({{}})", query, feature=word.lower())
        word = chance.choice(["IN", "NOT IN"])
        types = [self._comparable(scope) for _ in range(chance.choice([1, 1, 1, 2]))]
        query = self.subquery("in", types, scope, depth - 1)
        remaining_sql = listed([self.value(type, scope, 0) for type in types])
        return query and value(
            "boolean", f"({{}}) {word} ({{}})", remaining_sql, query, feature=f"{word.lower()} subquery"
        )

    def _metadata(self, alias: str) -> Sql:
        """Return a condition on metadata columns that holds for each row of a table."""
        text = self.chance.choice([
            f"{alias}._pos >= 0", f"{alias}._file IS NOT NULL", f"{alias}._file LIKE '%.parquet'",
            f"{alias}._version >= 1", f"{alias}._row_id >= 0", f"NOT {alias}._pos < 0", f"{alias}._file <> 'nothing'",
        ])  # fmt: skip
        return value("boolean", text, feature="metadata column", plain="true")

    def _transform(self, scope: Scope) -> Sql | None:
        """Return a condition on a function that tables are partitioned by, of whatever column fits."""
        chance = self.chance
        name, type = chance.choice(scope.columns)
        tests = []
        if type in ("int", "bigint", "string", "date", "timestamp") or values.is_decimal(type):
            tests += [f"lake.bucket(3, {name}) = {chance.randrange(3)}", f"lake.bucket(2, {name}) IN (0, 1)"]
        if type in ("int", "bigint"):
            tests += [
                f"lake.truncate(4, {name}) = {chance.choice([0, 4, -4])}",
                f"lake.truncate(2, {name}) > 3",
            ]
        if type == "string":
            tests += [
                f"lake.truncate(1, {name}) = 'a'",
                f"lake.truncate(2, {name}) >= 'ab'",
                f"lake.truncate(1, {name}) IS NULL",
            ]
        if type in ("date", "timestamp", "timestamp_ntz"):
            tests += [
                f"lake.years({name}) = 54",
                f"lake.months({name}) < 650",
                f"lake.days({name}) >= DATE'2024-02-29'",
            ]
        return value("boolean", chance.choice(tests), feature="transform function") if tests else None


def columns_of(columns: Sequence[Column], type: str) -> list[Sql]:
    found_values = [value(type, name) for name, of in columns if of == type]
    for name, of in columns:
        if of.startswith("struct<"):
            fields = values.nested(of)[0]
            found_values += [
                value(type, f"{name}.{text}", feature="field") for text, inner in fields if inner == type
            ]
    return found_values


def table_text(ref: TableRef) -> Sql:
    return Sql("", ref=ref)
