"""The JVMs of the tests: with what they start, so that they cost little. What they run is as users run it.

Half of the start of a Spark is the loading and checking of some ten thousand classes. `python -m tests.jvm` builds the
adapter's jar, and makes an archive of these classes, once for an environment. A JVM that finds another class path or
another Java than the archive was made with starts without it, as does one if there is none. No test may depend on
it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# For a JVM that lives for minutes: to compile what is hot a second time, and the threads of G1, cost it half of its
# time. The space for compiled code that comes with the first setting is so small that Java would throw code away, and
# compile it again; that of classes grows by full collections.
_FOR_MINUTES = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:ReservedCodeCacheSize=400m",
    "-XX:MetaspaceSize=400m",
)

# Of each large part of Spark something: what else a test needs of it, it loads by itself.
_STATEMENTS = (
    "CREATE TABLE lake.t (id BIGINT, k STRING, v DECIMAL(9, 2) DEFAULT 1) PARTITIONED BY (bucket(2, id))",
    "INSERT INTO lake.t (id, k) SELECT id, CAST(id % 3 AS STRING) FROM range(20)",
    "MERGE INTO lake.t USING (SELECT id, 'm' AS k FROM range(10, 30)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, s.k)",
    "UPDATE lake.t SET v = v + 1 WHERE id % 2 = 0",
    "DELETE FROM lake.t WHERE id IN (SELECT max(id) FROM lake.t)",
    "ALTER TABLE lake.t ADD COLUMN s STRUCT<a: INT>",
    "SELECT k, count(*), sum(v) FROM lake.t JOIN (SELECT id AS i FROM lake.t) ON id = i GROUP BY k ORDER BY k",
    "SELECT * FROM lake.t VERSION AS OF 1 WHERE id > 3 AND k LIKE '1%'",
    "CREATE NAMESPACE lake.a",
    "CREATE VIEW lake.a.w AS SELECT id, row_number() OVER (ORDER BY id) AS n FROM lake.t",
    "SELECT * FROM lake.a.w",
    "DESCRIBE TABLE EXTENDED lake.t",
    "SHOW TABLES IN lake",
    "DROP TABLE lake.t",
)
_ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
_MADE_WITH = _ARCHIVE.with_suffix(".made-with")


def environment() -> dict[str, str]:
    """What every `java` that a test starts, directly or not, has to find in its environment."""
    options = [*_FOR_MINUTES]
    if _ARCHIVE.exists():
        options += [f"-XX:SharedArchiveFile={_ARCHIVE}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return {"JDK_JAVA_OPTIONS": " ".join(options)}


def make_archive() -> None:
    """Let a Spark run some statements, and keep the classes that it came by."""
    import pyspark

    from lakelog.spark.jar import jar_path

    jar_path()  # built here rather than by each of the suites that begin at once
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    made_with = hashlib.sha256(
        f"{java}{pyspark.__file__}{pyspark.__version__}{Path(__file__).read_text()}".encode()
    ).hexdigest()
    with contextlib.suppress(FileNotFoundError):
        if _ARCHIVE.exists() and _MADE_WITH.read_text() == made_with:
            return
    _ARCHIVE.unlink(missing_ok=True)
    options = (
        f"{' '.join(_FOR_MINUTES)} -XX:ArchiveClassesAtExit={_ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"
    )
    command = [sys.executable, "-m", "tests.jvm", "--options", options]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise SystemExit(f"no archive of Spark's classes was made: {process.stderr}")
    _MADE_WITH.write_text(made_with)


def _run_statements(options: str) -> None:
    from pyspark.sql import SparkSession

    from lakelog.spark import spark_conf
    from lakelog.spark.jar import jar_path

    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]")
        settings = spark_conf(f"{folder}/warehouse", jar=str(jar_path()), fsync=False) | {
            "spark.buffer.pageSize": "1m",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": options,
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": f"{folder}/spark",
            "spark.ui.enabled": "false",
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        for statement in _STATEMENTS:
            spark.sql(statement).collect()
        jvm = spark.sparkContext._gateway.proc
        spark.stop()
        # It writes the archive when it ends, which it does with its standard input.
        jvm.stdin.close()
        jvm.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--options"]:
        _run_statements(sys.argv[2])
    else:
        os.environ.pop("JDK_JAVA_OPTIONS", None)
        make_archive()
