"""Random lives of tables: how they are created, and the statements that they go through."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.spark.queries import values
from tests.spark.queries.tables import Cell, Column, Condition, Row, State, Step

NAMES = {
    "bo": "boolean", "ti": "tinyint", "si": "smallint", "i": "int", "j": "int", "l": "bigint", "f": "float",
    "x": "double",
    "de": "decimal(5,2)", "dd": "decimal(20,4)", "k": "string", "s": "string", "v": "varchar(12)", "c": "char(4)",
    "bi": "binary", "d": "date", "ts": "timestamp", "tn": "timestamp_ntz", "ar": "array<int>", "tx": "array<string>",
    "m": "map<string,int>", "n": "struct<x:int,y:string>", "o": "struct<x:bigint,y:string,z:date>",
    "p": "array<struct<x:int,y:string>>", "q": "struct<x:int,s:struct<u:int,v:boolean>>",
    "kl": "string collate UTF8_LCASE", "ku": "string collate UNICODE_CI", "kr": "string collate UTF8_BINARY_RTRIM",
    "nl": "struct<x:int,y:string collate UTF8_LCASE>", "au": "array<string collate UNICODE_CI>",
}  # fmt: skip
"""Columns of one name have one type in all tables, until a table changes it, so that joins by name find partners."""

FILTERED = frozenset(
    ["tinyint", "smallint", "int", "bigint", "decimal", "string", "varchar", "binary", "date"]
    + ["timestamp", "timestamp_ntz"]
)
"""Types of which files may have Bloom filters."""

ROWS_AT_ONCE = [0, 1, 2, 3, 5, 8, 13]


@dataclass(frozen=True, slots=True)
class Life:
    """A table: its first columns, what else its CREATE says, its steps. After `kept` ones, versions are read."""

    name: str
    columns: tuple[Column, ...]
    options: str
    steps: tuple[Step, ...]
    kept: frozenset[int] = frozenset()
    features: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass
class _Living:
    chance: random.Random
    state: State
    partitions: list[str]
    steps: list[Step] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=lambda: NAMES)
    next_id: int = 1
    widened: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    """Columns that the table is, or was, partitioned, ordered or clustered by: these stay as they are."""

    def partition(self, transform: str) -> None:
        self.partitions.append(transform)
        self.pinned.add(transform.rpartition("(")[2].rpartition(" ")[2].rstrip(")"))

    @property
    def free(self) -> list[Column]:
        return [column for column in self.state.columns if column.name not in self.pinned]

    def add(self, step: Step, feature: str = "") -> None:
        self.steps.append(step)
        self.state = step.done(self.state)
        self.features.append(feature or step.kind)


def life(
    chance: random.Random, name: str, steps: int, *, is_twin: bool = False, collations: bool = True
) -> Life:
    """Return a random life. Tables that are twins are partitioned alike at first, so that joins move no rows."""
    known_types = {text: type for text, type in NAMES.items() if collations or "collate" not in type}
    names = chance.sample(sorted(known_types), chance.randint(4, 9))
    columns = tuple(Column(name, NAMES[name]) for name in names)
    mode = chance.choice(["merge-on-read", "copy-on-write"])
    properties = ", ".join(
        f"'lakelog.write.{operation}.mode' = '{mode}'" for operation in ("delete", "update", "merge")
    )
    living = _Living(chance, State(columns), [], names=known_types)
    features = [
        mode,
        *(f"column: {each_column.type}" for each_column in columns if "collate" in each_column.type),
    ]
    layout = ""
    match 0 if is_twin else chance.randrange(6):
        case 0 | 1 | 2:
            fields = (
                ["bucket(3, id)"] if is_twin else chance.sample(_transforms(living), chance.choice([1, 1, 2]))
            )
            for field in fields:
                living.partition(field)
            layout = f"PARTITIONED BY ({', '.join(fields)})" if fields else ""
            features += [
                f"partitioned by {each_field.partition('(')[0] if '(' in each_field else 'identity'}"
                for each_field in fields
            ]
        case 3:
            flat = [
                "id",
                *(column.name for column in columns if column.type in ("int", "bigint", "string", "date")),
            ]
            chosen_texts = chance.sample(flat, min(2, len(flat)))
            living.pinned.update(chosen_texts)
            layout = f"CLUSTER BY ({', '.join(chosen_texts)})"
            features.append("clustered")
    if chance.random() < 0.07:
        steps = 0
        features.append("empty table")
    else:
        first = Step("insert", rows=_rows(living, chance.choice([2, 10, 20])))
        if _may_have_files_of_others(living) and chance.random() < 0.3:
            _add_files(living, first.rows)
        else:
            living.add(first)
    while len(living.steps) < steps:
        _grow(living)
    kept_range = chance.sample(range(len(living.steps)), min(chance.choice([0, 1, 1, 2]), len(living.steps)))
    filtered_texts = _filtered_texts(columns)
    if filtered_texts:
        properties += f", 'lakelog.bloom-filter.columns' = '{', '.join(filtered_texts)}'"
        features.append("Bloom filters")
    options = f"{layout} TBLPROPERTIES ({properties})"
    return Life(
        name, columns, options, tuple(living.steps), frozenset(kept_range), tuple(features + living.features),
        tuple(sorted(living.pinned)),
    )  # fmt: skip


def _filtered_texts(columns: Sequence[Column]) -> list[str]:
    """Return the columns with Bloom filters: of every second table, all that may have one. No chance is taken for it,
    so that the same seeds are the same lives."""
    if len(columns) % 2:
        return []
    return [column.name for column in columns if column.type.partition("(")[0] in FILTERED]


def _grow(living: _Living) -> None:
    kinds = {
        _add_insert: 8, _add_delete: 6, _add_update: 4, _add_merge: 3, _add_column: 2, _drop_column: 1,
        _rename_column: 1, _widen_column: 2, _change_collation: 2, _move_column: 1, _add_field: 1, _drop_field: 1,
        _compact: 1, _evolve_partitions: 2, _add_partition: 1, _order: 1, _by_python: 2, _overwrite: 1, _add_files: 2,
        _analyze: 1, _change_mode: 1,
    }  # fmt: skip
    if len(living.names) < len(NAMES):
        del kinds[_change_collation]
    chosen_kind = living.chance.choices(list(kinds), list(kinds.values()))[0]
    chosen_kind(living)


def _cell(living: _Living, column: Column, nulls: float = 0.15) -> Cell:
    if column.is_struct:
        if living.chance.random() < nulls:
            return None
        fields = values.nested(column.type)[0]
        return {name: values.literal(living.chance, of, nulls) for name, of in fields}
    text = values.literal(living.chance, column.type, nulls)
    return None if text.startswith("CAST(NULL ") else text


def _row(living: _Living) -> Row:
    return {column.name: _cell(living, column) for column in living.state.columns}


def _rows(living: _Living, least: int = 0) -> dict[int, Row]:
    count = max(least, living.chance.choice(ROWS_AT_ONCE))
    first = living.next_id
    living.next_id += count
    found_rows = {first + place: _row(living) for place in range(count)}
    # All rows of a write alike in some columns make statistics that say much.
    for column in living.state.columns:
        if found_rows and living.chance.random() < 0.25:
            cell = _cell(living, column)
            for row in found_rows.values():
                row[column.name] = cell
    return found_rows


def _insert(living: _Living) -> Step:
    return Step("insert", rows=_rows(living, 1))


def _add_insert(living: _Living) -> None:
    if living.chance.random() < 0.4:
        for _ in range(4):
            living.add(_insert(living), "small files")
    else:
        living.add(_insert(living))


def _condition(living: _Living) -> Condition:
    chance, state = living.chance, living.state
    exact = [
        column for column in state.columns
        if column.name not in living.widened and not values.is_nested(column.type) and not values.is_real(column.type)
        and not values.is_text(column.type) and not values.is_collated(column.type)
    ]  # fmt: skip
    match chance.randrange(6):
        case 0 | 1:
            ids = sorted(state.rows) or [1]
            return Condition("ids", chance.sample(ids, min(len(ids), chance.randint(1, 4))))
        case 2:
            return Condition("rest", (chance.choice([2, 3, 5]), chance.randrange(2)))
        case 3 if exact and state.rows:
            column = chance.choice(exact)
            cell = state.rows[chance.choice(sorted(state.rows))].get(column.name)
            if isinstance(cell, str):
                return Condition("equal", cell, column.name)
        case 4 if state.columns:
            return Condition("null", column=chance.choice(state.columns).name)
        case 5 if chance.random() < 0.15:
            return Condition(chance.choice(["all", "from"]), chance.randint(1, 10))
    return Condition("from", max(1, living.next_id - chance.randint(1, 5)))


def _add_delete(living: _Living) -> None:
    living.add(Step("delete", _condition(living)))


def _add_update(living: _Living) -> None:
    columns = living.chance.sample(living.state.columns, min(2, len(living.state.columns)))
    if columns:
        cells = {column.name: _cell(living, column) for column in columns}
        living.add(Step("update", _condition(living), cells=cells))


def _add_merge(living: _Living) -> None:
    chance, state = living.chance, living.state
    rows = _rows(living)
    for id in chance.sample(sorted(state.rows), min(len(state.rows), 4)):
        rows[id] = _row(living)
    matched_texts = chance.choice([("update",), ("delete",), ("delete some", "update"), ("delete some",), ()])
    other_texts = [operation for operation in ("insert", "prune") if chance.random() < 0.6]
    if matched_texts or other_texts:
        living.add(Step("merge", rows=rows, clauses=(*matched_texts, *other_texts)))


def _place(living: _Living) -> str:
    names = ["id", *(column.name for column in living.state.columns)]
    return living.chance.choice(["", f"AFTER {living.chance.choice(names)}"])


def _add_column(living: _Living) -> None:
    present = {column.name for column in living.state.columns}
    free = [name for name in living.names if name not in present]
    if not free:
        return
    name = living.chance.choice(free)
    column = Column(name, NAMES[name])
    if not values.is_nested(column.type) and column.type != "binary" and living.chance.random() < 0.5:
        cell = _cell(living, column, nulls=0)
        assert isinstance(cell, str)
        column = replace(column, default=cell)
    living.widened.discard(name)
    living.add(Step("add column", column=column, text=_place(living)), "default" if column.default else "")


def _drop_column(living: _Living) -> None:
    if len(living.free) > 3:
        living.add(Step("drop column", name=living.chance.choice(living.free).name))


def _rename_column(living: _Living) -> None:
    if living.free:
        old = living.chance.choice(living.free)
        new = f"{old.name}2" if not old.name.endswith("2") else old.name[:-1]
        if old.name in living.widened:
            living.widened.add(new)
        if new not in {column.name for column in living.state.columns}:
            living.add(Step("rename column", name=old.name, text=new))


def _widen_column(living: _Living) -> None:
    able = [column for column in living.free if column.type in values.WIDER]
    if able:
        column = living.chance.choice(able)
        living.widened.add(column.name)
        living.add(
            Step("widen column", name=column.name, text=living.chance.choice(values.WIDER[column.type]))
        )


def _change_collation(living: _Living) -> None:
    """Bounds of the files that are there are then of another order than the column's, or of it again."""
    able = [column for column in living.free if column.type in values.COLLATIONS]
    if able:
        column = living.chance.choice(able)
        new = living.chance.choice([text for text in values.COLLATIONS if text != column.type])
        living.add(Step("change collation", name=column.name, text=new))


def _move_column(living: _Living) -> None:
    names = [column.name for column in living.state.columns]
    if len(names) > 1:
        name, text_after = living.chance.sample(names, 2)
        living.add(Step("move column", name=name, text=f"AFTER {living.chance.choice(['id', text_after])}"))


def _add_field(living: _Living) -> None:
    structs = [column for column in living.state.columns if column.is_struct]
    if structs:
        column = living.chance.choice(structs)
        present = {name for name, _ in values.nested(column.type)[0]}
        free = sorted({"x", "y", "z", "w", "e"} - present)
        if free:
            new = Column(
                living.chance.choice(free), living.chance.choice(["int", "string", "date", "bigint"])
            )
            living.add(Step("add field", name=column.name, column=new))


def _drop_field(living: _Living) -> None:
    structs = [c for c in living.state.columns if c.is_struct and len(values.nested(c.type)[0]) > 1]
    if structs:
        column = living.chance.choice(structs)
        name = living.chance.choice(values.nested(column.type)[0])[0]
        living.add(Step("drop field", name=column.name, text=name))


def _compact(living: _Living) -> None:
    living.add(Step("compact"))


def _transforms(living: _Living) -> list[str]:
    """Return what a table may be partitioned by; `id` too, which all tables have."""
    texts = ["bucket(3, id)", "truncate(4, id)"]
    for column in living.state.columns:
        name, type = column.name, column.type
        if values.is_nested(type) or values.is_real(type) or values.is_collated(type):
            continue
        texts.append(name)
        if type in ("int", "bigint", "string", "binary", "date", "timestamp") or values.is_decimal(type):
            texts.append(f"bucket({living.chance.choice([2, 3])}, {name})")
        if type in ("int", "bigint", "string") or values.is_decimal(type):
            texts.append(f"truncate({living.chance.choice([1, 2])}, {name})")
        if type in ("date", "timestamp", "timestamp_ntz"):
            texts += [f"{each_name}({name})" for each_name in ("years", "months", "days")]
        if type in ("timestamp", "timestamp_ntz"):
            texts.append(f"hours({name})")
    return texts


def _evolve_partitions(living: _Living) -> None:
    chance = living.chance
    if living.partitions and chance.random() < 0.4:
        old = living.partitions.pop()
        living.add(
            Step("statement", text=f"ALTER TABLE {{table}} DROP PARTITION FIELD {old}"), "partition evolution"
        )
    else:
        new = chance.choice(_transforms(living))
        if new not in living.partitions:
            living.partition(new)
            living.add(
                Step("statement", text=f"ALTER TABLE {{table}} ADD PARTITION FIELD {new}"),
                "partition evolution",
            )
    if chance.random() < 0.7:
        living.add(_insert(living))


def _add_partition(living: _Living) -> None:
    columns = [column for column in living.state.columns if [column.name] == living.partitions]
    if columns and columns[0].type in ("int", "bigint", "string", "date", "boolean"):
        cell = _cell(living, columns[0], nulls=0)
        living.add(
            Step(
                "statement",
                text=f"ALTER TABLE {{table}} ADD IF NOT EXISTS PARTITION ({columns[0].name} = {cell})",
            ),
            "empty partition",
        )


def _order(living: _Living) -> None:
    flat = [c.name for c in living.state.columns if c.type in ("int", "bigint", "string", "date", "double")]
    if flat:
        name = living.chance.choice(flat)
        living.pinned.add(name)
        living.add(Step("statement", text=f"ALTER TABLE {{table}} WRITE ORDERED BY {name}"), "ordered")


def _by_python(living: _Living) -> None:
    living.add(Step("append by Python", rows=_rows(living, 1)))


def _overwrite(living: _Living) -> None:
    living.add(Step("overwrite", rows=_rows(living, 1)))


def _may_have_files_of_others(living: _Living) -> bool:
    texts = ("char", "varchar")
    return not living.partitions and not any(c.type.startswith(texts) for c in living.state.columns)


def _add_files(living: _Living, rows: dict[int, Row] | None = None) -> None:
    if _may_have_files_of_others(living):
        text = living.chance.choice(["", "no statistics"])
        step = Step("add files", rows=rows or _rows(living, 1), text=text)
        living.add(step, f"add files, {text or 'with statistics'}")


def _analyze(living: _Living) -> None:
    text = "ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS"
    living.add(Step("statement", text=text), "analyzed")


def _change_mode(living: _Living) -> None:
    mode = living.chance.choice(["merge-on-read", "copy-on-write"])
    text = f"ALTER TABLE {{table}} SET TBLPROPERTIES ('lakelog.write.delete.mode' = '{mode}')"
    living.add(Step("statement", text=text), "mode changed")
