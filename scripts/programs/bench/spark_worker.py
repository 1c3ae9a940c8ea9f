"""An engine's Spark: it takes requests on standard input and answers on standard output, until the input ends.

It runs as a script in the engine's own environment, because only pyspark is certain to be installed there. Its argument
has the session's settings. Each request and each answer is JSON on a line. A request names a function of this module,
`statements`, `view` or `plan`, with its arguments. If it fails, the answer is `{"error"}`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    # Output of Spark and its JVM must not come between the answers.
    os.dup2(2, 1)
    builder = SparkSession.builder.master("local[2]").appName("lakelog bench")
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"spark": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        (kind, arguments), *_ = json.loads(line).items()
        try:
            answer = REQUESTS[kind](spark, **arguments)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


def statements(spark: SparkSession, lists: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Run lists side by side. If a statement fails, the next statements of its list still run."""
    with ThreadPoolExecutor(len(lists)) as threads:
        return list(threads.map(lambda texts: _one_by_one(spark, texts), lists))


def _one_by_one(spark: SparkSession, texts: Sequence[str]) -> dict[str, Any]:
    seconds: list[float] = []
    errors: list[str] = []
    rows: list[list[str]] = []
    for text in texts:
        start = time.perf_counter()
        try:
            rows = [[str(value) for value in row] for row in spark.sql(text).collect()]
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}"[:2000])
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "rows": rows, "errors": errors}


def view(
    spark: SparkSession, name: str, format: str, path: str, columns: list[str], options: Mapping[str, str]
) -> dict[str, Any]:
    reader = spark.read.format(format).options(**options)
    reader.load(path).selectExpr(*columns).createOrReplaceTempView(name)
    return {}


def plan(
    spark: SparkSession, where: str, table: str = "", format: str = "", path: str = ""
) -> dict[str, Any]:
    """Load a table anew, plan a scan of it, and plan that once more."""
    gc.collect()  # Python's references keep plans in the JVM.
    start = time.perf_counter()
    frame = spark.table(table) if table else spark.read.format(format).load(path)
    tasks = _tasks(frame.where(where))
    cold = time.perf_counter()
    _tasks((spark.table(table) if table else frame).where(where))
    return {"tasks": tasks, "cold": cold - start, "again": time.perf_counter() - cold}


def _tasks(frame: Any) -> int:
    return int(frame._jdf.queryExecution().toRdd().getNumPartitions())


REQUESTS: dict[str, Any] = {"statements": statements, "view": view, "plan": plan}

if __name__ == "__main__":
    main()
