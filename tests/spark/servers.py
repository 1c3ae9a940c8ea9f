"""Servers of Spark's own that a test starts by `spark-submit`, on a port of this machine that is free."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.test_use import HOME, QUIET, arguments, run

from lakelog.spark import spark_conf

START_TIMEOUT_S = 240
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def spark_server(
    name: str, settings: Mapping[str, str], port: int, folder: Path, *,
    options: Sequence[str] = (), last: Sequence[str] = (),
) -> Iterator[None]:  # fmt: skip
    """Run a server's class until the block ends; the block begins once it listens on `port`."""
    output = folder / "server.log"
    submit = str(HOME / "bin" / "spark-submit")
    with output.open("wb") as sink:
        server = subprocess.Popen(
            [submit, "--class", name, "--master", "local[1]", *options, *arguments(settings), *last],
            cwd=folder, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, stdout=sink, stderr=sink,
        )  # fmt: skip
    try:
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=START_TIMEOUT_S).close()
                break
            except OSError:
                text = output.read_text(errors="replace")[-4000:]
                assert server.poll() is None and time.monotonic() < end, text
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def answer_of_client(program: str, folder: Path, **values: str) -> Any:
    """Return the JSON that a client of Spark Connect prints behind "OUT".

    The server has the catalog `lake` in `folder`/lake. `program` is formatted with the server's `address` and `values`.
    """
    port = free_port()
    settings = QUIET | spark_conf(str(folder / "lake"), fsync=False)
    settings |= {
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    client = folder / "client.py"
    client.write_text(textwrap.dedent(program.format(address=f"sc://127.0.0.1:{port}", **values)))
    with spark_server(CONNECT, settings, port, folder):
        text = run([sys.executable, "-W", "ignore", str(client)])
    (line,) = [line for line in text.splitlines() if line.startswith("OUT")]
    return json.loads(line[3:])
