"""The benchmarks of docs/benchmarks.md, one after another, each in a process of its own.

Each is a benchmark by itself, too (`scripts/bench NAME --help`); its command is printed before its table. Peers run
where a benchmark has them, in the same run and in turns: delta-rs and PyIceberg from Python, Iceberg, Delta and plain
Parquet in Spark.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys

from programs import story

PARTS: dict[str, list[list[str]]] = {
    "requests": [["requests"], ["loads"]],
    "commits": [
        ["writers", "--runs", "1x1,10x1,20x5"],
        ["writers", "--runs", "1x1,10x1,20x5", "--on", "folder"],
        ["append"],
    ],
    "planning": [["plan", "--files", "100000"]],
    "names": [["many_names", "--tables", "1000", "100000"]],
    "histories": [["histories", "--versions", "10000", "100000"]],
    "statements": [["sql"], ["insert_one_row"], ["ctas_scan"]],
    "rows": [["merge"]],
    "upkeep": [["upkeep", "--commits", "5000"]],
    "peers": [["peers"]],
}

FULL: dict[str, list[list[str]]] = {
    "planning": [["plan", "--files", "1000000"]],
    "histories": [["histories", "--versions", "10000", "1000000"]],
}
"""What stands for a part where everything is wanted: these take tens of minutes, and gigabytes of disk."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench scale", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--full", action="store_true", help="a million files, and a million versions")
    arguments = parser.parse_args()
    story.say(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    failed = []
    for part in arguments.only:
        for command in (FULL if arguments.full else PARTS).get(part, PARTS[part]):
            story.say(f"\nscripts/bench {' '.join(command)}")
            module, *options = command
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", f"programs.bench.{module}", *options]
            )
            failed += [" ".join(command)] if done.returncode else []
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
