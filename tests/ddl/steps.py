"""Random statements for a table as the model has it; names and values are few, so that they meet again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from tests.ddl.columns import WIDER, Column, Nested, Path, Type, walk
from tests.ddl.model import VALUES_OF_DEFAULTS, Condition, Model, Row, Step

Draw = Callable[[st.SearchStrategy[Any]], Any]
"""What hypothesis gives: a value of a strategy."""

NAMES = st.sampled_from(("a", "b", "c", "ü d", "key", "d", "e"))
# Spark itself cannot read a struct with a VARCHAR where a field's name needs quotes: it writes its type without any.
NESTED_NAMES = NAMES.filter(lambda name: name != "ü d")
VALUES: dict[str, list[Any]] = {
    "byte": [-3, 0, 7],
    "integer": [-(2**31), 0, 7, 2**31 - 1],
    "long": [-(2**63), 0, 7, 2**40],
    "float": [-1.5, 0.0, 0.25],
    "double": [-1.5, 0.0, 1e300],
    "boolean": [False, True],
    "string": ["", "p", "q q", "longer than nine"],
    "varchar(5)": ["", "p", "five5"],
    "varchar(9)": ["", "p", "nine99999"],
    "date": [dt.date(1969, 12, 31), dt.date(2020, 2, 29)],
    "timestamp_ntz": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 2, 29)],
    "decimal(12,2)": [Decimal("-1.25"), Decimal("0.00"), Decimal("9999999999.99")],
    "decimal(16,4)": [Decimal("-1.2500"), Decimal("123456789012.0001")],
}
DEFAULTS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("byte", "integer", "long"), {"5": 5, "-1": -1}),
    "double": {"2.5D": 2.5},
    "boolean": {"true": True},
    **dict.fromkeys(("string", "varchar(5)", "varchar(9)"), {"'p'": "p", "'it''s'": "it's"}),
    "date": {"DATE'2020-02-29'": dt.date(2020, 2, 29)},
    "timestamp_ntz": {"TIMESTAMP_NTZ'2020-02-29 01:02:03'": dt.datetime(2020, 2, 29, 1, 2, 3)},
    **dict.fromkeys(("decimal(12,2)", "decimal(16,4)"), {"1.50BD": Decimal("1.5")}),
}
for literals in DEFAULTS.values():
    VALUES_OF_DEFAULTS.update(literals)
TRANSFORMS = {
    "identity": (
        "byte",
        "integer",
        "long",
        "string",
        "varchar(5)",
        "varchar(9)",
        "date",
        "boolean",
        "decimal(12,2)",
        "timestamp_ntz",
    ),
    "hour": ("timestamp_ntz",),
    "bucket": ("integer", "long", "string", "date", "decimal(12,2)"),
    "truncate": ("integer", "long", "string", "decimal(12,2)"),
}


def _struct(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields}


def fields_of(
    type: st.SearchStrategy[Any], most: int = 2, names: st.SearchStrategy[str] = NAMES
) -> st.SearchStrategy[list[dict[str, Any]]]:
    field = st.fixed_dictionaries(
        {"name": names, "type": type, "nullable": st.just(True), "metadata": st.just({})}
    )
    return st.lists(field, min_size=1, max_size=most, unique_by=lambda each: each["name"])


types: st.SearchStrategy[Any] = st.sampled_from(list(VALUES)) | st.recursive(
    st.sampled_from(list(VALUES)),
    lambda inner: (
        fields_of(inner, names=NESTED_NAMES).map(lambda fields: {"type": "struct", "fields": fields})
        | inner.map(lambda type: {"type": "array", "elementType": type, "containsNull": True})
        | st.tuples(
            st.sampled_from(["integer", "string"])
            | fields_of(st.just("integer"), names=NESTED_NAMES).map(_struct),
            inner,
        ).map(
            lambda types: {
                "type": "map",
                "keyType": types[0],
                "valueType": types[1],
                "valueContainsNull": True,
            }
        )
    ),
    max_leaves=4,
)


def first_step(draw: Draw) -> Step:
    return _new_step(draw, "create")


def draw_step(draw: Draw, model: Model, *, with_late: bool = False) -> Step:
    """Return a step. With `with_late`, writes may be to a version before the newest, beside compactions."""
    late = ["append-late"] * 4 + ["overwrite-late"] * 4 + ["compact"] * 3 if with_late else []
    kind = draw(
        st.sampled_from(
            ["alter"] * 16 + ["append"] * 7 + ["overwrite"] + ["overwrite-partitions"] * 2 + ["delete"] * 3
            + ["set-current", "rollback"] * 2 + ["truncate", "create", "replace", "rename-table"] + late
        )
    )  # fmt: skip
    match kind:
        case "alter":
            return {"do": "alter", "changes": draw_changes(draw, model)}
        case "append" | "overwrite":
            return {"do": kind, **_rows(draw, model.state.columns)}
        case "append-late":
            version = draw(st.sampled_from(sorted(model.past)[-5:]))
            return {"do": kind, "at": version, **_rows(draw, model.past[version].columns)}
        case "overwrite-late":
            version = draw(st.sampled_from(sorted(model.past)[-5:]))
            columns = model.past[version].columns
            where = draw_condition(draw, columns)
            if where is None:
                return {"do": "compact"}
            return {"do": kind, "at": version, "where": where, **_rows(draw, columns)}
        case "overwrite-partitions":
            if not model.state.partitions or any(by != "identity" for _, by in model.state.partitions):
                kind = "append"
            return {"do": kind, **_rows(draw, model.state.columns)}
        case "delete":
            where = draw_condition(draw, model.state.columns)
            return {"do": "truncate"} if where is None else {"do": "delete", "where": where}
        case "rollback" | "set-current":
            return {"do": kind, "version": draw(st.sampled_from(sorted(model.past)))}
        case "create" | "replace":
            return _new_step(draw, kind)
        case _:
            return {"do": kind}


def _new_step(draw: Draw, kind: str) -> Step:
    fields = draw(fields_of(types, most=3))
    usable = [field["name"] for field in fields if field["type"] in TRANSFORMS["identity"]]
    by = draw(st.lists(st.sampled_from(usable), max_size=1)) if usable and len(fields) > 1 else []
    return {"do": kind, "columns": fields, "partitions": by}


def draw_changes(draw: Draw, model: Model) -> list[dict[str, Any]]:
    columns = model.state.columns
    every = list(walk(columns))
    structs: list[Path] = [
        (),
        *(p for p, column in every if isinstance(column.type, Nested) and column.type.kind == "struct"),
    ]
    paths = [(path, column) for path, column in every if len(path) == 1 or path[:-1] in structs]
    flat = [column for column in columns if isinstance(column.type, str)]
    path, each = draw(st.sampled_from(paths))
    nearby_texts = [
        other_texts[-1] for other_texts, _ in paths if other_texts[:-1] == path[:-1] and other_texts != path
    ]
    position = st.sampled_from(["first", *({"after": name} for name in nearby_texts)])
    kind = draw(
        st.sampled_from(
            ["add"] * 4 + ["drop"] * 3 + ["rename"] * 3 + ["widen"] * 4
            + ["move", "default", "required", "nullable", "partition", "unpartition", "sort", "cluster", "check"]
            + ["uncheck", "property", "replace"]
        )
    )  # fmt: skip
    if kind == "widen":
        return [_widened(draw, every)]
    if kind in ("default", "partition", "sort", "cluster", "check") and not flat:
        kind = "add"
    match kind:
        case "drop":
            if len(columns) == 1 and len(path) == 1:
                return [{"change": "set-property", "key": "k", "value": "kept"}]
            return [{"change": "delete-column", "name": list(path)}]
        case "rename":
            return [
                {
                    "change": "rename-column",
                    "name": list(path),
                    "new_name": draw((NESTED_NAMES if path[1:] else NAMES).filter(lambda n: n != path[-1])),
                }
            ]
        case "move":
            return [{"change": "update-column-position", "name": list(path), "position": draw(position)}]
        case "required" | "nullable":
            path, _ = draw(st.sampled_from(every))
            return [
                {"change": "update-column-nullability", "name": list(path), "nullable": kind == "nullable"}
            ]
        case "default":
            of = draw(st.sampled_from(flat))
            return [
                {"change": "update-column-default", "name": [of.name], "default": _default(draw, of.type)}
            ]
        case "partition":
            fields = [
                _transformed(e.name, by) for e in flat for by, fit in TRANSFORMS.items() if e.type in fit
            ]
            if fields and len(columns) > 1:
                return [{"change": "add-partition-field", "field": draw(st.sampled_from(fields))}]
        case "unpartition":
            names = {e.number: e.name for e in columns}
            if model.state.partitions:
                number, by = draw(st.sampled_from(model.state.partitions))
                return [{"change": "drop-partition-field", "field": _transformed(names[number], by)}]
        case "sort":
            names_of_flat = st.lists(st.sampled_from([e.name for e in flat]), unique=True, max_size=2)
            return [{"change": "set-sort-order", "fields": draw(names_of_flat)}]
        case "cluster":
            chosen_lists = draw(st.lists(st.sampled_from([e.name for e in flat]), unique=True, max_size=2))
            return [{"change": "set-clustering", "columns": [[name] for name in chosen_lists]}]
        case "check":
            condition = draw_condition(draw, tuple(flat))
            if condition is not None and condition.op != "IS NULL":
                constraint = {"name": draw(st.sampled_from(["c1", "c2"]))}
                return [{"change": "add-constraint", "constraint": constraint, "condition": condition}]
        case "uncheck":
            name = draw(st.sampled_from([check[0] for check in model.state.checks] or ["c1"]))
            return [{"change": "drop-constraint", "name": name}]
        case "replace":
            old = [{"change": "delete-column", "name": [e.name]} for e in columns]
            return old + [
                {"change": "add-column", "name": [e["name"]], "type": e["type"]}
                for e in draw(fields_of(types))
            ]
        case "property":
            return [{"change": "set-property", "key": "k", "value": draw(st.sampled_from("xy"))}]
    return [_added(draw, draw(st.sampled_from(structs)), columns)]


def _widened(draw: Draw, every: list[tuple[Path, Column]]) -> dict[str, Any]:
    atomic = [(path, column) for path, column in every if isinstance(column.type, str)]
    wider = [(path, column) for path, column in atomic if column.type in WIDER]
    path, each = draw(st.sampled_from(wider or atomic))
    new = draw(st.sampled_from(WIDER.get(str(each.type), (each.type,))))
    return {"change": "update-column-type", "name": list(path), "type": new}


def _added(draw: Draw, holder: Path, columns: tuple[Column, ...]) -> dict[str, Any]:
    siblings = [path[-1] for path, _ in walk(columns) if path[:-1] == holder]
    if len(siblings) > 4:
        return {"change": "delete-column", "name": [*holder, draw(st.sampled_from(siblings))]}
    names = NESTED_NAMES if holder else NAMES
    name = draw(names if draw(st.integers(0, 5)) == 0 else names.filter(lambda each: each not in siblings))
    change: dict[str, Any] = {"change": "add-column", "name": [*holder, name], "type": draw(types)}
    if draw(st.booleans()):
        change["position"] = draw(st.sampled_from(["first", *({"after": name} for name in siblings)]))
    if not holder and str(change["type"]) in DEFAULTS and draw(st.booleans()):
        change["default"] = _default(draw, change["type"])
        change["nullable"] = draw(st.booleans())
    return change


def _default(draw: Draw, type: Type) -> dict[str, Any] | None:
    of_type = list(DEFAULTS.get(str(type), ()))
    return {"current": draw(st.sampled_from(of_type))} if of_type else None


def _transformed(name: str, by: str) -> dict[str, Any]:
    arguments = {"bucket": {"args": [3]}, "truncate": {"args": [4]}}.get(by, {})
    return {"column": [name], **({} if by == "identity" else {"transform": by}), **arguments}


def draw_condition(draw: Draw, columns: tuple[Column, ...]) -> Condition | None:
    """Return a condition on a top-level column; None if there is none to compare."""
    flat = [column for column in columns if isinstance(column.type, str)]
    if not flat:
        return None
    chosen = draw(st.sampled_from(flat))
    op = draw(
        st.sampled_from(["=", "<", ">=", ">", "IS NULL"] if chosen.type != "boolean" else ["=", "IS NULL"])
    )
    return Condition(
        chosen.name, op, None if op == "IS NULL" else draw(st.sampled_from(VALUES[str(chosen.type)]))
    )


def _rows(draw: Draw, columns: tuple[Column, ...]) -> dict[str, Any]:
    """Some rows, which have the same columns: all of them, or all but one."""
    left_out = (
        draw(st.none() | st.none() | st.sampled_from([column.name for column in columns]))
        if len(columns) > 1
        else None
    )
    given_columns = [column for column in columns if column.name != left_out]
    rows: list[Row] = [
        {column.name: _value(draw, column) for column in given_columns}
        for _ in range(draw(st.integers(1, 2)))
    ]
    return {"columns": [column.name for column in given_columns], "rows": rows}


def _value(draw: Draw, column: Column) -> Any:
    if not column.required and draw(st.integers(0, 3)) == 0:
        return None
    type = column.type
    if isinstance(type, str):
        return draw(st.sampled_from(VALUES[type]))
    match type.kind:
        case "struct":
            return {part.name: _value(draw, part) for part in type.parts}
        case "array":
            return [_value(draw, type.parts[0]) for _ in range(draw(st.integers(0, 2)))]
        case _:
            pairs = [
                (_value(draw, type.parts[0]), _value(draw, type.parts[1]))
                for _ in range(draw(st.integers(0, 2)))
            ]
            return list({repr(key): (key, value) for key, value in pairs}.values())
