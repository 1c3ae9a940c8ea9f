"""Random statements in SQL, held against the model of `tests/ddl`; then every version as Spark and Python read it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from tests.ddl.columns import Column, Refused, Type, find
from tests.ddl.model import Condition, Model, Row, State, Step
from tests.ddl.steps import Draw, draw_condition, draw_step, first_step
from tests.spark.sql.rows import MODES, in_mode

SHORT = {"byte": "TINYINT", "integer": "INT", "long": "BIGINT"}


def name(*path: str) -> str:
    return ".".join(part if part in ("element", "key", "value") else f"`{part}`" for part in path)


def type_in_sql(json: Any) -> str:
    if isinstance(json, str):
        return SHORT.get(json, json.upper())
    match json["type"]:
        case "struct":
            fields = [f"`{field['name']}`: {type_in_sql(field['type'])}" for field in json["fields"]]
            return f"STRUCT<{', '.join(fields)}>"
        case "array":
            return f"ARRAY<{type_in_sql(json['elementType'])}>"
        case _:
            return f"MAP<{type_in_sql(json['keyType'])}, {type_in_sql(json['valueType'])}>"


def value_in_sql(value: Any, type: Type) -> str:
    """Return an expression of exactly this type; a text's length is left to the table."""
    if isinstance(type, str):
        target = "STRING" if type.startswith("varchar") else type_in_sql(type)
        return f"CAST({literal(value)} AS {target})"
    if value is None:
        return f"CAST(NULL AS {_of_expressions(type)})"
    match type.kind:
        case "struct":
            parts = [f"'{part.name}', {value_in_sql(value[part.name], part.type)}" for part in type.parts]
            new_text = f"named_struct({', '.join(parts)})"
        case "array":
            new_text = f"array({', '.join(value_in_sql(each, type.parts[0].type) for each in value)})"
        case _:
            pairs = [
                value_in_sql(one, part.type)
                for pair in value
                for one, part in zip(pair, type.parts, strict=True)
            ]
            new_text = f"map({', '.join(pairs)})"
    return f"CAST({new_text} AS {_of_expressions(type)})" if not value else new_text


def _of_expressions(type: Type) -> str:
    if isinstance(type, str):
        return "STRING" if type.startswith("varchar") else type_in_sql(type)
    inner = [_of_expressions(part.type) for part in type.parts]
    if type.kind == "struct":
        inner = [f"`{part.name}`: {text}" for part, text in zip(type.parts, inner, strict=True)]
    return f"{type.kind.upper()}<{', '.join(inner)}>"


def literal(value: Any) -> str:
    match value:
        case None | bool():
            return {None: "NULL", True: "true", False: "false"}[value]
        case str():
            return "'" + value.replace("'", "\\'") + "'"
        case dt.datetime():
            return f"TIMESTAMP_NTZ'{value}'"
        case dt.date():
            return f"DATE'{value}'"
        case Decimal():
            return f"{value}BD"
        case float():
            return f"{value!r}D"
        case _:
            return f"{value}L" if value != -(2**63) else "(-9223372036854775807L - 1L)"


def condition_in_sql(condition: Condition, columns: tuple[Column, ...]) -> str:
    if condition.op == "IS NULL":
        return f"`{condition.column}` IS NULL"
    of = find(columns, (condition.column,)).type
    value = (
        value_in_sql(condition.value, of) if of in ("byte", "integer", "float") else literal(condition.value)
    )
    return f"`{condition.column}` {condition.op} {value}"


def statements(step: Step, columns: tuple[Column, ...]) -> list[str]:
    match step["do"]:
        case "alter":
            return _alter(step["changes"], columns)
        case "append":
            return [f"INSERT INTO lake.t {_rows(step, columns)}"]
        case "overwrite" | "overwrite-partitions":
            return [f"INSERT OVERWRITE lake.t {_rows(step, columns)}"]
        case "truncate":
            return ["TRUNCATE TABLE lake.t"]
        case "delete":
            return [f"DELETE FROM lake.t WHERE {condition_in_sql(step['where'], columns)}"]
        case "rollback":
            return [f"CALL lake.system.rollback_to_version('t', {step['version']})"]
        case "set-current":
            return [f"CALL lake.system.set_current_version('t', {step['version']})"]
        case "rename-table":
            return ["ALTER TABLE lake.t RENAME TO u", "ALTER TABLE lake.u RENAME TO t"]
        case "create":
            return ["DROP TABLE IF EXISTS lake.t", f"CREATE TABLE lake.t {_definition(step)}"]
        case _:
            assert step["do"] == "replace"
            return [f"CREATE OR REPLACE TABLE lake.t {_definition(step)}"]


def _definition(step: Step) -> str:
    columns = ", ".join(f"`{column['name']}` {type_in_sql(column['type'])}" for column in step["columns"])
    by = ", ".join(f"`{partition}`" for partition in step["partitions"])
    # One way or the other, whichever it is, so that the model need not know.
    mode = in_mode(MODES[len(step["columns"]) % 2])
    return f"({columns}) PARTITIONED BY ({by}) {mode}" if by else f"({columns}) {mode}"


def _rows(step: Step, columns: tuple[Column, ...]) -> str:
    types = {column.name: column.type for column in columns}
    selects = [
        "SELECT " + ", ".join(value_in_sql(row[column], types[column]) for column in step["columns"])
        for row in step["rows"]
    ]
    return f"({', '.join(f'`{column}`' for column in step['columns'])}) {' UNION ALL '.join(selects)}"


def _alter(changes: list[dict[str, Any]], columns: tuple[Column, ...]) -> list[str]:
    table = "ALTER TABLE lake.t"
    if len(changes) > 1:
        added_texts = [
            f"{name(*change['name'])} {type_in_sql(change['type'])}" for change in changes if "type" in change
        ]
        return [f"{table} REPLACE COLUMNS ({', '.join(added_texts)})"]
    [change] = changes
    column = name(*change["name"]) if isinstance(change.get("name"), list) else ""
    match change["change"]:
        case "add-column":
            required_text = "" if change.get("nullable", True) else " NOT NULL"
            default = f" DEFAULT {change['default']['current']}" if change.get("default") else ""
            place = _position(change.get("position"))
            return [
                f"{table} ADD COLUMN {column} {type_in_sql(change['type'])}{required_text}{default}{place}"
            ]
        case "rename-column":
            return [f"{table} RENAME COLUMN {column} TO `{change['new_name']}`"]
        case "delete-column":
            return [f"{table} DROP COLUMN {column}"]
        case "update-column-type":
            return [f"{table} ALTER COLUMN {column} TYPE {type_in_sql(change['type'])}"]
        case "update-column-position":
            return [f"{table} ALTER COLUMN {column}{_position(change['position'])}"]
        case "update-column-default":
            default = change["default"]
            label = "DROP DEFAULT" if default is None else f"SET DEFAULT {default['current']}"
            return [f"{table} ALTER COLUMN {column} {label}"]
        case "update-column-nullability":
            return [f"{table} ALTER COLUMN {column} {'DROP' if change['nullable'] else 'SET'} NOT NULL"]
        case "add-partition-field" | "drop-partition-field":
            verb = change["change"].split("-")[0].upper()
            return [f"{table} {verb} PARTITION FIELD {_transform(change['field'])}"]
        case "set-sort-order":
            by = ", ".join(f"`{field}`" for field in change["fields"])
            return [f"{table} WRITE {f'ORDERED BY {by}' if by else 'UNORDERED'}"]
        case "set-clustering":
            by = ", ".join(f"`{each}`" for (each,) in change["columns"])
            return [f"{table} CLUSTER BY {f'({by})' if by else 'NONE'}"]
        case "add-constraint":
            check = condition_in_sql(change["condition"], columns)
            return [f"{table} ADD CONSTRAINT {change['constraint']['name']} CHECK ({check})"]
        case "drop-constraint":
            return [f"{table} DROP CONSTRAINT {change['name']}"]
        case _:
            assert change["change"] == "set-property"
            return [f"{table} SET TBLPROPERTIES ('{change['key']}' = '{change['value']}')"]


def _position(position: Any) -> str:
    if position is None:
        return ""
    return " FIRST" if position == "first" else f" AFTER `{position['after']}`"


def _transform(field: dict[str, Any]) -> str:
    column = f"`{field['column'][0]}`"
    if "transform" not in field:
        return column
    return f"{field['transform']}({', '.join([*map(str, field.get('args', ())), column])})"


def with_nulls(type: Any) -> Any:
    """A type's JSON with NULL allowed everywhere in it."""
    if isinstance(type, list):
        return [with_nulls(each) for each in type]
    if not isinstance(type, dict):
        return type
    free = {"nullable", "containsNull", "valueContainsNull"}
    return {key: True if key in free else with_nulls(value) for key, value in type.items()}


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return a frame's rows. PySpark fails by itself if a field that must not be NULL is in a struct that is."""
    schema = StructType.fromJson(with_nulls(frame.schema.jsonValue()))
    return frame.select(*(frame[f"`{field.name}`"].cast(field.dataType) for field in schema)).toArrow()


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def check_version(lake: Any, version: int, state: State, where: Condition | None) -> None:
    """Hold a version, as Spark and as the Python client read it, against the model."""
    rows = state.seen()
    table = lake.catalog.load_table("t", version=version)
    found_rows = to_arrow(lake.frame(f"SELECT * FROM lake.t VERSION AS OF {version}"))
    for read in (table.to_arrow(), found_rows):
        assert list(read.schema.names) == [column.name for column in state.columns]
        assert in_order(read.to_pylist()) == in_order(rows), version
    if where is not None:
        condition = condition_in_sql(where, state.columns)
        found_rows = to_arrow(lake.frame(f"SELECT * FROM lake.t VERSION AS OF {version} WHERE {condition}"))
        assert in_order(found_rows.to_pylist()) == in_order([row for row in rows if where.holds(row)]), (
            version,
            where,
        )


def run(lake: Any, draw: Draw, count: int) -> None:
    finished_statements = [*statements(first := first_step(draw), ())]
    for statement in finished_statements:
        note(statement)
        lake.sql(statement)
    model = Model(State((), (), 0))
    model.state = model.made(first)
    model.past = {1: model.state}
    for _ in range(count):
        step = draw_step(draw, model)
        table_before = lake.catalog.load_table("t")
        try:
            state_after, may_be_refused = model.after(step)
            # Spark deletes the rows itself where no whole files match.
            expected = "either" if may_be_refused and step["do"] != "delete" else "done"
        except Refused:
            state_after, expected = model.state, "refused"
        dynamic = step["do"] == "overwrite-partitions"
        lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic" if dynamic else "static")
        words = ""
        try:
            for statement in statements(step, model.state.columns):
                note(f"{statement};  -- {expected}")
                lake.sql(statement)
        except PySparkException as error:
            words = str(error).splitlines()[0]
            note(f"-- {words}")
        finally:
            lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
        assert (not words) is {"done": True, "refused": False, "either": not words}[expected], words
        table = lake.catalog.load_table("t")
        if words:
            assert (table.id, table.version) == (table_before.id, table_before.version)
            continue
        if step["do"] == "create":
            model.past = {}
        elif table.version == table_before.version:
            assert in_order(state_after.seen()) == in_order(model.state.seen())
        else:
            # A rename is a version too, and this step makes two of them.
            assert table.version == table_before.version + (2 if step["do"] == "rename-table" else 1)
        model.state = model.past[table.version] = state_after
        check_version(lake, table.version, state_after, None)
    for version, state in model.past.items():
        check_version(lake, version, state, draw_condition(draw, state.columns))


# Shrinking would run for an hour: the statements are shown as they are.
UNSHRUNK = settings(
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
    report_multiple_bugs=False,
)


@settings(UNSHRUNK, max_examples=2)
@given(data=st.data())
def test_every_version_is_read_by_spark_and_python_as_the_model_has_it(lake, data: st.DataObject) -> None:
    run(lake, data.draw, 25)


@pytest.mark.slow
@settings(UNSHRUNK, max_examples=60)
@given(data=st.data())
def test_many_more_versions_are_read_as_the_model_has_them(lake, data: st.DataObject) -> None:
    run(lake, data.draw, 40)
