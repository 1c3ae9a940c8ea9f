"""Spark's Thrift server with lakelog in its session catalog, and the beeline of Spark's own jars."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.spark.test_use import HOME, QUIET, arguments, run

from lakelog.catalog import Catalog
from lakelog.spark import spark_conf

pytestmark = [pytest.mark.adapter, pytest.mark.slow]

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
START_TIMEOUT_S = 240


@contextmanager
def thrift_server(warehouse: Path, folder: Path) -> Iterator[str]:
    """Run a server until the block ends, as docs/sql/session.md says; give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = QUIET | spark_conf(str(warehouse), fsync=False, session_catalog=True)
    settings |= {
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.sql.catalogImplementation": "in-memory",
    }
    jar = settings["spark.jars"]
    output = folder / "server.log"
    with output.open("wb") as sink:
        server = subprocess.Popen(
            [
                str(HOME / "bin" / "spark-submit"), "--class", SERVER,
                "--master", "local[1]", "--driver-class-path", jar, *arguments(settings),
                "--hiveconf", f"hive.server2.thrift.port={port}",
                "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1",
                "--hiveconf", "javax.jdo.option.ConnectionURL=jdbc:derby:memory:m;create=true",
            ],
            cwd=folder, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, stdout=sink, stderr=sink,
        )  # fmt: skip
    try:
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, output.read_text(errors="replace")[
                    -4000:
                ]
                time.sleep(0.1)
        yield f"jdbc:hive2://127.0.0.1:{port}/default"
    finally:
        server.terminate()
        server.wait()


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
