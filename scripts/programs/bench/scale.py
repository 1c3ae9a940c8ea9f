"""`scripts/bench scale`: the scenarios of docs/benchmarks.md in sequence, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from programs import story
from programs.bench.scenario import PROGRAM

PARTS = {
    "requests": ["requests", "loads"],
    "commits": ["writers --runs 1x1,10x1,20x5", "writers --runs 1x1,10x1,20x5 --on folder", "append"],
    "planning": ["plan --files 100000"],
    "names": ["many_names --tables 1000 100000"],
    "histories": ["histories --versions 10000 100000"],
    "statements": ["sql", "insert_one_row", "ctas_scan"],
    "rows": ["merge"],
    "upkeep": ["upkeep --commits 5000"],
    "peers": ["peers"],
    "workloads": ["tpcds", "lst_bench"],
}
FULL = {"planning": ["plan --files 1000000"], "histories": ["histories --versions 10000 1000000"]}
"""Commands that replace others with --full. They take tens of minutes, and gigabytes of disk."""


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} scale", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--full", action="store_true", help="a million files, and a million versions")
    arguments = parser.parse_args(words)
    failures = []
    for part in arguments.only:
        for command in (FULL if arguments.full else PARTS).get(part, PARTS[part]):
            story.say(f"\n{PROGRAM} {command}")
            outcome = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "programs.bench", *command.split()]
            )
            failures += [command] if outcome.returncode else []
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")
