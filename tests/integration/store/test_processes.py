"""Real processes on a folder, killed at any moment, and a process that ends right after a commit."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.integration.store.sums import Sum
from tests.patience import PATIENCE_S

from lakelog.log import Draft, Log, open_store

WRITER = """
import random, sys, time
from lakelog.log import Draft, Log, open_store
from tests.integration.store.sums import Sum
log = Log(open_store(sys.argv[1], {"fsync": "off"}), "t", Sum())
view = log.load()
for number in range(int(sys.argv[2])):
    done = log.commit(view, lambda view, passed: Draft(events=({"n": 1},)))
    view = done.view
    print(done.version, flush=True)
    time.sleep(random.random() * float(sys.argv[3]))
"""


def start(folder: Path, commits: int, output: Path, *, rest_s: float = 0.0) -> subprocess.Popen[bytes]:
    """Start a writer that notes each version in `output` as soon as it is acknowledged, and errors there too.

    It rests up to `rest_s` after each: a writer without rest wins every race on two cores, and others begin late.
    """
    command = [sys.executable, "-W", "error", "-c", WRITER, str(folder), str(commits), str(rest_s)]
    with output.open("wb") as sink:
        return subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)


def test_what_killed_processes_acknowledged_is_there_once(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    Log(open_store(str(lake)), "t", Sum()).create(Draft(events=({"n": 1},)), log_id="l")
    outputs = [tmp_path / f"output-{i}" for i in range(4)]
    running_processes = [start(lake, 1_000_000, output, rest_s=0.02) for output in outputs]
    deadline = time.monotonic() + PATIENCE_S
    while not all(output.stat().st_size for output in outputs) and time.monotonic() < deadline:
        time.sleep(0.05)
    rng = random.Random(7)
    for process in running_processes:
        time.sleep(rng.random() / 2)
        process.kill()
        process.wait()
    acknowledged_numbers = [int(line) for output in outputs for line in output.read_text().split("\n")[:-1]]
    assert len(acknowledged_numbers) == len(set(acknowledged_numbers)) >= len(running_processes)
    view = Log(open_store(str(lake)), "t", Sum()).load()
    assert max(acknowledged_numbers) <= view.version and view.state == view.version
    # All but the one commit that each process had not yet reported when it died.
    assert view.version - 1 - len(acknowledged_numbers) <= len(running_processes)


def test_a_process_that_ends_right_after_a_commit_still_writes_its_snapshot(tmp_path: Path) -> None:
    Log(open_store(str(tmp_path)), "t", Sum()).create(Draft(events=({"n": 1},)), log_id="l")
    output = tmp_path / "output"
    assert start(tmp_path, 19, output).wait(PATIENCE_S) == 0
    assert output.read_text().split() == [str(version) for version in range(2, 21)]
    assert (tmp_path / "t" / "_log" / "latest.json").exists()
    assert list(tmp_path.rglob(".lakelog-tmp-*")) == []
