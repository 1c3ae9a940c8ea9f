"""Tables that live at random, by Python: written, changed, evolved, compacted, rolled back, branched."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.schema import schema_to_arrow


def _moment(chance: random.Random) -> dt.datetime:
    return dt.datetime(1960, 1, 1) + dt.timedelta(microseconds=chance.randint(0, 10**15))


TYPES: dict[str, Callable[[random.Random], Any]] = {
    "boolean": lambda chance: chance.random() < 0.5,
    "byte": lambda chance: chance.randint(-128, 127),
    "short": lambda chance: chance.randint(-32768, 32767),
    "integer": lambda chance: chance.choice([-(2**31), 0, 7, 2**31 - 1]),
    "long": lambda chance: chance.choice([-(2**63), 0, 7, 2**63 - 1]),
    "float": lambda chance: chance.choice([0.0, -0.0, 1.5, float("inf"), float("nan")]),
    "double": lambda chance: chance.choice([0.0, -0.0, 1e300, float("-inf"), float("nan")]),
    "decimal(9,2)": lambda chance: Decimal(chance.randint(-(10**9) + 1, 10**9 - 1)).scaleb(-2),
    "decimal(38,0)": lambda chance: Decimal(chance.choice(["-" + "9" * 38, "9" * 38, "12345"])),
    "string": lambda chance: chance.choice(["", "a", "ä", "z" * 40, "日本", "a/b=c %"]),
    "varchar(9)": lambda chance: chance.choice(["", "a", "ä b"]),
    "binary": lambda chance: chance.choice([b"", b"\x00\xff", b"z" * 20]),
    "date": lambda chance: dt.date(1960, 1, 1) + dt.timedelta(chance.randint(0, 30_000)),
    "timestamp": lambda chance: _moment(chance).replace(tzinfo=dt.UTC),
    "timestamp_ntz": lambda chance: _moment(chance),
    "time(6)": lambda chance: dt.time(chance.randint(0, 23), chance.randint(0, 59), 7, chance.randint(0, 999_999)),
}  # fmt: skip
NESTED: dict[str, tuple[Any, Callable[[random.Random], Any]]] = {
    "list": (
        {"type": "array", "elementType": {"type": "struct", "fields": [
            {"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}, "containsNull": True},
        lambda chance: [chance.choice([None, {"x": chance.randint(0, 9)}]) for _ in range(chance.randint(0, 3))],
    ),
    "map": (
        {"type": "map", "keyType": "string", "valueType": "decimal(9,2)", "valueContainsNull": True},
        lambda chance: [(key, TYPES["decimal(9,2)"](chance)) for key in ("a", "b")[: chance.randint(0, 2)]],
    ),
    "struct": (
        {"type": "struct", "fields": [
            {"name": "a", "type": "long", "nullable": True, "metadata": {}},
            {"name": "t", "type": "timestamp", "nullable": True, "metadata": {}}]},
        lambda chance: {"a": chance.randint(0, 99), "t": TYPES["timestamp"](chance)},
    ),
}  # fmt: skip
PARTITIONS: list[list[Any]] = [
    [],
    ["k"],
    [{"transform": "bucket", "args": [3], "column": ["id"]}],
    [{"transform": "truncate", "args": [2], "column": ["s"]}, "k"],
    [{"transform": "month", "column": ["d"]}],
    [{"transform": "hour", "column": ["at"]}, {"transform": "year", "column": ["d"]}],
    [{"transform": "day", "column": ["at"]}],
    ["price"],
]


def _source(part: Any) -> str:
    return part if isinstance(part, str) else part["column"][0]


class Life:
    """One table, and what may happen to it next. `types` are those of columns that come later."""

    def __init__(self, catalog: Catalog, chance: random.Random, types: Collection[str] = TYPES) -> None:
        self.chance = chance
        self.types = list(types)
        self.next_id = 0
        self.columns = 0
        fixed_pairs = [
            ("id", "long"), ("k", "integer"), ("s", "string"), ("d", "date"), ("at", "timestamp"),
            ("price", "decimal(9,2)"),
        ]  # fmt: skip
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
        mode = chance.choice(["merge-on-read", "copy-on-write"])
        self.table: Table = catalog.create_table(
            "t",
            schema,
            properties={
                f"lakelog.write.{operation}.mode": mode for operation in ("delete", "update", "merge")
            },
        )
        self.alter(
            *[{"change": "add-column", "name": [name], "type": type} for name, type in fixed_pairs[1:]]
        )
        self.made = {name: TYPES[type] for name, type in fixed_pairs[1:]}
        # Of what may be partitioned by, few values.
        self.made["k"] = lambda chance: chance.randint(0, 2)
        self.made["price"] = lambda chance: Decimal(chance.choice(["-9999999.99", "0.00", "0.07"]))
        self.made["d"] = lambda chance: dt.date(1969, 12, 1) + dt.timedelta(chance.randint(0, 99))
        self.made["at"] = lambda chance: (
            dt.datetime(1969, 12, 31, chance.choice([0, 23]), 7, 9, 1, dt.UTC)
            + dt.timedelta(chance.randint(0, 2))
        )
        if partitions := chance.choice(PARTITIONS):
            self.alter({"change": "set-partitioning", "fields": partitions})

    def alter(self, *changes: dict[str, Any]) -> None:
        self.table = self.table.alter(changes)

    def step(self) -> str:
        """Change the table; return how."""
        steps: list[tuple[int, Callable[[], None]]] = [
            (6, self.append), (4, self.delete), (1, self.delete_much), (1, self.overwrite), (3, self.add_column),
            (1, self.rename_column), (1, self.drop_column), (1, self.widen), (1, self.evolve_partitions),
            (2, self.compact), (1, self.rollback), (1, self.tag), (2, self.branch), (1, self.fast_forward),
            (1, self.change_nested), (1, self.truncate), (1, self.drop_partitioned),
        ]  # fmt: skip
        (chosen,) = self.chance.choices([step for _, step in steps], [weight for weight, _ in steps])
        chosen()
        return chosen.__name__

    def rows(self, count: int) -> pa.Table:
        schema = schema_to_arrow(self.table.schema)
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        columns = {"id": pa.array(ids, pa.int64())}
        for name, make in self.made.items():
            values = [make(self.chance) if self.chance.random() < 0.85 else None for _ in ids]
            columns[name] = pa.array(values, schema.field(name).type)
        return pa.table(columns)

    def append(self) -> None:
        self.table = self.table.append(self.rows(self.chance.choice([1, 3, 20, 200])))

    def ids(self) -> list[int]:
        return self.table.scan(["id"]).to_arrow()["id"].to_pylist()

    def delete(self) -> None:
        ids = self.ids()
        if ids:
            removed_ids = self.chance.sample(ids, min(len(ids), self.chance.randint(1, 5)))
            self.table = self.table.delete(col("id").is_in(removed_ids))

    def delete_much(self) -> None:
        """Delete so many rows here and there that their vectors have no room in the log."""
        self.table = self.table.append(self.rows(3000))
        removed_ids = [id for id in self.ids() if self.chance.random() < 0.4]
        self.table = self.table.delete(col("id").is_in(removed_ids))

    def overwrite(self) -> None:
        low = self.chance.randint(0, self.next_id)
        self.table = self.table.overwrite(self.rows(3), (col("id") >= low) & (col("id") < low + 5))

    def truncate(self) -> None:
        self.table = self.table.truncate()

    def add_column(self) -> None:
        self.columns += 1
        name = f"c{self.columns}"
        if self.chance.random() < 0.3:
            type, make = self.chance.choice(list(NESTED.values()))
            change: dict[str, Any] = {"change": "add-column", "name": [name], "type": type}
        else:
            named_text = self.chance.choice(self.types)
            make = TYPES[named_text]
            change = {"change": "add-column", "name": [name], "type": named_text}
            if named_text in ("integer", "long") and self.chance.random() < 0.5:
                change["default"] = {"current": "7"}
        self.alter(change)
        self.made[name] = make

    def _other(self) -> str | None:
        used_texts = {"id", "k", "s", "d", "at", "price"}
        names = [name for name in self.made if name not in used_texts]
        return self.chance.choice(names) if names else None

    def rename_column(self) -> None:
        name = self._other()
        if name is not None:
            self.columns += 1
            self.alter({"change": "rename-column", "name": [name], "new_name": f"r{self.columns}"})
            self.made[f"r{self.columns}"] = self.made.pop(name)

    def drop_column(self) -> None:
        name = self._other()
        if name is not None:
            self.alter({"change": "delete-column", "name": [name]})
            del self.made[name]

    def widen(self) -> None:
        for name in self.made:
            type = str(self.table.schema.find((name,)).type)
            wider = {
                "integer": "long",
                "float": "double",
                "byte": "integer",
                "decimal(9,2)": "decimal(20,2)",
            }.get(type)
            if wider is not None and name not in ("k", "price"):
                self.alter({"change": "update-column-type", "name": [name], "type": wider})
                return

    def change_nested(self) -> None:
        for field in self.table.schema.fields:
            if str(field.type).startswith("struct<a"):
                self.columns += 1
                self.alter(
                    {"change": "add-column", "name": [field.name, f"n{self.columns}"], "type": "string"}
                )
                return

    def evolve_partitions(self) -> None:
        removed_texts = {"k", "s", "d", "at", "price"} - self.made.keys()
        remaining_partitions = [
            partition for partition in PARTITIONS if not removed_texts & {_source(part) for part in partition}
        ]
        self.alter({"change": "set-partitioning", "fields": self.chance.choice(remaining_partitions)})

    def drop_partitioned(self) -> None:
        """Drop a column that files are partitioned by, and the table no longer is."""
        name = self.chance.choice(["k", "d", "price"])
        if name in self.made and name not in {
            self.table.schema.field_by_id(field.source_id).name for field in self.table.spec.fields
        }:
            self.alter({"change": "delete-column", "name": [name]})
            del self.made[name]

    def compact(self) -> None:
        self.table = self.table.compact()

    def rollback(self) -> None:
        versions = [entry.version for entry in self.table.history()]
        self.table = self.table.set_current_version(self.chance.choice(versions))

    def tag(self) -> None:
        self.columns += 1
        self.table = self.table.create_tag(f"tag{self.columns}")

    def branch(self) -> None:
        """Make a branch, or change one."""
        branches = [name for name, ref in self.table.refs.items() if ref.kind == "branch"]
        if not branches or self.chance.random() < 0.4:
            self.columns += 1
            self.table = self.table.create_branch(f"branch{self.columns}")
            return
        line = self.table.at(ref=self.chance.choice(branches))
        line.append(self.rows(2)) if self.chance.random() < 0.7 else line.delete(
            col("id") < self.next_id // 2
        )
        self.table = self.table.refresh()

    def fast_forward(self) -> None:
        for name, ref in self.table.refs.items():
            main = self.table.table_head.state.main
            if ref.kind == "branch" and main is not None and ref.line.has_all_of("main", main):
                self.table = self.table.fast_forward("main", name)
                return
