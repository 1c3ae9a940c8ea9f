"""Builds tables in a session, each beside plain Parquet tables with the rows that a model says it has.

The plain rows are literals: nothing of them has been read through lakelog.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.spark.queries import values
from tests.spark.queries.comparing import Side
from tests.spark.queries.lives import Life, life
from tests.spark.queries.selects import Table
from tests.spark.queries.sql import TableRef
from tests.spark.queries.tables import State, Step

from lakelog.catalog import Catalog
from lakelog.log.errors import LakelogError

SETTINGS: dict[str, list[str]] = {
    "spark.sql.adaptive.enabled": ["true", "true", "false"],
    "spark.sql.autoBroadcastJoinThreshold": ["10485760", "-1", "-1"],
    "spark.sql.codegen.wholeStage": ["true", "false"],
    "spark.sql.parquet.enableVectorizedReader": ["true", "true", "false"],
    "spark.sql.sources.v2.bucketing.enabled": ["true", "true", "false"],
    "spark.sql.sources.v2.bucketing.allowKeysSubsetOfPartitionKeys.enabled": ["true", "false"],
    "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": ["true", "false"],
    "spark.sql.sources.v2.bucketing.shuffle.enabled": ["true", "false"],
    "spark.sql.requireAllClusterKeysForCoPartition": ["true", "false"],
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ["true", "false", "false"],
    "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": ["10MB"],
    "spark.sql.cbo.enabled": ["true", "false"],
}
"""What a world draws, for both sides. Spark reads and joins in other ways then, and asks a scan for other things."""


@dataclass
class World:
    """Tables of one seed, as lakelog has them in `catalog` and as Parquet files in `folder`."""

    spark: SparkSession
    catalog: str
    warehouse: str
    folder: Path
    name: str
    conf: tuple[tuple[str, str], ...] = ()
    states: dict[TableRef, State] = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)
    refused: list[tuple[Step, str]] = field(default_factory=list)
    kept: dict[tuple[str, int], TableRef] = field(default_factory=dict)
    """The version of a table after a step, by the place of the step."""

    script: list[str] = field(default_factory=list)
    """All that was done to make the tables, as calls of `sql`, `append` and `parquet`, to be done again."""

    @property
    def tables(self) -> list[Table]:
        found = []
        for ref, state in self.states.items():
            # A text of a certain length is a text in each expression.
            flat = tuple(
                (column.name, "string" if values.is_text(column.type) else column.type)
                for column in state.columns
            )
            columns = (("id", "bigint"), *flat)
            keys = self.lives[ref.name].keys
            found.append(Table(ref, columns, keys, state.present(), len(state.rows)))
        return found

    def lake(self, catalog: str | None = None, conf: Sequence[tuple[str, str]] = ()) -> Side:
        return Side("lake", self.lake_table, catalog or self.catalog, tuple(conf))

    def plain(self) -> Side:
        """Spark's files are read as they are: its filters on dictionaries take -0.0 for another number than 0.0."""
        return Side(
            "plain",
            self.plain_table,
            self.catalog,
            (("spark.sql.parquet.filterPushdown", "false"),),
        )

    def lake_table(self, ref: TableRef) -> str:
        version = f" VERSION AS OF {ref.version!r}" if ref.version is not None else ""
        return f"lake.{self.name}.{ref.name}{version}"

    def plain_table(self, ref: TableRef) -> str:
        version = "" if ref.version is None else f"_{ref.version}"
        return f"spark_catalog.default.plain_{self.name}_{ref.name}{version}"

    def run(self, statement: str) -> None:
        self.script.append(f"sql({statement.replace(str(self.folder), '{folder}')!r})")
        self.spark.sql(statement.replace("lake.", f"{self.catalog}.")).collect()

    def build(self, lives: Sequence[Life]) -> None:
        self.run(f"CREATE NAMESPACE lake.{self.name}")
        for table_life in lives:
            self._build(table_life)

    def _build(self, of: Life) -> None:
        table = f"lake.{self.name}.{of.name}"
        columns = ", ".join(["id BIGINT", *(column.declared() for column in of.columns)])
        self.run(f"CREATE TABLE {table} ({columns}) {of.options}")
        self.lives[of.name] = of
        state = State(of.columns)
        for place, step in enumerate(of.steps):
            try:
                state_after = step.done(state)
                self._step(of.name, table, step, state)
            except (PySparkException, Py4JJavaError, LakelogError, KeyError) as error:
                self.refused.append((step, f"{step.kind} {step.text}: {str(error)[:400]}"))
                continue
            state = state_after
            if place in of.kept:
                ref = self.kept[of.name, place] = TableRef(of.name, self._version(of.name, place))
                if ref not in self.states:
                    self._keep(ref, state)
        self._keep(TableRef(of.name), state)

    def _version(self, name: str, place: int) -> int | str:
        """Return by what the table's newest version can be read for good: its number, or a tag."""
        if place % 3 == 0:
            self.run(f"ALTER TABLE lake.{self.name}.{name} CREATE TAG after{place}")
            return f"after{place}"
        return Catalog(self.warehouse).load_table(f"{self.name}.{name}").version

    def _step(self, name: str, table: str, step: Step, state: State) -> None:
        for statement in step.statements(table, state):
            self.run(statement)
        match step.kind:
            case "append by Python":
                self.script.append(f"append({f'{self.name}.{name}'!r}, {self._rows(step, state)!r})")
                rows = self.spark.sql(self._rows(step, state)).toArrow()
                Catalog(self.warehouse).load_table(f"{self.name}.{name}").append(rows)
            case "add files":
                folder = self.folder / "foreign" / f"{name}-{min(step.rows)}"
                place = str(folder).replace(str(self.folder), "{folder}")
                self.script.append(
                    f"parquet({place!r}, {self._rows(step, state)!r}, statistics={not step.text})"
                )
                writer = self.spark.sql(self._rows(step, state)).coalesce(1).write
                if step.text:
                    writer = writer.option("parquet.column.statistics.enabled", "false")
                writer.parquet(str(folder))
                self.run(f"CALL lake.system.add_files('{self.name}.{name}', '{folder}')")
            case "compact":
                clustering = Catalog(self.warehouse).load_table(f"{self.name}.{name}").clustering
                self.run(f"CALL lake.system.{'cluster' if clustering else 'compact'}('{self.name}.{name}')")

    def _rows(self, step: Step, state: State) -> str:
        names = ", ".join(["id", *(column.name for column in state.columns)])
        return f"SELECT * FROM VALUES {', '.join(state.literals(step.rows))} AS v({names})"

    def _keep(self, ref: TableRef, state: State) -> None:
        """Write the rows of a state to a plain table."""
        self.states[ref] = state
        table = self.plain_table(ref)
        columns = ", ".join(["id BIGINT", *(f"{column.name} {column.type}" for column in state.columns)])
        self.run(f"DROP TABLE IF EXISTS {table}")
        self.run(
            f"CREATE TABLE {table} ({columns}) USING parquet LOCATION '{self.folder}/{table.rpartition('.')[2]}'"
        )
        if state.rows:
            self.run(f"INSERT INTO {table} VALUES {', '.join(state.literals(state.rows))}")

    def drop(self) -> None:
        for ref in self.states:
            self.spark.sql(f"DROP TABLE IF EXISTS {self.plain_table(ref)}")


def drawn(seed: int, tables: int, steps: int) -> tuple[list[Life], tuple[tuple[str, str], ...]]:
    """Return the lives of a world's tables and its settings. Half of the worlds have columns with collations."""
    chance = random.Random(f"world {seed}")
    collations = random.Random(f"collations {seed}").random() < 0.5
    twins = chance.sample(range(tables), 2) if tables > 1 and chance.random() < 0.7 else []
    lives = [
        life(chance, f"t{number}", chance.randint(2, steps), is_twin=number in twins, collations=collations)
        for number in range(tables)
    ]
    return lives, tuple((key, chance.choice(choices)) for key, choices in SETTINGS.items())
