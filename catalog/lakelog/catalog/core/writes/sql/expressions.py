"""Expressions in DuckDB's SQL that users give for conditions and values, with the columns that they name.

DuckDB's own parser takes a text apart, and it is built again from its parts, so it is a single expression at
any place. Rule: an expression that Spark would compute otherwise, which the text does not show (CHAR,
collations), is refused by name. The same holds for parts that have no place in a row: subqueries, aggregates,
functions whose results vary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.schema.arrow_types import type_to_arrow
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field, Type, children, is_collated
from lakelog.catalog.core.writes.sql.engine import SqlEngine, carried_type, quoted_name
from lakelog.catalog.core.writes.sql.meaning import SparkMeaning
from lakelog.catalog.core.writes.sql.tree import Node, as_written, one_shape
from lakelog.log.errors import InvalidInput, Unsupported

TARGET, SOURCE = "target", "source"

_BEGIN = "SELECT ("

_CLASSES = frozenset(
    ("COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "OPERATOR", "FUNCTION", "CASE", "CAST", "BETWEEN")
)
_REFUSED = {
    "SUBQUERY": "a subquery: add its result to the source",
    "WINDOW": "a window function: compute it in the source",
    "STAR": "*: name the columns",
    "COLLATE": "a collation: compare such texts in Spark",
    "LAMBDA": "a lambda or ->: compute it in the source",
    "DEFAULT": "DEFAULT: leave the column out",
    "PARAMETER": "a parameter: write the value into the text",
}
_TIMES = {
    "current_date": "CAST(now() AS DATE)",
    "current_timestamp": "now()",
    "localtimestamp": "CAST(now() AS TIMESTAMP)",
}
_WITHOUT_MEANING = ("interval year-month", "interval day-time", "variant")


@dataclass(frozen=True, slots=True)
class ExpressionScope:
    """The columns that an expression may name: of the table, of the source, or of both.

    With `is_bare`, columns of the table are named without a prefix.
    """

    target: Schema | None = None
    source: pa.Schema | None = None
    is_bare: bool = False

    @property
    def text(self) -> str:
        sides = [
            name for name, columns in ((TARGET, self.target), (SOURCE, self.source)) if columns is not None
        ]
        return " and ".join(f"{name}.<column>" for name in sides)


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """An expression. `sql` names columns as `target."c"` and `source."c"`.

    `column` is the side and the name if it is only a column. `is_null` is true for NULL. `equal` are the
    parts of an AND that compare two expressions by `=`. `is_assigned` says that a user sets a column to it, so
    that it is cast as Spark stores it.
    """

    text: str
    sql: str
    target: frozenset[str]
    source: frozenset[str]
    column: tuple[str, str] | None = None
    is_null: bool = False
    equal: tuple[tuple[SqlExpression, SqlExpression], ...] = ()
    is_assigned: bool = False

    def is_kept(self, name: str) -> bool:
        """Return whether it is the table's column of that name."""
        return self.column == (TARGET, name)


def column_expression(side: str, name: str) -> SqlExpression:
    """Return the expression of a column."""
    names = frozenset((name,))
    return SqlExpression(
        text=f"{side}.{dotted((name,))}",
        sql=f"{side}.{quoted_name(name)}",
        target=names if side == TARGET else frozenset(),
        source=names if side == SOURCE else frozenset(),
        column=(side, name),
    )


def parsed(
    engine: SqlEngine, text: str, scope: ExpressionScope, *, is_condition: bool = False
) -> SqlExpression:
    """Return the expression of a text.

    Raises InvalidInput for a text that is not an expression over `scope`, and NoSuchColumn for an unknown
    column of the table. Raises Unsupported if a part cannot be computed here as in Spark.
    """
    if not isinstance(text, str):
        raise InvalidInput(
            f'{text!r} is not a text: write a condition in DuckDB\'s SQL, such as "target.id = source.id"'
        )
    return _Parser(engine, text, scope).parsed(is_condition=is_condition)


class _Parser:
    def __init__(self, engine: SqlEngine, text: str, scope: ExpressionScope) -> None:
        self._engine = engine
        self._text = text
        self._scope = scope

    def parsed(self, *, is_condition: bool) -> SqlExpression:
        node = self._with_times(self._node_of(self._text))
        is_plain = node["class"] == "COLUMN_REF" and self._is_whole(node)
        for part in _nodes(node):
            self._check_node(part)
            if part["class"] == "COLUMN_REF":
                self._complete(part, is_plain=is_plain)
        checker = SparkMeaning(
            self._text,
            len(_BEGIN),
            is_bare=self._scope.is_bare,
            parse=self._node_of,
            type_of=self._type_of,
        )
        node = checker.of_spark(node, has_floats=self._has_floats(node))
        if is_condition:
            checker.check_condition(node)
        return self._of(node, self._text)

    def _node_of(self, text: str) -> Node:
        tree = json.loads(self._engine.value("SELECT json_serialize_sql(?)", f"{_BEGIN}{text}\n)"))
        if tree["error"]:
            raise InvalidInput(
                f"{text!r} is not an expression in SQL, as DuckDB has it: {tree['error_message']}"
            )
        node = tree["statements"][0]["node"]
        if (
            len(tree["statements"]) > 1
            or node["type"] != "SELECT_NODE"
            or len(node["select_list"]) > 1
            or node["from_table"]["type"] != "EMPTY"
            or node["modifiers"]
            or any(node[part] for part in ("where_clause", "group_expressions", "having", "qualify"))
        ):
            raise InvalidInput(f"{text!r} is not one expression in SQL")
        result: Node = one_shape(node["select_list"][0], self._name_of_type)
        return result

    def _name_of_type(self, cast: Node) -> str:
        """Return the name of a cast's type."""
        null = self._node_of("NULL")
        return str(self._engine.value(f"SELECT typeof({self._sql({**cast, 'child': null})})"))

    def _of(self, part: Node, text: str | None = None) -> SqlExpression:
        column_names = [
            tuple(part_node["column_names"])
            for part_node in _nodes(part)
            if part_node["class"] == "COLUMN_REF"
        ]
        sql = self._sql(part)
        return SqlExpression(
            text=sql if text is None else text,
            sql=f"({sql})",
            target=frozenset(name for side, name, *_ in column_names if side == TARGET),
            source=frozenset(name for side, name, *_ in column_names if side == SOURCE),
            column=column_names[0] if part["class"] == "COLUMN_REF" and len(column_names[0]) == 2 else None,
            is_null=part["class"] == "CONSTANT" and bool(part["value"]["is_null"]),
            equal=tuple(self._equal(part)),
        )

    def _type_of(self, part: Node) -> pa.DataType:
        """Return the type of a part's values in DuckDB."""
        expression, tables = self._of(part), []
        with ExitStack() as shapes:
            for side, names in ((TARGET, expression.target), (SOURCE, expression.source)):
                if names:
                    shape = pa.schema(
                        [(name, carried_type(self._plain(side, name))) for name in sorted(names)]
                    )
                    shapes.enter_context(self._engine.stream(f"shape_of_{side}", shape, ()))
                    tables.append(f"shape_of_{side} AS {side}")
            rows = f" FROM {', '.join(tables)}" if tables else ""
            return self._engine.schema_of(f"SELECT {expression.sql} AS value{rows}").field(0).type

    def _plain(self, side: str, name: str) -> pa.DataType:
        if side == SOURCE:
            assert self._scope.source is not None
            return self._scope.source.field(name).type
        assert self._scope.target is not None
        return type_to_arrow(self._scope.target.find((name,), case_sensitive=True).type)

    def _has_floats(self, part: Node) -> bool:
        expression = self._of(part)
        types = [
            self._plain(side, name)
            for side, names in ((TARGET, expression.target), (SOURCE, expression.source))
            for name in names
        ]
        # Nested types may contain a FLOAT.
        is_cast = any(
            part_node["class"] == "CAST" and part_node["cast_type"]["id"] == "FLOAT"
            for part_node in _nodes(part)
        )
        return is_cast or any(pa.types.is_float32(type) or pa.types.is_nested(type) for type in types)

    def _equal(self, part: Node) -> Iterator[tuple[SqlExpression, SqlExpression]]:
        if part["type"] == "CONJUNCTION_AND":
            for child in part["children"]:
                yield from self._equal(child)
        elif part["type"] == "COMPARE_EQUAL":
            yield self._of(part["left"]), self._of(part["right"])

    def _sql(self, part: Node) -> str:
        """Return a part as text, by DuckDB, with columns as `_complete` found them."""
        empty = {"type": "EMPTY", "alias": "", "sample": None, "query_location": 0}
        node: Node = {
            "type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []},
            "select_list": [{**as_written(part), "alias": ""}],
            "from_table": empty, "where_clause": None, "group_expressions": [], "group_sets": [],
            "aggregate_handling": "STANDARD_HANDLING", "having": None, "sample": None, "qualify": None,
        }  # fmt: skip
        tree = {"error": False, "statements": [{"node": node, "named_param_map": []}]}
        sql = self._engine.value("SELECT json_deserialize_sql(?::JSON)", json.dumps(tree))
        return str(sql).removeprefix("SELECT ")

    def _with_times(self, part: Any) -> Any:
        """Return a node with functions in place of the words for the time, which the parser takes for
        columns."""
        if isinstance(part, list):
            return [self._with_times(item) for item in part]
        if not isinstance(part, dict):
            return part
        name = None
        if part.get("class") == "COLUMN_REF" and len(part["column_names"]) == 1:
            name = part["column_names"][0].lower()
            if self._scope.is_bare and self._scope.target and self._scope.target.get((name,)) is not None:
                name = None
        elif part.get("class") == "FUNCTION" and not part["children"]:
            name = part["function_name"].lower()
        if name in _TIMES:
            return self._node_of(_TIMES[name])
        return {key: self._with_times(item) for key, item in part.items()}

    def _check_node(self, node: Node) -> None:
        kind = node["class"]
        if kind == "FUNCTION":
            self._check_function(node)
        elif kind not in _CLASSES:
            refusal = _REFUSED.get(kind, f"{kind.lower()}, which is not supported")
            raise Unsupported(f"the expression {self._text!r} has {refusal}")

    def _check_function(self, node: Node) -> None:
        name = node["function_name"]
        functions = self._engine.table(
            "SELECT DISTINCT function_type AS type, stability FROM duckdb_functions() "
            f"WHERE function_name = {_literal(name.lower())}"
        ).to_pylist()
        if not functions:
            raise InvalidInput(
                f"the expression {self._text!r} has the function {name}, which DuckDB does not have"
            )
        # A function of rows may share its name with a table function, which cannot stand here.
        of_rows = [function for function in functions if not function["type"].startswith(("table", "pragma"))]
        if not of_rows or any(
            function["type"] not in ("scalar", "macro") or function["stability"] == "VOLATILE"
            for function in of_rows
        ):
            raise Unsupported(
                f"the expression {self._text!r} has the function {name}, which does not have one result for a row: "
                "compute it in the source"
            )

    def _is_whole(self, node: Node) -> bool:
        """Return whether a reference is to a whole column, rather than to a field in it."""
        names = node["column_names"]
        return len(names) == (2 if names[0].lower() in self._sides else 1)

    @property
    def _sides(self) -> list[str]:
        sides = [(TARGET, self._scope.target), (SOURCE, self._scope.source)]
        return [name for name, columns in sides if columns is not None]

    def _complete(self, node: Node, *, is_plain: bool) -> None:
        """Complete a reference with its side and its column, in their own spelling."""
        names: list[str] = node["column_names"]
        if names[0].lower() in self._sides and len(names) > 1:
            side, name, *nested_names = names[0].lower(), *names[1:]
        elif self._scope.is_bare:
            side, name, *nested_names = TARGET, *names
        else:
            raise InvalidInput(
                f"the expression {self._text!r} names {dotted(tuple(names))}: name columns as {self._scope.text} here"
            )
        if side == TARGET:
            assert self._scope.target is not None
            field = self._scope.target.find((name,))
            name = field.name
            if not is_plain:
                self._check_computable(field)
        else:
            assert self._scope.source is not None
            name = source_column(self._scope.source, name)
            if not is_plain:
                self._check_source(name, self._scope.source.field(name).type)
        node["column_names"] = [side, name, *nested_names]

    def _check_computable(self, field: Field) -> None:
        family = not_computable(field.type)
        if family is not None:
            raise Unsupported(
                f"the expression {self._text!r} computes with the column {dotted((field.name,))} of type {field.type}, "
                f"and {family} is not compared here as in Spark: set such a column as a whole, or run the statement in "
                "Spark"
            )

    def _check_source(self, name: str, type: pa.DataType) -> None:
        if carried_type(type) != type:
            raise Unsupported(
                f"the expression {self._text!r} computes with the source's column {dotted((name,))} of Arrow's type "
                f"{type}, which is not supported: cast it to another type"
            )


def not_computable(type: Type) -> str | None:
    """Return the part of a type that is not computed with outside of Spark, or None."""
    if isinstance(type, AtomicType):
        if is_collated(type):
            return "text with a collation"
        if type.family == "char":
            return "CHAR"
        return type.family if type.family in _WITHOUT_MEANING else None
    return next(filter(None, (not_computable(part.type) for part in children(type))), None)


def source_column(source: pa.Schema, name: str) -> str:
    """Return a column of the source by its name (case-insensitive). Raises InvalidInput, with the known
    names."""
    for column in source.names:
        if column.lower() == name.lower():
            return str(column)
    all_names = ", ".join(dotted((column,)) for column in source.names)
    raise InvalidInput(f"the source has no column {dotted((name,))}: its columns are {all_names}")


def listed(texts: Sequence[str]) -> str:
    return ", ".join(dotted((text,)) for text in texts)


def _nodes(part: Any) -> Iterator[Node]:
    """Yield the parts of an expression that are expressions themselves."""
    if isinstance(part, dict):
        if "class" in part:
            yield part
        for child in part.values():
            yield from _nodes(child)
    elif isinstance(part, list):
        for child in part:
            yield from _nodes(child)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
