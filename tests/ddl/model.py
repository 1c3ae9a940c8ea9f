"""What a table is to be after any sequence of statements: lists of rows and columns, without a line of lakelog's.

A step is a dict as `steps` draws it; `changes` of an alter are in the words of the Python client.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.ddl.columns import (
    SAME_PARTITIONS,
    WIDER,
    Cells,
    Column,
    Nested,
    Path,
    Refused,
    below,
    column,
    edited,
    find,
    has_null,
    placed,
    refuse_equal_keys,
    shown,
    type_of,
    walk,
    written,
)

Row = dict[str, Any]
Step = dict[str, Any]
COMPARE = {"=": operator.eq, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
VALUES_OF_DEFAULTS: dict[str, Any] = {}
"""By the SQL of a literal; `steps` fills it."""


@dataclass(frozen=True)
class Condition:
    """`column op value` for a top-level column, or `column IS NULL`."""

    column: str
    op: str
    value: Any = None

    def holds(self, row: Row) -> bool | None:
        found = row[self.column]
        if self.op == "IS NULL":
            return found is None
        return None if found is None else bool(COMPARE[self.op](found, self.value))


@dataclass(frozen=True)
class State:
    """A table at one version. `partitions` are numbers and transforms, and `former` those that it ever had; `life` is
    what a replace of the table ends."""

    columns: tuple[Column, ...]
    rows: tuple[Cells, ...]
    life: int
    partitions: tuple[tuple[int, str], ...] = ()
    former: frozenset[tuple[int, str]] = frozenset()
    sorted: tuple[int, ...] = ()
    clustered: tuple[int, ...] = ()
    checks: tuple[tuple[str, int, Condition], ...] = ()
    properties: frozenset[tuple[str, str]] = frozenset()

    def seen(self) -> list[Row]:
        return [shown(self.columns, cells) for cells in self.rows]


@dataclass
class Model:
    """`past` has every version of the table that is called so now."""

    state: State
    past: dict[int, State] = field(default_factory=dict)
    lives: int = 1

    def after(self, step: Step) -> tuple[State, bool]:
        """Return the table after `step`, and whether lakelog may also refuse it. Refused if it has to."""
        match step["do"]:
            case "alter":
                state, sure = self.state, True
                for change in step["changes"]:
                    state, is_known = self._altered(state, change)
                    sure = sure and is_known
                return state, not sure
            case "append":
                return replace(self.state, rows=self.state.rows + self._new(step)), False
            case "append-late":
                return self._appended_late(step), True
            case "overwrite":
                return replace(self.state, rows=self._new(step)), False
            case "overwrite-late":
                return self._overwritten_late(step), True
            case "overwrite-partitions":
                return self._overwritten(step)
            case "truncate":
                return replace(self.state, rows=()), False
            case "delete":
                rows = zip(self.state.rows, self.state.seen(), strict=True)
                kept_cells = tuple(cells for cells, row in rows if not step["where"].holds(row))
                return replace(self.state, rows=kept_cells), True
            case "create" | "replace":
                return self.made(step), False
            case "rollback":
                past_state = self.past[step["version"]]
                self.lives += 1
                # A column that is no timestamp again is not partitioned by hours any more.
                types = {node.number: node.type for _, node in walk(past_state.columns)}
                former = {
                    (number, by)
                    for number, by in self.state.former
                    if by != "hour" or types.get(number, "timestamp_ntz") == "timestamp_ntz"
                }
                return replace(
                    past_state,
                    life=past_state.life if past_state.life == self.state.life else self.lives,
                    former=past_state.former | former,
                ), False
            case "set-current":
                return self._with_rows_of(step["version"])
            case _:
                assert step["do"] in ("rename-table", "compact")
                return self.state, False

    def made(self, step: Step) -> State:
        self.lives += 1
        columns = tuple(
            column(each_column["name"], each_column["type"], not each_column["nullable"])
            for each_column in step["columns"]
        )
        state = State(columns, (), self.lives)
        for name in step.get("partitions", ()):
            state = replace(
                state, partitions=(*state.partitions, (find(columns, (name,)).number, "identity"))
            )
        state = replace(state, former=frozenset(state.partitions))
        return replace(state, rows=self._new(step, state)) if step.get("rows") else state

    # Rows

    def _new(self, step: Step, state: State | None = None) -> tuple[Cells, ...]:
        state = state or self.state
        made: list[Cells] = []
        for row in step["rows"]:
            cells: Cells = {}
            for own_column in state.columns:
                cells[own_column.number] = (
                    written(own_column.type, row[own_column.name])
                    if own_column.name in row
                    else own_column.default
                )
                if own_column.required and cells[own_column.number] is None:
                    raise Refused(f"{own_column.name} is NOT NULL")
            made.append(cells)
        self._check(replace(state, rows=tuple(made)))
        return tuple(made)

    def _appended_late(self, step: Step) -> State:
        """The rows were written to the table as it was at a version, and are committed to the present table."""
        base_state = self.past[step["at"]]
        if base_state.life != self.state.life:
            raise Refused("replaced since")
        new = self._new(step, base_state)
        refuse_equal_keys(base_state.columns, self.state.columns)
        base_types = {node.number: node.type for _, node in walk(base_state.columns)}
        shown_rows = [shown(self.state.columns, cells) for cells in new]
        for path, node in walk(self.state.columns):
            base_type = base_types.get(node.number, node.type)
            if (
                isinstance(base_type, str)
                and base_type != node.type
                and node.type not in WIDER.get(base_type, ())
            ):
                raise Refused(f"{path} was of a wider type")
            column = find(self.state.columns, path[:1])
            if node.required and any(has_null(column.type, row[path[0]], path[1:]) for row in shown_rows):
                raise Refused(f"{path} is required now")
        state = replace(self.state, rows=self.state.rows + new)
        self._check(state)
        return state

    def _overwritten_late(self, step: Step) -> State:
        """The replaced rows are those that match as the columns were at a version."""
        columns, where = self.past[step["at"]].columns, step["where"]
        state = self._appended_late(step)
        count = len(self.state.rows)
        kept_cells = [cells for cells in self.state.rows if not where.holds(shown(columns, cells))]
        return replace(state, rows=(*kept_cells, *state.rows[count:]))

    def _check(self, state: State) -> None:
        for name, _, condition in state.checks:
            if any(condition.holds(row) is False for row in state.seen()):
                raise Refused(f"the constraint {name}")

    def _overwritten(self, step: Step) -> tuple[State, bool]:
        """Every row in one of the partitions that the new rows are in goes; all are identities."""
        new = self._new(step)
        names = [
            column.name
            for number, _ in self.state.partitions
            for column in self.state.columns
            if column.number == number
        ]

        def key(cells: Cells) -> tuple[Any, ...]:
            row = shown(self.state.columns, cells)
            return tuple(row[name] for name in names)

        touched_keys = {key(cells) for cells in new}
        kept_cells = tuple(cells for cells in self.state.rows if key(cells) not in touched_keys)
        # Rows of an older partitioning may be in several partitions of this one.
        return replace(self.state, rows=kept_cells + new), True

    def _with_rows_of(self, version: int) -> tuple[State, bool]:
        then, current_state = self.past[version], self.state
        if then.life != current_state.life:
            raise Refused("replaced since")
        refuse_equal_keys(then.columns, current_state.columns)
        columns_before = {each_node.number: each_node for _, each_node in walk(then.columns)}
        for path, node in walk(current_state.columns):
            old = columns_before.get(node.number)
            if old is None:
                if self._had(node.number, version):
                    raise Refused(f"{path} was dropped, and has come back")
                holder = find(current_state.columns, path[:-1]).number if path[:-1] else None
                if node.required and node.before is None and (holder is None or holder in columns_before):
                    raise Refused(f"{path} is required now")
            elif node.required and not old.required:
                raise Refused(f"{path} is NOT NULL now")
            elif (
                isinstance(old.type, str)
                and old.type != node.type
                and node.type not in WIDER.get(old.type, ())
            ):
                raise Refused(f"{path} was of a wider type")
        state = replace(current_state, rows=then.rows)
        self._check(state)
        return state, bool(set(current_state.checks) - set(then.checks))

    def _had(self, number: int, version: int) -> bool:
        """Return whether the table had a column in a version or before it."""
        states = [state for at, state in self.past.items() if at <= version]
        return any(node.number == number for state in states for _, node in walk(state.columns))

    # Changes of the definition

    def _altered(self, state: State, change: dict[str, Any]) -> tuple[State, bool]:
        """Return the table after one change, and whether lakelog cannot but do it."""
        path: Path = tuple(change.get("name") or ()) if isinstance(change.get("name"), list) else ()
        match change["change"]:
            case "add-column":
                return self._added(state, path, change), True
            case "rename-column":
                self._refuse_checked(state, path)
                return self._changed(state, path, name=change["new_name"]), True
            case "delete-column":
                return self._deleted(state, path), True
            case "update-column-type":
                return self._retyped(state, path, change["type"]), True
            case "update-column-position":
                moved_column = find(state.columns, path)

                def move(columns: tuple[Column, ...]) -> tuple[Column, ...]:
                    other_columns = tuple(
                        column for column in columns if column.number != moved_column.number
                    )
                    return placed(other_columns, moved_column, change["position"])

                return replace(state, columns=edited(state.columns, path[:-1], move)), True
            case "update-column-default":
                default = change["default"]
                value = None if default is None else VALUES_OF_DEFAULTS[default["current"]]
                return self._changed(state, path, default=value), True
            case "update-column-nullability":
                return self._required(state, path, not change["nullable"])
            case "add-partition-field":
                written_field = change["field"]
                source = (
                    find(state.columns, tuple(written_field["column"])).number,
                    written_field.get("transform", "identity"),
                )
                if source in state.partitions:
                    raise Refused("is partitioned by that already")
                return replace(
                    state, partitions=(*state.partitions, source), former=state.former | {source}
                ), True
            case "drop-partition-field":
                written_field = change["field"]
                source = (
                    find(state.columns, tuple(written_field["column"])).number,
                    written_field.get("transform", "identity"),
                )
                if source not in state.partitions:
                    raise Refused("is not partitioned by that")
                return replace(
                    state,
                    partitions=tuple(partition for partition in state.partitions if partition != source),
                ), True
            case "set-sort-order":
                return replace(state, sorted=self._numbers(state, change["fields"])), True
            case "set-clustering":
                return replace(
                    state, clustered=self._numbers(state, [path[0] for path in change["columns"]])
                ), True
            case "add-constraint":
                return self._with_check(state, change["condition"], change["constraint"]["name"])
            case "drop-constraint":
                remaining_checks = tuple(check for check in state.checks if check[0] != change["name"])
                if remaining_checks == state.checks:
                    raise Refused("no such constraint")
                return replace(state, checks=remaining_checks), True
            case _:
                assert change["change"] == "set-property"
                other_properties = {
                    property_ for property_ in state.properties if property_[0] != change["key"]
                }
                return replace(
                    state, properties=frozenset(other_properties | {(change["key"], change["value"])})
                ), True

    def _numbers(self, state: State, names: list[str]) -> tuple[int, ...]:
        return tuple(find(state.columns, (name,)).number for name in names)

    def _changed(self, state: State, path: Path, **what: Any) -> State:
        def change(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            changed_columns = tuple(
                replace(column, **what) if column.name == path[-1] else column for column in columns
            )
            if len({column.name.lower() for column in changed_columns}) < len(changed_columns):
                raise Refused("two of a name")
            return changed_columns

        find(state.columns, path)
        return replace(state, columns=edited(state.columns, path[:-1], change))

    def _added(self, state: State, path: Path, change: dict[str, Any]) -> State:
        default = change.get("default")
        value = None if default is None else VALUES_OF_DEFAULTS[default["current"]]
        is_required = not change.get("nullable", True)
        if is_required and value is None:
            raise Refused("NOT NULL without a default")
        new = column(path[-1], change["type"], is_required, value, value)
        has_map = any(isinstance(node.type, Nested) and node.type.kind == "map" for _, node in walk((new,)))
        if has_map and ("key", "map") in self._kinds(state, path):
            raise Refused("a map in a key")

        def add(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            if any(column.name.lower() == new.name.lower() for column in columns):
                raise Refused("is there already")
            return placed(columns, new, change.get("position"))

        return replace(state, columns=edited(state.columns, path[:-1], add))

    def _deleted(self, state: State, path: Path) -> State:
        removed_numbers = below(find(state.columns, path))
        above = {find(state.columns, path[:length]).number for length in range(1, len(path))}
        used_numbers = {number for number, _ in state.partitions} | {*state.sorted, *state.clustered}
        if removed_numbers & used_numbers or (removed_numbers | above) & {
            number for _, number, _ in state.checks
        }:
            raise Refused("is used")
        if "key" in [step for step, kind in self._kinds(state, path) if kind == "map"]:
            raise Refused("part of a key")

        def drop(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            if len(columns) == 1 and len(path) > 1:
                raise Refused("the last one")
            return tuple(column for column in columns if column.name != path[-1])

        return replace(state, columns=edited(state.columns, path[:-1], drop))

    def _kinds(self, state: State, path: Path) -> list[tuple[str, str]]:
        """Return each name of a path below the first with the kind of type that it is a part of."""
        holders = [find(state.columns, path[:length]).type for length in range(1, len(path))]
        return [
            (name, holder.kind)
            for name, holder in zip(path[1:], holders, strict=True)
            if isinstance(holder, Nested)
        ]

    def _retyped(self, state: State, path: Path, json: Any) -> State:
        old = find(state.columns, path)
        new = type_of(json)
        if old.type == new:
            return state
        if not (isinstance(old.type, str) and isinstance(new, str) and new in WIDER.get(old.type, ())):
            raise Refused("no widening")
        self._refuse_checked(state, path)
        if old.number in {number for number, _ in state.former} and (old.type, new) not in SAME_PARTITIONS:
            raise Refused("would move rows")
        return self._changed(state, path, type=new)

    def _refuse_checked(self, state: State, path: Path) -> None:
        numbers = below(find(state.columns, path)) | {
            find(state.columns, path[:length]).number for length in range(1, len(path))
        }
        if numbers & {number for _, number, _ in state.checks}:
            raise Refused("a CHECK needs it")

    def _required(self, state: State, path: Path, required: bool) -> tuple[State, bool]:
        if find(state.columns, path).required == required:
            return state, True
        if not required:
            if self._kinds(state, path)[-1:] == [("key", "map")]:
                raise Refused("keys are never NULL")
            return self._changed(state, path, required=False), True
        column = find(state.columns, path[:1])
        if any(has_null(column.type, row[path[0]], path[1:]) for row in state.seen()):
            raise Refused("a row is NULL there")
        # A client that does not read rows needs statistics that show it.
        return self._changed(state, path, required=True), False

    def _with_check(self, state: State, condition: Condition, name: str) -> tuple[State, bool]:
        if any(check[0].lower() == name.lower() for check in state.checks):
            raise Refused("there is one of that name")
        number = find(state.columns, (condition.column,)).number
        state = replace(state, checks=(*state.checks, (name, number, condition)))
        self._check(state)
        return state, False
