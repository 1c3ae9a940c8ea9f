"""One contender of `scripts/bench peers`: a Spark session that runs the statements which come by lines of JSON.

It runs in the contender's own environment and imports nothing of lakelog. The first line holds the session's settings.
Each further one is a list of lists of statements: what stands in different lists runs side by side, in threads. The
answer has the seconds of each statement, what the last of each list returned, and the errors; a statement that failed
ends nothing: those after it in its list run.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr
    settings = json.loads(sys.stdin.readline())
    builder = SparkSession.builder.master("local[2]").appName("lakelog bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(json.dumps({"spark": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_side_by_side(spark, json.loads(line))), file=answers, flush=True)
    spark.stop()


def _side_by_side(spark: SparkSession, lists: list[list[str]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{} for _ in lists]

    def run(number: int) -> None:
        found[number] = _one_by_one(spark, lists[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(lists))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _one_by_one(spark: SparkSession, statements: list[str]) -> dict[str, Any]:
    seconds: list[float] = []
    errors: list[str] = []
    rows: list[list[str]] = []
    for statement in statements:
        begun = time.perf_counter()
        try:
            rows = [[str(value) for value in row] for row in spark.sql(statement).collect()]
        except Exception as error:  # noqa: BLE001 - whatever a contender's statement ends with is its answer
            errors.append(f"{statement[:80]}: {str(error).splitlines()[0]}")
        seconds.append(time.perf_counter() - begun)
    return {"seconds": seconds, "rows": rows[:20], "errors": errors}


if __name__ == "__main__":
    main()
