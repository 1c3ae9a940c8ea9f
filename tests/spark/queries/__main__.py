"""Run random queries on demand: python -m tests.spark.queries [--seed N] [--queries N] [--query N]."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests import jvm
from tests.spark.conftest import start_session
from tests.spark.queries.mutations import MUTATIONS
from tests.spark.queries.reproduction import Smaller
from tests.spark.queries.running import A_WORLD, Found, Plan, run
from tests.spark.queries.switches import Catalogs
from tests.spark.queries.world import World
from tests.spark.warm import warm_python

from lakelog.spark.jar import jar_path

ENOUGH = 20
"""So many differences have few causes."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/queries",
        description="Run random queries over tables and over plain Parquet tables with the same rows, from a seed.",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="the first world; each has a seed (1)"
    )
    parser.add_argument("--queries", type=int, default=10_000, metavar="N", help="how many (10000)")
    parser.add_argument(
        "--a-world", type=int, default=A_WORLD, metavar="N", help=f"queries over the same tables ({A_WORLD})"
    )
    parser.add_argument("--tables", type=int, default=5, metavar="N", help="how many a world has (5)")
    parser.add_argument(
        "--steps", type=int, default=10, metavar="N", help="how many statements a table goes through (10)"
    )
    parser.add_argument(
        "--largest", type=int, metavar="N", help="of how many parts a query may be (any number)"
    )
    parser.add_argument(
        "--query", type=int, metavar="N", help="only the query of that number, of the world of the seed"
    )
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="with something broken in lakelog")
    arguments = parser.parse_args()
    queries = arguments.queries if arguments.query is None else arguments.query + 1
    a_world = max(arguments.a_world, (arguments.query or 0) + 1)
    plan = Plan(arguments.seed, queries, a_world, arguments.tables, arguments.steps, arguments.largest)
    kept_path = Path(tempfile.mkdtemp(prefix="lakelog-queries-"))
    os.environ.update(jvm.environment())
    spark = start_session([str(jar_path())], {"spark.ui.showConsoleProgress": "false"})

    def keep(world: World, catalogs: Catalogs, found: Found) -> None:
        print(f"\n{found.command}: {found.what}")
        print(f"    ended by: {', '.join(found.ended_by) or 'no switch'}; it is made smaller:")
        print(f"    {world.lake().text(found.query.sql)}", flush=True)
        text = Smaller(world, found, catalogs.with_text(MUTATIONS.get(arguments.mutation, ""))).program()
        program = kept_path / f"seed-{found.seed}-query-{found.number}.py"
        program.write_text(text)
        print(f"    {program} shows it:\n\n{text}", flush=True)

    with tempfile.TemporaryDirectory() as folder, warm_python() as warm:
        report = run(
            spark, warm, Path(folder), plan, python=MUTATIONS.get(arguments.mutation, ""),
            say=lambda line: print(line, flush=True), found=keep, only=arguments.query, enough=ENOUGH,
        )  # fmt: skip
        spark.stop()
    for line in report.lines():
        print(line)
    if not report.found:
        kept_path.rmdir()
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
