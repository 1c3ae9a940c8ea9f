"""pytest fixtures that give a lakelog catalog in a folder or on S3, with or without Spark.

    # conftest.py
    pytest_plugins = ["lakelog.testing.fixtures"]

Warehouses are emptied after each test. The S3 server and Spark's JVM start once, when a test first uses them,
and all tests share them.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lakelog.catalog import Catalog
from lakelog.testing.moto_server import S3Server, moto_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKET = "lakelog"


@pytest.fixture(scope="session")
def lakelog_warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the warehouse's folder, which is emptied after each test that uses a catalog on it."""
    folder = tmp_path_factory.mktemp("lakelog") / "warehouse"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def lakelog_catalog(lakelog_warehouse: str) -> Iterator[Catalog]:
    """Give a catalog in a folder, empty at the start of each test."""
    catalog = Catalog(lakelog_warehouse, options={"fsync": "off"})
    yield catalog
    _empty(catalog)


@pytest.fixture(scope="session")
def lakelog_s3() -> Iterator[S3Server]:
    """Give an S3 server for the whole session, with the bucket `lakelog` and its credentials in the environment."""
    with moto_server(BUCKET) as server, server.credentials():
        yield server


@pytest.fixture(scope="session")
def lakelog_s3_warehouse(lakelog_s3: S3Server) -> str:
    """Return the URL of an empty warehouse on S3, which is emptied after each test that uses a catalog on it."""
    url = f"s3://{BUCKET}/warehouse"
    catalog = Catalog(url, options=lakelog_s3.options)
    catalog.create_namespace("first")  # an empty prefix is no warehouse: the first write creates it
    catalog.drop_namespace("first")
    return url


@pytest.fixture
def lakelog_s3_catalog(lakelog_s3: S3Server, lakelog_s3_warehouse: str) -> Iterator[Catalog]:
    """Give a catalog on S3, empty at the start of each test."""
    catalog = Catalog(lakelog_s3_warehouse, options=lakelog_s3.options)
    yield catalog
    _empty(catalog)


@pytest.fixture(scope="session")
def lakelog_spark_conf() -> dict[str, str]:
    """Return settings of Spark for the whole session. Override this fixture to add your own."""
    return {}


@pytest.fixture
def lakelog_spark(lakelog_catalog: Catalog, _lakelog_spark_base: "SparkSession") -> Iterator["SparkSession"]:
    """Give a Spark session whose catalog `lake` is `lakelog_catalog`'s warehouse."""
    yield _lakelog_spark_base.newSession()


@pytest.fixture
def lakelog_s3_spark(
    lakelog_s3: S3Server, lakelog_s3_catalog: Catalog, _lakelog_spark_base: "SparkSession"
) -> Iterator["SparkSession"]:
    """Give a Spark session whose catalog `lake` is `lakelog_s3_catalog`'s warehouse."""
    session = _lakelog_spark_base.newSession()
    for key, value in {"warehouse": lakelog_s3_catalog.warehouse, **lakelog_s3.options}.items():
        session.conf.set(f"spark.sql.catalog.lake.{key}", value)
    yield session


@pytest.fixture(scope="session")
def _lakelog_spark_base(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    lakelog_warehouse: str,
    lakelog_spark_conf: dict[str, str],
) -> Iterator["SparkSession"]:
    """Give the session that the tests' sessions are made from, with its JVM."""
    from pyspark.sql import SparkSession

    from lakelog.spark import configure
    from lakelog.spark.s3a import s3_settings
    from lakelog.testing.s3a import s3a_settings

    settings = {
        "spark.master": "local[2]",
        "spark.app.name": "lakelog tests",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
    }
    if any("lakelog_s3_spark" in getattr(item, "fixturenames", ()) for item in request.session.items):
        # A JVM takes jars and credentials only at its start, so S3 comes first if any test needs it.
        server = request.getfixturevalue("lakelog_s3")
        settings |= s3a_settings()
        settings |= s3_settings(request.getfixturevalue("lakelog_s3_warehouse"), server.options, settings)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    for key, value in (settings | lakelog_spark_conf).items():
        builder = builder.config(key, value)
    spark = configure(builder, lakelog_warehouse, fsync=False, maintenance="on-demand").getOrCreate()
    yield spark
    spark.stop()


def _empty(catalog: Catalog) -> None:
    """Drop everything in the catalog. Places are not reused, so that other clients stay right."""
    for table in catalog.list_tables(()):
        catalog.drop_table(table, missing_ok=True)
    for namespace in catalog.list_namespaces(()):
        catalog.drop_namespace(namespace, cascade=True)
