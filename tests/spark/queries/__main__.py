"""Run random queries on demand: python -m tests.spark.queries --seed N --queries N."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests import jvm
from tests.spark.conftest import start_session
from tests.spark.queries.running import Found, Plan, run
from tests.spark.queries.switches import Catalogs
from tests.spark.queries.world import World
from tests.spark.warm import warm_python

from lakelog.spark.jar import jar_path


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/queries",
        description="Run random queries over lakelog's tables and over plain Parquet tables with the same rows, from a seed.",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the first world; each has a seed (1)")
    parser.add_argument("--queries", type=int, default=10_000, metavar="N", help="how many (10000)")
    parser.add_argument("--a-world", type=int, default=250, metavar="N", help="queries over the same tables (250)")
    parser.add_argument("--query", type=int, metavar="N", help="only the query of that number of the world of the seed")
    arguments = parser.parse_args()
    queries = arguments.queries if arguments.query is None else arguments.query + 1
    a_world = max(arguments.a_world, arguments.query or 0)
    plan = Plan(arguments.seed, queries, a_world)
    os.environ.update(jvm.environment())
    spark = start_session([str(jar_path())], {})
    with tempfile.TemporaryDirectory() as folder, warm_python() as warm:
        report = run(
            spark, warm, Path(folder), plan, tell=lambda line: print(line, flush=True), found=tell, only=arguments.query
        )
        spark.stop()
    for line in report.lines():
        print(line)
    return 1 if report.found else 0


def tell(world: World, catalogs: Catalogs, found: Found) -> None:
    print(f"\nscripts/queries --seed {found.seed} --query {found.number}: {found.what}")
    print(f"    ended by: {', '.join(found.ended_by) or 'no switch'}")
    print(f"    {found.expected[:600]}")
    print(f"    lake:  {world.lake().text(found.query.sql)}")
    print(f"    plain: {world.plain().text(found.query.sql)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
