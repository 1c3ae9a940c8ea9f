"""Rows that are deleted, updated and overwritten by a random condition are those that Spark finds by it in a plain
Parquet table, whatever lakelog decides from metadata, and whatever Spark hands down of the condition."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr
from tests.spark.conftest import Lake
from tests.spark.rows import conditions
from tests.spark.rows.decided import AT_ONCE, Decided, decide
from tests.spark.sql.rows import MODES, in_mode

pytestmark = pytest.mark.adapter

ROWS = 14
LAYOUTS = {
    "a row a file": ("", 1),
    "some rows a file": ("", 3),
    "one file": ("", ROWS),
    "by texts": ("PARTITIONED BY (c, truncate(2, s), bucket(3, v))", 3),
    "by others": ("PARTITIONED BY (bo, bucket(2, c), truncate(1, c), months(ts), truncate(10, d))", 1),
}
"""How a table is partitioned, and how many rows go into one file at most."""

SETTINGS = {
    "spark.sql.timeType.enabled": ["true"],
    "spark.sql.codegen.wholeStage": ["false"],
    "spark.sql.codegen.factoryMode": ["NO_CODEGEN"],
    "spark.sql.ansi.enabled": ["true", "true", "false"],
    "spark.sql.readSideCharPadding": ["true", "true", "true", "false"],
    "spark.sql.legacy.charVarcharAsString": ["false", "false", "false", "true"],
    "spark.sql.legacy.noCharPaddingInPredicate": ["false", "false", "false", "true"],
    "spark.sql.session.timeZone": ["UTC", "America/New_York"],
}
"""What a session may have set, for both sides."""

SHARES = {"select": 0.5, "delete": 1, "overwrite": 0.5, "write": 0.3, "update": 0.25, "merge": 0.25}
"""How often each is done. Most is decided from metadata for the second and the third."""

NAMED = [
    "c LIKE 'a'", "c NOT LIKE 'a'", "NOT (c LIKE 'a')", "lake.truncate(2, c) = 'ab'", "lake.truncate(2, c) <> 'ab'",
    "lake.truncate(2, c) IN ('ab', 'x')", "st.c = 'a'", "st.c <> 'a'", "st.c > 'a'", "st.c NOT IN ('a', 'b')",
    "st.n.c >= 'ab'", "c BETWEEN 'a' AND 'ab'", "c = 'a'", "c NOT IN ('a', 'ab ')", "upper(c) BETWEEN 'A' AND 'AB'",
]  # fmt: skip
"""Of texts that Spark has padded, or has not."""

COMPUTED_ONCE = {
    "nullif(concat(s, ''), 'a') = 'b'": ("delete", "update", "merge"),
    "c NOT BETWEEN 'a' AND 'ab'": ("overwrite",),
}
"""A part of each stands in several places, and Spark computes it once. It pads no text there."""

MARK = -1
"""The key of the row that an overwrite writes."""


@dataclass
class Report:
    compared: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    from_metadata: int = 0
    found: list[str] = field(default_factory=list)


@dataclass
class World:
    """The same rows in a plain table and in tables of lakelog's, one for each layout."""

    lake: Lake
    chance: random.Random
    plain: str
    report: Report = field(default_factory=Report)
    versions: dict[str, int] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)

    def build(self) -> None:
        columns, sql = conditions.columns(), self.lake.sql
        rows = [conditions.row(self.chance, k) for k in range(ROWS)]
        modes = self.chance.sample(MODES, 2)
        sql(f"CREATE TABLE {self.plain} ({columns}) USING parquet LOCATION '{self.lake.warehouse}-plain'")
        sql(f"INSERT INTO {self.plain} VALUES {', '.join(rows)}")
        for number, (partitioned_text, rows_a_file) in enumerate(LAYOUTS.values()):
            name, mode = f"t{number}", modes[number % 2]
            sql(f"CREATE TABLE lake.{name} ({columns}) {partitioned_text} {in_mode(mode)}")
            spread = f"/*+ REPARTITION_BY_RANGE({-(-ROWS // rows_a_file)}, k) */"
            sql(f"INSERT INTO lake.{name} SELECT {spread} * FROM {self.plain}")
            table = self.lake.catalog.load_table(name)
            assert table.file_count > ROWS // rows_a_file - 2, name
            self.versions[name], self.modes[name] = table.version, mode

    def expected(self, condition: str) -> set[int] | None:
        try:
            return {k for (k,) in self.lake.sql(f"SELECT k FROM {self.plain} WHERE {condition}")}
        except PySparkException as error:
            self.report.failed[error.getCondition() or type(error).__name__] += 1
            return None

    def compare(self, condition: str, settings: dict[str, str], tables: int = 1) -> None:
        """Do with the rows for which a condition is true what is to be done with them, in some of the tables."""
        kinds = [kind for kind, share in SHARES.items() if self.chance.random() < share]
        for name in self.chance.sample(sorted(self.versions), tables):
            self.compare_in(name, condition, settings, kinds)

    def compare_in(self, name: str, condition: str, settings: dict[str, str], kinds: Sequence[str]) -> None:
        expected = self.expected(condition)
        if expected is None:
            return
        range_ = set(range(ROWS))
        for kind, statement, wanted_pairs in (
            ("select", f"SELECT k FROM lake.{name} WHERE {condition}", {(k, k % 3) for k in expected}),
            ("delete", f"DELETE FROM lake.{name} WHERE {condition}", {(k, k % 3) for k in range_ - expected}),
            (
                "update", f"UPDATE lake.{name} SET u = 9 WHERE {condition}",
                {(k, 9 if k in expected else k % 3) for k in range_},
            ),
            (
                "overwrite",
                f"INSERT INTO lake.{name} BY NAME REPLACE WHERE {condition} SELECT {MARK} AS k, 7 AS u",
                {(k, k % 3) for k in range_ - expected} | {(MARK, 7)},
            ),
            ("write", condition, {(k, k % 3) for k in range_ - expected} | {(MARK, 7)}),
            (
                "merge",
                f"MERGE INTO lake.{name} USING (SELECT 1 AS one) ON {condition} WHEN MATCHED THEN DELETE",
                {(k, k % 3) for k in range_ - expected},
            ),
        ):  # fmt: skip
            if kind in kinds:
                self._compare(kind, statement, wanted_pairs, name, settings)

    def _compare(
        self, kind: str, statement: str, wanted: set[tuple[int, int]], name: str, settings: dict[str, str]
    ) -> None:
        table = self.lake.catalog.load_table(name)
        where = f"{kind} of {name}, {self.modes[name]}, {settings}: {statement}"
        self.report.compared[kind] += 1
        try:
            answer = self._done(kind, statement, name)
        except Exception as error:
            text = words_of(error)
            if "V2ExpressionBuilder" in str(error):
                self.report.failed["of Spark"] += 1
            elif "rand(" in statement and kind != "select" and refuses_chance(text):
                self.report.failed["by chance"] += 1
            else:
                self.report.found.append(f"{where}\n    fails: {text}")
            return
        table_after = table.refresh()
        if kind == "select":
            found_pairs = {(k, k % 3) for (k,) in answer}
        else:
            rows = table_after.scan(["k", "u"]).to_arrow()
            found_pairs = set(zip(rows["k"].to_pylist(), rows["u"].to_pylist(), strict=True))
        if table_after.version != self.versions[name] and table_after.version != table.version:
            if kind == "delete" and next(iter(table_after.history(limit=1))).operation == "delete":
                self.report.from_metadata += 1
            table_after.rollback_to_version(self.versions[name])
        if found_pairs != wanted:
            more, less = sorted(found_pairs - wanted), sorted(wanted - found_pairs)
            self.report.found.append(f"{where}\n    too many: {more}, missing: {less}")

    def _done(self, kind: str, statement: str, name: str) -> Sequence[tuple[Any, ...]]:
        if kind != "write":
            return self.lake.sql(statement)
        condition = expr(re.sub(r"\blake\.", f"{self.lake.name}.", statement))
        rows = self.lake.frame(f"SELECT {MARK} AS k, 7 AS u")
        rows.writeTo(f"{self.lake.name}.{name}").overwrite(condition)
        return ()


def words_of(error: Exception) -> str:
    """Return what an error says, and what its causes say, without places in code."""
    lines = str(error).split("JVM stacktrace")[0].splitlines()
    return "\n    ".join(line for line in lines if line.strip() and not line.startswith("\t"))[:2000]


def refuses_chance(text: str) -> bool:
    """Return whether an error says that a condition has another value each time, in lakelog's or Spark's words."""
    return "another value each time" in text or "Non-deterministic expressions are not allowed" in text


@contextmanager
def set_to(lake: Lake, settings: dict[str, str]) -> Iterator[None]:
    conf: Any = lake.spark.conf
    before = {key: conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            conf.set(key, value)


@contextmanager
def built(lake: Lake, seed: int) -> Iterator[World]:
    world = World(lake, random.Random(f"changes {seed}"), f"spark_catalog.default.plain_changes_{seed}")
    lake.sql(f"DROP TABLE IF EXISTS {world.plain}")
    try:
        with set_to(lake, {key: choices[0] for key, choices in SETTINGS.items()}):
            world.build()
        yield world
    finally:
        lake.sql(f"DROP TABLE IF EXISTS {world.plain}")


def decided(world: World, count: int) -> Decided:
    """Decide about so many conditions, a batch for each of some settings."""
    report, chance = Decided(), world.chance
    for _ in range(-(-count // AT_ONCE)):
        # As a DELETE has it: where texts are padded as they are read, Spark pads them before it hands anything down.
        settings = {key: chance.choice(choices) for key, choices in SETTINGS.items()}
        # And what fails for one row would fail for all conditions of a batch.
        ansi = chance.choice(["true", "false", "false", "false"])
        settings |= {"spark.sql.readSideCharPadding": "false", "spark.sql.ansi.enabled": ansi}
        some_conditions = [conditions.condition(chance) for _ in range(AT_ONCE)]
        with set_to(world.lake, settings):
            count_before = len(report.found)
            decide(world.lake, world.plain, sorted(world.versions), some_conditions, report)
            report.found[count_before:] = [f"{settings}: {text}" for text in report.found[count_before:]]
    return report


def run(world: World, count: int, tables: int = 1) -> Report:
    chance = world.chance
    for _ in range(count):
        settings = {key: chance.choice(choices) for key, choices in SETTINGS.items()}
        with set_to(world.lake, settings):
            world.compare(conditions.condition(chance), settings, tables)
    return world.report


def no_difference(world: World, asked: int, changed: int, tables: int) -> None:
    """Decide about many conditions, and change rows by some."""
    said = decided(world, asked)
    assert not said.found, "\n".join(said.found)
    assert said.understood > said.conditions / 5 and said.proven > said.files / 5, said
    report = run(world, changed, tables)
    assert not report.found, "\n".join(report.found)
    assert report.from_metadata >= changed // 10


def test_rows_are_changed_for_which_a_condition_is_true(lake: Lake) -> None:
    with built(lake, 1) as world:
        no_difference(world, AT_ONCE, 2, 1)
        for number, condition in enumerate(NAMED):
            kind = "write" if number == 3 else "delete"
            world.compare_in(f"t{number % 2}", condition, {}, (kind,))
        for condition, kinds in COMPUTED_ONCE.items():
            for name in ("t0", "t1"):
                world.compare_in(name, condition, {}, kinds)
        assert not world.report.found, "\n".join(world.report.found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_rows_are_changed_for_which_one_of_hundreds_of_conditions_is_true(lake: Lake, seed: int) -> None:
    with built(lake, seed) as world:
        no_difference(world, 1_000, 60, 2)
