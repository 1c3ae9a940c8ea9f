"""One Spark session for all tests here; each test has a catalog of its own in it, in a folder of its own.

A catalog is only a few settings of the session, so tests do not have to share one: `lake.` in a test's SQL stands for
the test's catalog.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog as SparkCatalog
from tests.spark.internals import runs_internals
from tests.spark.py4j_names import remember_names
from tests.spark.warm import WarmPython, warm_python

from lakelog.catalog import Catalog
from lakelog.spark import spark_conf
from lakelog.spark.configure import EXTENSIONS_CLASS, LISTS
from lakelog.spark.jar import jar_path
from lakelog.testing.fixtures import lakelog_s3  # noqa: F401  (a fixture)
from lakelog.testing.maven import MavenFailed
from lakelog.testing.memory_catalog import memory_catalog_jars
from lakelog.testing.s3a import s3a_settings

# What a session that runs thousands of small statements would spend its time on, beside them.
SPARINGLY = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Xms1g -Xmn500m",
    # Each sort and each aggregate fills a page with zeros, of 16 MB by default.
    "spark.buffer.pageSize": "1m",
    # So that what has been compiled for one test is there for the next one.
    "spark.sql.codegen.cache.maxEntries": "10000",
    # What the web interface would show is kept, and described, whether or not there is one. Some tests look at it.
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "100",
    "spark.sql.ui.explainMode": "simple",
}


# A test reads few rows, so compiling its queries takes longer than running them. Tests of rows and queries compile.
FACTORY_MODE = "spark.sql.codegen.factoryMode"
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", FACTORY_MODE: "NO_CODEGEN"}


@dataclass(frozen=True)
class Place:
    """A catalog in the session; `lake.` in a statement stands for it."""

    spark: SparkSession
    name: str

    def frame(self, sql: str) -> DataFrame:
        return self.spark.sql(re.sub(r"\blake\.", f"{self.name}.", sql))

    def sql(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows as plain tuples."""
        return [tuple(row) for row in self.frame(sql).collect()]

    def sorted(self, sql: str) -> list[tuple[Any, ...]]:
        return sorted(self.sql(sql), key=repr)


@dataclass(frozen=True)
class Lake(Place):
    """A catalog of lakelog's, and the same warehouse from Python."""

    warehouse: str

    @property
    def catalog(self) -> Catalog:
        """A client of its own, which shares nothing with the session's."""
        return Catalog(self.warehouse)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    jars = [str(jar_path())]
    settings = {}
    if any(item.get_closest_marker("s3") for item in request.session.items):
        # A JVM takes jars and credentials at its start only, so S3 has to come first if any test needs it.
        request.getfixturevalue("lakelog_s3")
        settings = s3a_settings()
        jars += [settings.pop("spark.jars")] if "spark.jars" in settings else []
    if any(
        "spark_has_memory_catalogs" in getattr(item, "fixturenames", ()) for item in request.session.items
    ):
        with contextlib.suppress(MavenFailed):  # which the tests that need them report, and only those
            jars += [str(jar) for jar in memory_catalog_jars()]
    with pytest.MonkeyPatch.context() as patch:
        if not any({"rows", "queries"} & set(item.path.parent.parts) for item in request.session.items):
            settings |= INTERPRETED
            patch.setattr(SparkCatalog, "listTables", _compiled(SparkCatalog.listTables))
        session = start_session(jars, settings)
        yield session
        session.stop()


def _compiled(list_tables: Callable[..., Any]) -> Callable[..., Any]:
    """Return `listTables` for a session that interprets: Spark cannot interpret the rows of its answer."""

    @functools.wraps(list_tables)
    def listed(self: SparkCatalog, *arguments: Any, **named: Any) -> Any:
        sessions = [session for session in (self._sparkSession, SparkSession.getActiveSession()) if session]
        for session in sessions:
            session.conf.set(FACTORY_MODE, "FALLBACK")
        try:
            return list_tables(self, *arguments, **named)
        finally:
            for session in sessions:
                session.conf.set(FACTORY_MODE, INTERPRETED[FACTORY_MODE])

    return listed


@pytest.fixture(scope="module", autouse=True)
def _no_temporary_names_stay() -> Iterator[None]:
    """Drop temporary views and functions after each module: later ones list, and count, all that the session has."""
    yield
    session = SparkSession.getActiveSession()
    if session is None:
        return
    names = session._jsparkSession.sessionState().catalog()
    views, functions = names.listLocalTempViews("*"), names.listTemporaryFunctions()
    for index in range(views.size()):
        session.catalog.dropTempView(views.apply(index).table())
    for index in range(functions.size()):
        names.dropTempFunction(functions.apply(index).funcName(), True)


def start_session(jars: list[str], settings: dict[str, str]) -> SparkSession:
    """Start the JVM, and return its session."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", EXTENSIONS_CLASS)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    for key, value in (SPARINGLY | settings).items():
        builder = builder.config(key, value)
    remember_names()
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if runs_internals(item.nodeid):
            item.add_marker("internals")


_numbers = itertools.count()


def children(spark: SparkSession) -> list[int]:
    """The process ids of the Python sides that the session's JVM has started."""
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == jvm and b"lakelog.spark.bridge" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
    return found


@pytest.fixture(scope="session")
def warm(spark: SparkSession) -> Iterator[WarmPython]:
    # After Spark, whose environment it has to have.
    with warm_python() as warm:
        yield warm


@pytest.fixture(scope="session")
def python(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python that catalogs run unless they name another one."""
    return warm.program(tmp_path_factory.mktemp("warm"))


def add_catalog(session: SparkSession, warehouse: str, **settings: Any) -> None:
    """Give a session the settings of `spark_conf`. The lists among them are those that its JVM was started with."""
    # Tests count versions and files, so no upkeep runs by itself.
    own = {"jar": "unused", "fsync": False, "maintenance": "on-demand", **settings}
    for key, value in spark_conf(warehouse, **own).items():
        if key not in LISTS:
            session.conf.set(key, value)


@contextmanager
def active_session(spark: SparkSession) -> Iterator[SparkSession]:
    """Give a new session that is the active one, as in a program that has no other: writers look for catalogs there."""
    session, active = spark.newSession(), SparkSession._get_j_spark_session_class(spark._jvm)
    active.setActiveSession(session._jsparkSession)
    yield session
    active.setActiveSession(spark._jsparkSession)


@pytest.fixture
def make_lake(spark: SparkSession, python: str, tmp_path: Path) -> Iterator[Callable[..., Lake]]:
    def make(warehouse: str | None = None, *, is_there: bool = True, **options: Any) -> Lake:
        name = f"lake{next(_numbers)}"
        place = warehouse or str(tmp_path / "warehouse")
        if is_there and place.startswith("/"):
            Path(place).mkdir(parents=True, exist_ok=True)
        local = None if place.startswith("s3") else False
        add_catalog(spark, place, **{"name": name, "fsync": local, "python": python, "s3a": False, **options})
        return Lake(spark, name, place)

    yield make
    # What a test has opened is forgotten with the process. One that is about to die would be asked by the next test.
    killed_children = children(spark)
    for child in killed_children:
        os.kill(child, signal.SIGKILL)
    while any(Path(f"/proc/{child}").exists() for child in killed_children):
        time.sleep(0.01)


@pytest.fixture
def lake(make_lake: Callable[..., Lake]) -> Lake:
    return make_lake()
