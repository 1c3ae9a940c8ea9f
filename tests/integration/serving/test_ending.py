"""Servers that get a signal to end: they finish the requests that they have begun, within a bounded time."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.serving.requests import send
from tests.patience import PATIENCE_S, wait_until

from lakelog.catalog import Catalog
from lakelog.rest import WarehouseAnswers, serve
from lakelog.rest.serving import RunningServer, ServerLimits, ServerSettings

TABLE = "/v1/namespaces/ns/tables/t"
COMMIT: dict[str, Any] = {
    "requirements": [],
    "updates": [{"action": "set-properties", "updates": {"x": "y"}}],
}

PROGRAM = """
import os, sys, time
from lakelog.catalog.engine import iceberg_commits
from lakelog.cli.main import run

folder, settle = sys.argv[1], iceberg_commits._settle
def held(transaction):
    open(f"{folder}/begun", "w").close()
    while not os.path.exists(f"{folder}/free"):
        time.sleep(0.05)
    settle(transaction)

iceberg_commits._settle = held  # also in the processes that it starts
if __name__ == "__main__":
    sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("ns")
    catalog.create_table("ns.t", pa.schema({"n": pa.int64()}))
    return str(tmp_path / "w")


@contextmanager
def command(tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `lakelog serve` in a process, with commits that wait for the file `free`; yield its URL too."""
    (tmp_path / "program.py").write_text(PROGRAM)
    arguments = [str(tmp_path / "program.py"), str(tmp_path), "serve", "--write", "--port", "0", *options]
    process = subprocess.Popen(
        [sys.executable, *arguments, "--warehouse", str(tmp_path / "w")],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    try:
        match = re.search(r"at (http://[0-9.:]+)", process.stderr.readline())
        assert match is not None
        yield process, match[1]
    finally:
        (tmp_path / "free").touch()
        process.kill()
        process.wait()
        process.stderr.close()


class Sender(threading.Thread):
    """Sends a commit. Its answer is None if the connection ended without one."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.answer: tuple[int, Any] | None = None

    def run(self) -> None:
        try:
            self.answer = send(self._url, TABLE, "POST", COMMIT)
        except OSError:
            self.answer = None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_commit_that_has_begun_is_finished_and_answered(
    tmp_path: Path, warehouse: str, number: signal.Signals
) -> None:
    with command(tmp_path) as (process, url):
        sender = Sender(url)
        sender.start()
        wait_until((tmp_path / "begun").exists, "the commit was begun")
        process.send_signal(number)
        wait_until(lambda: not _accepts(url), "it listened no more")
        assert process.poll() is None
        (tmp_path / "free").touch()
        sender.join()
        assert sender.answer is not None and sender.answer[0] == 200
        assert process.wait(PATIENCE_S) == (0 if number == signal.SIGTERM else 130)
    assert Catalog(warehouse).load_table("ns.t").properties["x"] == "y"


def test_a_commit_that_does_not_end_holds_the_server_up_for_a_bounded_time(
    tmp_path: Path, warehouse: str
) -> None:
    with command(tmp_path, "--stop-within", "1") as (process, url):
        sender = Sender(url)
        sender.start()
        wait_until((tmp_path / "begun").exists, "the commit was begun")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 1
        sender.join()
        assert process.stderr is not None
        assert "1 requests did not end in time" in process.stderr.read()
    catalog = Catalog(warehouse)
    assert catalog.load_table("ns.t").version == 1 and catalog.fsck().found == []


def _accepts(url: str) -> bool:
    try:
        return send(url, "/health")[0] == 200
    except OSError:
        return False


def test_a_probe_that_waits_while_the_server_begins_to_end_hears_of_it(warehouse: str) -> None:
    """Whatever its look at the warehouse finds: after that, the server takes no more requests."""
    begun, free = threading.Event(), threading.Event()
    servers: list[tuple[str, RunningServer]] = []
    answers: list[tuple[int, Any]] = []
    is_serving = threading.Event()

    def check() -> None:
        begun.set()
        assert free.wait(PATIENCE_S)

    def began(url: str, server: RunningServer) -> None:
        servers.append((url, server))
        is_serving.set()

    settings = ServerSettings(port=0, limits=ServerLimits(stop_s=PATIENCE_S))
    options: dict[str, Any] = {"began": began, "check_ready": check, "settings": settings}
    thread = threading.Thread(target=lambda: serve(WarehouseAnswers(Catalog(warehouse)), **options))
    thread.start()
    assert is_serving.wait(PATIENCE_S)
    ((url, server),) = servers
    probes = [threading.Thread(target=lambda: answers.append(send(url, "/ready"))) for _ in range(2)]
    try:
        for probe in probes:
            probe.start()
        assert begun.wait(PATIENCE_S)
        server.shutdown()
        wait_until(lambda: not _accepts(url), "it listened no more")
    finally:
        free.set()
        for probe in probes:
            probe.join()
        thread.join()
    assert answers == [(503, {"status": "stopping"})] * 2


@contextmanager
def serving_thread(warehouse: str, **limits: Any) -> Iterator[tuple[str, RunningServer, threading.Thread]]:
    servers: list[tuple[str, RunningServer]] = []
    is_serving = threading.Event()

    def began(url: str, server: RunningServer) -> None:
        servers.append((url, server))
        is_serving.set()

    settings = ServerSettings(port=0, limits=ServerLimits(**limits))
    options: dict[str, Any] = {"began": began, "check_ready": lambda: None, "settings": settings}
    thread = threading.Thread(target=lambda: serve(WarehouseAnswers(Catalog(warehouse)), **options))
    thread.start()
    assert is_serving.wait(PATIENCE_S)
    try:
        yield *servers[0], thread
    finally:
        servers[0][1].shutdown()
        thread.join()


def test_a_server_that_drains_answers_until_all_know_of_it(warehouse: str) -> None:
    with serving_thread(warehouse, drain_s=PATIENCE_S) as (url, server, thread):
        assert send(url, "/ready") == (200, {"status": "ready"})
        server._server._on_signal(signal.SIGTERM, None)
        assert send(url, "/ready") == (503, {"status": "stopping"})
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
        connection.request("GET", TABLE)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.headers["Connection"] == "close" and answer.read()
        connection.close()
        assert thread.is_alive()
        # A second signal, or Ctrl-C, ends it.
        server._server._on_signal(signal.SIGTERM, None)
        thread.join(PATIENCE_S)
        assert not thread.is_alive() and not _accepts(url)


@pytest.mark.parametrize(
    ("number", "drain_s"), [(signal.SIGTERM, 0.01), (signal.SIGTERM, 0), (signal.SIGINT, PATIENCE_S)]
)
def test_a_server_drains_for_a_bounded_time_and_not_after_ctrl_c(
    warehouse: str, number: signal.Signals, drain_s: float
) -> None:
    with serving_thread(warehouse, drain_s=drain_s) as (url, server, thread):
        server._server._on_signal(number, None)
        thread.join(PATIENCE_S)
        assert not thread.is_alive() and not _accepts(url)


# Several processes


def workers_of(pid: int) -> list[int]:
    """Return the processes that a process has started, without the one that tracks their resources."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_processes_that_die_are_started_anew_and_all_end_with_the_first(
    tmp_path: Path, warehouse: str
) -> None:
    (tmp_path / "free").touch()
    with command(tmp_path, "--workers", "2") as (process, url):
        wait_until(lambda: _accepts(url), "a process answered")
        wait_until(lambda: len(workers_of(process.pid)) == 2, "there were two processes")
        first_workers = workers_of(process.pid)
        os.kill(first_workers[0], signal.SIGKILL)
        wait_until(
            lambda: (
                len(set(workers_of(process.pid)) - set(first_workers)) == 1
                and len(workers_of(process.pid)) == 2
            ),
            "another process was started",
        )
        assert send(url, TABLE, "POST", COMMIT)[0] == 200
        workers = workers_of(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_no_process_listens_any_more_while_a_commit_is_finished(tmp_path: Path, warehouse: str) -> None:
    """A client that could still connect would wait in vain for an answer."""
    with command(tmp_path, "--workers", "2", "--stop-within", str(PATIENCE_S)) as (process, url):
        wait_until(lambda: _accepts(url), "a process answered")
        sender = Sender(url)
        sender.start()
        wait_until((tmp_path / "begun").exists, "the commit was begun")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not _accepts(url), "no process listened")
        assert process.poll() is None
        (tmp_path / "free").touch()
        sender.join()
        assert sender.answer is not None and sender.answer[0] == 200
        assert process.wait(PATIENCE_S) == 0


def test_processes_that_do_not_end_in_time_make_the_first_end_with_an_error(
    tmp_path: Path, warehouse: str
) -> None:
    with command(tmp_path, "--workers", "2", "--stop-within", "1") as (process, url):
        wait_until(lambda: _accepts(url), "a process answered")
        sender = Sender(url)
        sender.start()
        wait_until((tmp_path / "begun").exists, "the commit was begun")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 1
        sender.join()


def test_processes_end_if_the_first_is_killed(tmp_path: Path, warehouse: str) -> None:
    (tmp_path / "free").touch()
    with command(tmp_path, "--workers", "2") as (process, url):
        wait_until(lambda: _accepts(url), "a process answered")
        wait_until(lambda: len(workers_of(process.pid)) == 2, "there were two processes")
        workers = workers_of(process.pid)
        process.kill()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "all ended")
