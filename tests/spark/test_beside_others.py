"""Delta's own extension beside lakelog's, as released, in both orders of `spark.sql.extensions`.

On Spark 4.2, which Delta is built for; each order is a Spark of its own. Iceberg has no release for 4.2 yet, and the
one for 4.1 breaks statements of other extensions there: `docs/compatibility.md`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakelog.spark import spark_conf
from lakelog.testing import maven

pytestmark = pytest.mark.slow

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
EXTENSIONS = {
    "lakelog": "org.apache.spark.sql.lakelog.LakeExtensions",
    "Delta": "io.delta.sql.DeltaSparkSessionExtension",
}
WORKER = """
import json, sys
from pyspark.sql import SparkSession
settings, statements = json.load(sys.stdin)
builder = SparkSession.builder.master("local[2]")
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
answers = []
for statement in statements:
    try:
        answers.append([row.asDict() for row in spark.sql(statement).collect()])
    except Exception as error:
        text = str(error)
        causes = [line for line in text.splitlines() if line.startswith("Caused by")]
        answers.append("\\n".join([text[:1000], *causes]))
print("answers:" + json.dumps(answers, default=str))
"""
FILLED = (
    "INSERT INTO {t} VALUES (1, 1), (2, 2)",
    "INSERT INTO {t} VALUES (3, 3)",
    "UPDATE {t} SET k = 9 WHERE id = 1",
    "DELETE FROM {t} WHERE id = 2",
    "MERGE INTO {t} t USING (SELECT 3L AS id, 7 AS k UNION ALL SELECT 5L, 5) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
)
ROWS = "SELECT * FROM {t} ORDER BY id"
WORDS = (
    "DESCRIBE HISTORY {t}",
    "DESCRIBE DETAIL {t}",
    "OPTIMIZE {t}",
    "VACUUM {t} DRY RUN",
    "RESTORE TABLE {t} TO VERSION AS OF 4",
    "SELECT count(*) AS n FROM table_changes('{t}', 1)",
)
LAKELOGS = (
    "ALTER TABLE {t} CLUSTER BY (id)",
    "OPTIMIZE {t} ZORDER BY (id)",
    "ALTER TABLE {t} ADD CONSTRAINT low CHECK (id > 0)",
    "ALTER TABLE {t} DROP CONSTRAINT low",
    "ALTER TABLE {t} CREATE BRANCH side",
    "SHOW BRANCHES IN {t}",
    "ALTER TABLE {t} WRITE ORDERED BY id",
    "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",
    "SHOW COLUMNS IN {t}",
    "CALL lake.system.rewrite_data_files(table => 's.t')",
    "CREATE TABLE lake.s.copy CLUSTER BY (id) AS SELECT * FROM {t}",
    "CREATE TABLE lake.s.clone SHALLOW CLONE {t}",
)


@pytest.mark.parametrize("order", [("Delta", "lakelog"), ("lakelog", "Delta")], ids=str)
def test_each_has_its_words_for_its_own_tables(order, tmp_path: Path) -> None:
    statements = [
        "CREATE NAMESPACE lake.s",
        "CREATE TABLE lake.s.t (id BIGINT, k INT)",
        "CREATE TABLE default.d (id BIGINT, k INT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    ]
    for table, own in (("lake.s.t", LAKELOGS), ("default.d", ())):
        statements += [each.format(t=table) for each in (*FILLED, ROWS, *WORDS, *own)]
    joined_text = "SELECT count(*) AS n FROM lake.s.t JOIN default.d USING (id)"
    answers = run(order, tmp_path, [*statements, joined_text])
    failed_answers = {statement: answer for statement, answer in answers.items() if isinstance(answer, str)}
    assert not failed_answers

    rows = [{"id": 1, "k": 9}, {"id": 3, "k": 7}, {"id": 5, "k": 5}]
    assert answers[ROWS.format(t="lake.s.t")] == answers[ROWS.format(t="default.d")] == rows
    assert [each["operation"] for each in answers["DESCRIBE HISTORY lake.s.t"]][:2] == ["merge", "delete"]
    assert [each["operation"] for each in answers["DESCRIBE HISTORY default.d"]][:2] == ["MERGE", "DELETE"]
    assert "rewritten_files" in answers["OPTIMIZE lake.s.t"][0]
    assert "metrics" in answers["OPTIMIZE default.d"][0]
    assert "expired_versions_count" in answers["VACUUM lake.s.t DRY RUN"][0]
    assert [each["name"] for each in answers["SHOW BRANCHES IN lake.s.t"]] == ["main", "side"]
    details = [answers[f"DESCRIBE DETAIL {t}"][0] for t in ("default.d", "lake.s.t")]
    assert [detail["format"] for detail in details] == ["delta", "lakelog"]
    assert list(details[1])[: len(details[0])] == list(details[0])
    assert answers[joined_text] == [{"n": 2}]


def run(order: tuple[str, ...], folder: Path, statements: list[str]) -> dict[str, Any]:
    """Return the rows of each statement, or its error, in a Spark with the extensions in that order."""
    conf = spark_conf(str(folder / "lake"), fsync=False)
    name = DELTA.split(":", 1)[1].replace(":", "-")
    found_jars = maven.jars(f"beside-{name}", (DELTA,), ("org.apache.spark:*", "org.apache.hadoop:*"))
    jars = [conf["spark.jars"], *(str(jar) for jar in found_jars if jar.name.startswith("delta-"))]
    settings = conf | {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": ",".join(EXTENSIONS[text] for text in order),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    process = subprocess.run(
        [sys.executable, "-c", WORKER],
        input=json.dumps([settings, statements]),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    lines = [line for line in process.stdout.splitlines() if line.startswith("answers:")]
    assert lines, process.stderr[-4000:]
    return dict(zip(statements, json.loads(lines[0].removeprefix("answers:")), strict=True))
