"""One format's Spark: takes requests on standard input and answers on standard output, until there are no more.

It runs in an environment of the format's own, where only pyspark is certain to be installed: it is run as a script.
A request and an answer are JSON on one line: `{"sql"}` → `{"seconds", "rows"}` or `{"error"}`; and
`{"view", "format", "path", "columns", "options"}`, which makes a temporary view, → `{}` or `{"error"}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    # What Spark and its JVM print must not come between the answers.
    os.dup2(2, 1)
    settings = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").appName("lakelog bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"spark": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = answered(spark, json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


def answered(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    if "view" in request:
        reader = spark.read.format(request["format"]).options(**request["options"])
        reader.load(request["path"]).selectExpr(*request["columns"]).createOrReplaceTempView(request["view"])
        return {}
    start = time.perf_counter()
    rows = spark.sql(request["sql"]).collect()
    return {"seconds": time.perf_counter() - start, "rows": [[str(v) for v in row] for row in rows]}


if __name__ == "__main__":
    main()
