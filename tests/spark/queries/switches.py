"""What is handed down to a scan, each kind switched off by itself; and each kind broken, which has to be noticed.

Python decides most of what a scan leaves out, so that a switch is a catalog of the same warehouse whose Python side was
started with a few lines of its own. The rest are Spark's settings, or another text of the query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.conftest import add_catalog
from tests.spark.hooks import HOOK
from tests.spark.queries.comparing import Conf, Side
from tests.spark.queries.sql import TableRef
from tests.spark.queries.world import World
from tests.spark.warm import WarmPython


@dataclass(frozen=True, slots=True)
class Switch:
    """`python` runs in a catalog's Python side, `conf` are settings of the session. `kind` is the text of the query,
    `barrier` what a table is read through, in whose place it stands."""

    python: str = ""
    conf: Conf = ()
    kind: str = "lake"
    barrier: bool = False


_PLAN = (
    HOOK
    + """
from msgspec.structs import replace as struct_replace
def without(**values):
    def wrap(original):
        return lambda at, asked: original(at, struct_replace(asked, **values))
    return wrap
"""
)

EVERYTHING = "everything"
"""Filters, limit, top-n and aggregates at once, by a filter that only Spark can apply."""

SWITCHES: dict[str, Switch] = {
    "filters": Switch(
        _PLAN
        + """
from lakelog.catalog import Expression
hook("plan", without(predicate=Expression(op="ALWAYS_TRUE", args=())))
""",
        (("spark.sql.parquet.filterPushdown", "false"),),
    ),
    "limit": Switch(kind="unlimited"),
    "top-n": Switch(_PLAN + "hook('plan', without(top=None))\n"),
    "aggregates": Switch(
        HOOK
        + """
from lakelog.spark.requests.plans import AggregatesKnown
hook("aggregate", lambda original: lambda at, asked: (AggregatesKnown(known=False), b""))
"""
    ),
    "runtime filters": Switch(
        conf=(
            ("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false"),
            ("spark.sql.optimizer.runtime.bloomFilter.enabled", "false"),
        )
    ),
    "Bloom filters": Switch(conf=(("parquet.filter.bloom.enabled", "false"),)),
    "partitioning": Switch(conf=(("spark.sql.sources.v2.bucketing.enabled", "false"),)),
    "nested columns": Switch(conf=(("spark.sql.optimizer.nestedSchemaPruning.enabled", "false"),)),
    "columns in batches": Switch(conf=(("spark.sql.parquet.enableVectorizedReader", "false"),)),
    EVERYTHING: Switch(barrier=True),
}


class Catalogs:
    """Catalogs of one warehouse, which differ in what their Python sides do."""

    def __init__(
        self, spark: SparkSession, warm: WarmPython, folder: Path, warehouse: str, first: str
    ) -> None:
        self._spark = spark
        self._warm = warm
        self._folder = folder
        self._warehouse = warehouse
        self._first = first
        self._made: dict[str, str] = {}

    def with_text(self, text: str) -> str:
        """Return the name of the catalog whose Python side runs that text first."""
        if text not in self._made:
            name = f"{self._first}{len(self._made)}"
            folder = self._folder / name
            folder.mkdir()
            program = self._warm.program(folder, text)
            add_catalog(self._spark, self._warehouse, name=name, python=program)
            self._made[text] = name
        return self._made[text]


def switched(world: World, catalogs: Catalogs, switch: Switch, python: str = "", conf: Conf = ()) -> Side:
    """Return lakelog's side with something switched off. `python` is broken all the same, and `conf` set before."""
    table: Callable[[TableRef], str] = world.lake_table
    if switch.barrier:

        def table(ref: TableRef) -> str:
            return f"(SELECT * FROM {world.lake_table(ref)} WHERE monotonically_increasing_id() >= 0)"

    return Side(switch.kind, table, catalogs.with_text(python + switch.python), (*conf, *switch.conf))
