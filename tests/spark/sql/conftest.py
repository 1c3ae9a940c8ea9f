"""Spark's own catalogs, as the reference for lakelog's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.conftest import Place

from lakelog.spark.jar import _build, spark_jars
from lakelog.testing import memory_catalog

_numbers = itertools.count()


@pytest.fixture(scope="session")
def spark_has_memory_catalogs(spark: SparkSession) -> None:
    """Fails if they are not there; tests that ask for this make the fixture `spark` put them on the class path."""
    memory_catalog.memory_catalog_jars()


@pytest.fixture(scope="session")
def classes_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar of the classes that tests here bring along."""
    return _build(
        Path(__file__).parent / "classes", spark_jars(), tmp_path_factory.mktemp("jars") / "classes.jar"
    )


@pytest.fixture
def make_memory(spark: SparkSession, spark_has_memory_catalogs: None) -> Callable[[str], Place]:
    """Makes an empty catalog of one of the classes that `lakelog.testing.memory_catalog` names."""

    def make(kind: str) -> Place:
        name = f"memory{next(_numbers)}"
        spark.conf.set(f"spark.sql.catalog.{name}", kind)
        return Place(spark, name)

    return make


@pytest.fixture
def memory(make_memory: Callable[[str], Place]) -> Place:
    """Spark's in-memory catalog: tables with rows, nested namespaces, functions, procedures."""
    return make_memory(memory_catalog.TABLES)


@pytest.fixture
def memory_rows(make_memory: Callable[[str], Place]) -> Place:
    """Spark's in-memory catalog of partitioned tables whose rows can be deleted, updated and merged."""
    return make_memory(memory_catalog.ROWS)


@pytest.fixture
def memory_views(make_memory: Callable[[str], Place]) -> Place:
    """Spark's in-memory catalog of definitions of tables and views."""
    return make_memory(memory_catalog.RELATIONS)


@pytest.fixture
def memory_partitions(make_memory: Callable[[str], Place]) -> Place:
    """Spark's in-memory catalog whose tables have partitions that can be added and dropped."""
    return make_memory(memory_catalog.PARTITIONS)
