"""The Spark that runs the tests, and marks for tests of features that only some Sparks have.

A mark `name = needs_spark(…)` stands here. `scripts/docs` writes the table of docs/compatibility.md from all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
SPARK_4_3 = SPARK >= (4, 3)
SPARK_4_2 = SPARK >= (4, 2)
SPARK_4_1 = SPARK >= (4, 1)


def needs_spark(
    version: str, feature: str, words: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test of a feature that Sparks have from `version` on. The page about compatibility names the `feature`.

    With an older Spark, the test has to fail with an error that matches `words`.
    """

    def marked(test: Callable[..., None]) -> Callable[..., None]:
        if tuple(map(int, version.split("."))) <= SPARK:
            return test

        @functools.wraps(test)
        def is_refused(*arguments: Any, **fixtures: Any) -> None:
            with pytest.raises(Exception, match=words):
                test(*arguments, **fixtures)

        return is_refused

    return marked


def evolving_insert(insert: str, *changes: str) -> list[str]:
    """Return INSERT WITH SCHEMA EVOLUTION, for a Spark that lacks it changes of the table and a plain INSERT."""
    return [f"INSERT WITH SCHEMA EVOLUTION {insert}"] if SPARK_4_2 else [*changes, f"INSERT {insert}"]


def read_changes(reader: DataFrameReader | DataStreamReader, table: str) -> DataFrame:
    """Read the changes of a table, of a Spark whose readers have no method for them by an option."""
    return reader.changes(table) if SPARK_4_2 else reader.option("changes", True).table(table)


evolving_writes = needs_spark(
    "4.2", "`INSERT WITH SCHEMA EVOLUTION`, `mergeSchema`", "needs Spark 4.2|Spark 4.2 or newer only"
)
only_where_spark_computes = needs_spark("4.3", "generated columns", "(?i)generat")
evolving_merges = needs_spark(
    "4.2", "`MERGE WITH SCHEMA EVOLUTION` outside of transactions", "would be changed without the write"
)
