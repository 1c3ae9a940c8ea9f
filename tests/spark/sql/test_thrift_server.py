"""Spark's Thrift server with lakelog in its session catalog, and the beeline of Spark's own jars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.spark.servers import free_port, spark_server
from tests.spark.test_use import HOME, QUIET, run

from lakelog.catalog import Catalog
from lakelog.spark import spark_conf

pytestmark = [pytest.mark.adapter, pytest.mark.slow]

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@contextmanager
def thrift_server(warehouse: Path, folder: Path) -> Iterator[str]:
    """Run a server until the block ends, as docs/sql/session.md says; give its address."""
    port = free_port()
    settings = QUIET | spark_conf(str(warehouse), fsync=False, session_catalog=True)
    settings |= {
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.sql.catalogImplementation": "in-memory",
    }
    hive = {
        "hive.server2.thrift.port": str(port),
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:m;create=true",
    }
    last = [part for name, value in hive.items() for part in ("--hiveconf", f"{name}={value}")]
    with spark_server(
        SERVER, settings, port, folder, options=["--driver-class-path", settings["spark.jars"]], last=last
    ):
        yield f"jdbc:hive2://127.0.0.1:{port}/default"


def test_beeline_reads_and_writes_tables_in_the_session_catalog(tmp_path: Path) -> None:
    statements = [
        "CREATE TABLE t (id BIGINT, name STRING) USING lakelog",
        "INSERT INTO t VALUES (1, 'ada'), (2, 'grace')",
        "DELETE FROM t WHERE id = 2",
        "CALL spark_catalog.system.begin_transaction()",
        "INSERT INTO t VALUES (3, 'alan')",
        "CALL spark_catalog.system.rollback_transaction()",
        "SELECT count(*) AS now, min(name) AS first FROM t",
        "SELECT count(*) AS earlier, current_user() AS user FROM lake.default.t VERSION AS OF 2",
    ]
    with thrift_server(tmp_path / "warehouse", tmp_path) as address:
        beeline = [
            str(HOME / "bin" / "beeline"),
            "-u",
            address,
            "-n",
            "ada",
            "--outputformat=csv2",
            "--silent=true",
        ]
        text = run([*beeline, *(part for statement in statements for part in ("-e", statement))])
    # Its prompt stands before a line, or not.
    lines = [line.rpartition("> ")[2] for line in text.splitlines()]
    assert [line for line in lines if "," in line] == ["now,first", "1,ada", "earlier,user", "2,ada"]
    table = Catalog(str(tmp_path / "warehouse")).load_table("default.t")
    assert table.to_arrow().to_pydict() == {"id": [1], "name": ["ada"]}
    assert next(table.history(limit=1)).writer["user"] == "ada"
