"""The fixtures that lakelog gives its users, used as a user would: in a project of its own, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = 'pytest_plugins = ["lakelog.testing.fixtures"]\n'

WITHOUT_SPARK = """
import pyarrow as pa

SCHEMA = pa.schema({"id": pa.int64()})

def check(catalog):
    assert catalog.list_namespaces() == []
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", SCHEMA).append(pa.table({"id": [1]}))
    catalog.create_table("loose", SCHEMA)
    assert catalog.load_table("shop.orders").row_count == 1

def test_a_folder(lakelog_catalog, lakelog_warehouse):
    check(lakelog_catalog)
    assert lakelog_catalog.warehouse == lakelog_warehouse

def test_the_folder_is_empty_again(lakelog_catalog):
    check(lakelog_catalog)

def test_s3(lakelog_s3_catalog, lakelog_s3_warehouse):
    check(lakelog_s3_catalog)
    assert lakelog_s3_catalog.warehouse == lakelog_s3_warehouse

def test_s3_is_empty_again(lakelog_s3_catalog):
    check(lakelog_s3_catalog)
"""

WITH_SPARK = """
import pytest

@pytest.fixture(scope="session")
def lakelog_spark_conf():
    return {"spark.sql.shuffle.partitions": "1"}

def check(spark, catalog):
    spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql("CREATE TABLE lake.shop.orders AS SELECT 1 AS id")
    assert catalog.load_table("shop.orders").row_count == 1
    assert [row.id for row in spark.table("lake.shop.orders").collect()] == [1]

def test_a_folder(lakelog_spark, lakelog_catalog):
    assert lakelog_spark.conf.get("spark.sql.shuffle.partitions") == "1"
    check(lakelog_spark, lakelog_catalog)

def test_the_folder_is_empty_again(lakelog_spark, lakelog_catalog):
    check(lakelog_spark, lakelog_catalog)

def test_s3(lakelog_s3_spark, lakelog_s3_catalog):
    check(lakelog_s3_spark, lakelog_s3_catalog)

def test_s3_is_empty_again(lakelog_s3_spark, lakelog_s3_catalog):
    check(lakelog_s3_spark, lakelog_s3_catalog)
"""


def run_project(folder: Path, *codes: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    for number, code in enumerate(codes):
        (folder / f"test_{number}.py").write_text(code, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.s3
@pytest.mark.adapter
def test_catalogs_come_empty_on_a_folder_and_on_s3_and_spark_sessions_see_the_same(tmp_path: Path) -> None:
    assert "8 passed" in run_project(tmp_path, WITHOUT_SPARK, WITH_SPARK)
