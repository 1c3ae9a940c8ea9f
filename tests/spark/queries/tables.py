"""What a table is to be after a life of statements: columns, and rows as SQL literals by id. No lakelog, no Spark.

A step is data: it is written as statements for lakelog, and done to the model. Its conditions are such that the model
needs no engine: they speak of ids, of NULL, and of values that are written in one way only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.spark.queries import values

Cell = str | dict[str, str] | None
"""A literal; of a struct its fields, or None. Literals of columns that were widened are casts of the old ones."""

Row = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    default: str | None = None

    @property
    def is_struct(self) -> bool:
        return self.type.startswith("struct<")

    def text(self, cell: Cell) -> str:
        if cell is None:
            return f"CAST(NULL AS {self.type})"
        return values.struct(cell, self.type) if isinstance(cell, dict) else cell

    def declared(self) -> str:
        return f"{self.name} {self.type}" + (f" DEFAULT {self.default}" if self.default else "")


@dataclass(frozen=True, slots=True)
class State:
    """A table at one version; `id` is a column that no step changes, and is different in all rows."""

    columns: tuple[Column, ...]
    rows: dict[int, Row] = field(default_factory=dict)

    def column(self, name: str) -> Column:
        """KeyError if a step that was left out would have added it."""
        return {column.name: column for column in self.columns}[name]

    def literals(self, rows: dict[int, Row]) -> list[str]:
        return [
            f"({', '.join([f'{id}L', *(column.text(row.get(column.name)) for column in self.columns)])})"
            for id, row in rows.items()
        ]

    def present(self) -> dict[str, list[str]]:
        """Return literals of the values of each column, except NULL and structs."""
        found = {"id": [f"{id}L" for id in self.rows]}
        for column in self.columns:
            cells = dict.fromkeys(row.get(column.name) for row in self.rows.values() if not column.is_struct)
            found[column.name] = [
                cell for cell in cells if isinstance(cell, str) and not cell.startswith("CAST(NULL ")
            ]
        return found

    def edited(self, columns: tuple[Column, ...], change: Callable[[Row], Row]) -> State:
        return State(columns, {id: change(dict(row)) for id, row in self.rows.items()})


@dataclass(frozen=True, slots=True)
class Condition:
    """`kind` is ids, rest (of the id by `value[0]` is `value[1]`), from (an id on), equal, null or all."""

    kind: str
    value: Any = None
    column: str = "id"

    def text(self, state: State) -> str:
        match self.kind:
            case "ids":
                return f"id IN ({', '.join(map(str, self.value))})"
            case "rest":
                return f"id % {self.value[0]} = {self.value[1]}"
            case "from":
                return f"id >= {self.value}"
            case "equal":
                return f"{self.column} = {self.value}"
            case "null":
                return f"{self.column} IS NULL"
        return "true"

    def holds(self, id: int, row: Row) -> bool:
        cell = row.get(self.column)
        match self.kind:
            case "ids":
                return id in self.value
            case "rest":
                return id % self.value[0] == self.value[1]
            case "from":
                return id >= self.value
            case "equal":
                return cell == self.value
            case "null":
                return cell is None or (isinstance(cell, str) and cell.startswith("CAST(NULL "))
        return True


@dataclass(frozen=True, slots=True)
class Step:
    """One statement. `kind` is the name of a function below; `plain` ones leave rows and columns as they are."""

    kind: str
    condition: Condition | None = None
    rows: dict[int, Row] = field(default_factory=dict)
    column: Column | None = None
    name: str = ""
    text: str = ""
    cells: Row = field(default_factory=dict)
    clauses: tuple[str, ...] = ()

    def statements(self, table: str, state: State) -> list[str]:
        return [text for text in _WRITTEN[self.kind](self, table, state) if text]

    def done(self, state: State) -> State:
        return _DONE[self.kind](self, state)

    def with_rows(self, rows: dict[int, Row]) -> Step:
        return replace(self, rows=rows)


def _insert(step: Step, table: str, state: State) -> list[str]:
    names = ", ".join(["id", *(column.name for column in state.columns)])
    rows = ", ".join(state.literals(step.rows))
    return [f"INSERT INTO {table} ({names}) VALUES {rows}"] if step.rows else []


def _inserted_state(step: Step, state: State) -> State:
    return replace(state, rows={**state.rows, **step.rows})


def _overwrite(step: Step, table: str, state: State) -> list[str]:
    names = ", ".join(["id", *(column.name for column in state.columns)])
    rows = ", ".join(state.literals(step.rows))
    return [f"INSERT OVERWRITE {table} ({names}) VALUES {rows}"] if step.rows else []


def _overwritten(step: Step, state: State) -> State:
    return replace(state, rows=step.rows or state.rows)


def _delete(step: Step, table: str, state: State) -> list[str]:
    assert step.condition is not None
    return [f"DELETE FROM {table} WHERE {step.condition.text(state)}"]


def _deleted_state(step: Step, state: State) -> State:
    assert step.condition is not None
    return replace(
        state, rows={id: row for id, row in state.rows.items() if not step.condition.holds(id, row)}
    )


def _update(step: Step, table: str, state: State) -> list[str]:
    assert step.condition is not None
    cells = [f"{name} = {state.column(name).text(cell)}" for name, cell in step.cells.items()]
    return [f"UPDATE {table} SET {', '.join(cells)} WHERE {step.condition.text(state)}"]


def _updated_state(step: Step, state: State) -> State:
    assert step.condition is not None
    return replace(
        state,
        rows={
            id: {**row, **step.cells} if step.condition.holds(id, row) else row
            for id, row in state.rows.items()
        },
    )


def _merge(step: Step, table: str, state: State) -> list[str]:
    if not step.rows:
        return []
    names = ["id", *(column.name for column in state.columns)]
    source = f"SELECT * FROM VALUES {', '.join(state.literals(step.rows))} AS v({', '.join(names)})"
    changed_text = ", ".join(f"t.{name} = s.{name}" for name in names[1:])
    texts = {
        "update": f"WHEN MATCHED THEN UPDATE SET {changed_text}",
        "delete": "WHEN MATCHED THEN DELETE",
        "delete some": "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE",
        "insert": f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join('s.' + name for name in names)})",
        "prune": "WHEN NOT MATCHED BY SOURCE AND t.id % 3 = 0 THEN DELETE",
    }
    clauses = " ".join(texts[clause] for clause in step.clauses)
    return [f"MERGE INTO {table} AS t USING ({source}) AS s ON t.id = s.id {clauses}"]


def _merged_state(step: Step, state: State) -> State:
    if not step.rows:
        return state
    rows = dict(state.rows)
    for id, row in step.rows.items():
        if id not in state.rows:
            if "insert" in step.clauses:
                rows[id] = row
        elif "delete some" in step.clauses and id % 2 == 0 or "delete" in step.clauses:
            del rows[id]
        elif "update" in step.clauses:
            rows[id] = row
    if "prune" in step.clauses:
        rows = {id: row for id, row in rows.items() if id in step.rows or id % 3}
    return replace(state, rows=rows)


def _add_column(step: Step, table: str, state: State) -> list[str]:
    assert step.column is not None
    return [f"ALTER TABLE {table} ADD COLUMN {step.column.declared()} {step.text}"]


def _placed_columns(step: Step, columns: tuple[Column, ...], column: Column) -> tuple[Column, ...]:
    # `id` stays the first: what is to be the first here is written AFTER id.
    other_columns = [each_column for each_column in columns if each_column.name != column.name]
    text_after = step.text.removeprefix("AFTER ")
    if not step.text:
        return (*other_columns, column)
    place = {"id": 0, **{column.name: 1 + place for place, column in enumerate(other_columns)}}[text_after]
    return (*other_columns[:place], column, *other_columns[place:])


def _column_added(step: Step, state: State) -> State:
    column = step.column
    assert column is not None
    columns = _placed_columns(step, state.columns, column)
    return state.edited(columns, lambda row: {**row, column.name: column.default})


def _drop_column(step: Step, table: str, state: State) -> list[str]:
    return [f"ALTER TABLE {table} DROP COLUMN {step.name}"]


def _column_dropped(step: Step, state: State) -> State:
    columns = tuple(column for column in state.columns if column.name != step.name)
    return state.edited(columns, lambda row: {name: cell for name, cell in row.items() if name != step.name})


def _rename_column(step: Step, table: str, state: State) -> list[str]:
    return [f"ALTER TABLE {table} RENAME COLUMN {step.name} TO {step.text}"]


def _column_renamed(step: Step, state: State) -> State:
    def name(old: str) -> str:
        return step.text if old == step.name else old

    columns = tuple(replace(column, name=name(column.name)) for column in state.columns)
    return state.edited(columns, lambda row: {name(old): cell for old, cell in row.items()})


def _widen_column(step: Step, table: str, state: State) -> list[str]:
    return [f"ALTER TABLE {table} ALTER COLUMN {step.name} TYPE {step.text}"]


def _column_widened(step: Step, state: State) -> State:
    def wider(row: Row) -> Row:
        cell = row.get(step.name)
        return row if cell is None else {**row, step.name: f"CAST({cell} AS {step.text})"}

    columns = tuple(
        replace(column, type=step.text) if column.name == step.name else column for column in state.columns
    )
    # A cast to a text's length would be another thing than the text.
    return state.edited(columns, (lambda row: row) if values.is_text(step.text) else wider)


def _change_collation(step: Step, table: str, state: State) -> list[str]:
    collation = step.text.partition(" collate ")[2] or "UTF8_BINARY"
    return [f"ALTER TABLE {table} ALTER COLUMN {step.name} TYPE STRING COLLATE {collation}"]


def _collation_changed(step: Step, state: State) -> State:
    def recollated_row(row: Row) -> Row:
        cell = row.get(step.name)
        return {**row, step.name: values.recollated(cell, step.text)} if isinstance(cell, str) else row

    columns = tuple(
        replace(column, type=step.text) if column.name == step.name else column for column in state.columns
    )
    return state.edited(columns, recollated_row)


def _move_column(step: Step, table: str, state: State) -> list[str]:
    return [f"ALTER TABLE {table} ALTER COLUMN {step.name} {step.text}"]


def _column_moved(step: Step, state: State) -> State:
    return replace(state, columns=_placed_columns(step, state.columns, state.column(step.name)))


def _of_struct(
    state: State, name: str, fields: list[tuple[str, str]], change: Callable[[dict], dict]
) -> State:
    type = f"struct<{','.join(f'{text}:{of}' for text, of in fields)}>"
    columns = tuple(replace(column, type=type) if column.name == name else column for column in state.columns)

    def changed_row(row: Row) -> Row:
        cell = row.get(name)
        return {**row, name: change(cell)} if isinstance(cell, dict) else row

    return state.edited(columns, changed_row)


def _add_field(step: Step, table: str, state: State) -> list[str]:
    assert step.column is not None
    return [f"ALTER TABLE {table} ADD COLUMN {step.name}.{step.column.name} {step.column.type}"]


def _field_added(step: Step, state: State) -> State:
    new = step.column
    assert new is not None
    fields = [*values.nested(state.column(step.name).type)[0], (new.name, new.type)]
    return _of_struct(state, step.name, fields, lambda cell: {**cell, new.name: f"CAST(NULL AS {new.type})"})


def _drop_field(step: Step, table: str, state: State) -> list[str]:
    return [f"ALTER TABLE {table} DROP COLUMN {step.name}.{step.text}"]


def _field_dropped(step: Step, state: State) -> State:
    fields = [
        each_pair for each_pair in values.nested(state.column(step.name).type)[0] if each_pair[0] != step.text
    ]
    return _of_struct(
        state, step.name, fields, lambda cell: {name: of for name, of in cell.items() if name != step.text}
    )


def _statement(step: Step, table: str, state: State) -> list[str]:
    return [step.text.replace("{table}", table)]


def _unchanged_state(step: Step, state: State) -> State:
    return state


def _in_other_hands(step: Step, table: str, state: State) -> list[str]:
    return []


_WRITTEN: dict[str, Callable[[Step, str, State], list[str]]] = {
    "insert": _insert, "overwrite": _overwrite, "delete": _delete, "update": _update, "merge": _merge,
    "add column": _add_column, "drop column": _drop_column, "rename column": _rename_column,
    "widen column": _widen_column, "change collation": _change_collation, "move column": _move_column,
    "add field": _add_field, "drop field": _drop_field,
    "statement": _statement, "append by Python": _in_other_hands, "add files": _in_other_hands,
    "compact": _in_other_hands,
}  # fmt: skip

_DONE: dict[str, Callable[[Step, State], State]] = {
    "insert": _inserted_state, "overwrite": _overwritten, "delete": _deleted_state, "update": _updated_state,
    "merge": _merged_state,
    "add column": _column_added, "drop column": _column_dropped, "rename column": _column_renamed,
    "widen column": _column_widened, "change collation": _collation_changed, "move column": _column_moved,
    "add field": _field_added, "drop field": _field_dropped, "statement": _unchanged_state,
    "append by Python": _inserted_state, "add files": _inserted_state, "compact": _unchanged_state,
}  # fmt: skip
