"""lakelog in a session catalog that is Hive's, with Kryo, and executors that are processes of their own."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest
from tests.spark.test_use import HOME, QUIET, run

from lakelog.catalog import Catalog
from lakelog.spark import spark_conf

pytestmark = [pytest.mark.adapter, pytest.mark.slow]

KRYO = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrationRequired": "true",
    "spark.kryo.registrator": "org.apache.spark.sql.lakelog.LakeKryo",
}

STATEMENTS = [
    "CREATE NAMESPACE shop",
    "USE shop",
    "CREATE TABLE t USING lakelog PARTITIONED BY (bucket(2, id)) AS SELECT id, id % 3 AS k FROM range(100)",
    "INSERT INTO t SELECT id + 100, k FROM t",
    "CREATE TABLE h (id BIGINT) STORED AS PARQUET",
    "CREATE TABLE text (id BIGINT, k BIGINT) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','",
    "INSERT INTO text SELECT * FROM t WHERE id < 5",
    "INSERT INTO h SELECT id FROM text",
    "CREATE TABLE p USING parquet AS SELECT id FROM h",
    "CREATE VIEW v AS SELECT id FROM t WHERE id < 10",
    "CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x + 1",
    "SHOW TABLES",
    "SELECT count(*), sum(f(id)) FROM v",
    "SELECT /*+ BROADCAST(h) */ count(*) FROM t JOIN h USING (id)",
    "SELECT /*+ MERGE(h) */ count(*) FROM t JOIN h USING (id) JOIN p USING (id)",
    "CREATE TABLE t (id INT) STORED AS ORC",
    "CREATE TABLE text (id INT) USING lakelog",
    "CREATE TABLE copy LIKE text USING lakelog",
    "DESCRIBE copy",
    "INSERT OVERWRITE t SELECT * FROM t WHERE id < 10",
    "SELECT count(*) FROM t VERSION AS OF 1",
    "UPDATE t SET k = 5 WHERE id = 3",
    "DELETE FROM t WHERE id = 4",
    "SELECT count(*), sum(k) FROM t",
    "CREATE TABLE numbered (n BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT) USING lakelog",
    "INSERT INTO numbered (id) SELECT id FROM h",
    "SELECT count(DISTINCT n) FROM numbered",
    "DROP TABLE numbered",
    "ALTER TABLE t RENAME TO h",
    "ALTER TABLE h RENAME TO t",
    "DROP TABLE text",
    "SHOW TABLES",
]


def test_hives_tables_and_lakelogs_are_in_the_same_namespaces(tmp_path):
    options = [
        "-Dderby.system.durability=test",
        f"-Dderby.stream.error.file={tmp_path}/derby.log",
    ]
    settings = QUIET | KRYO | spark_conf(str(tmp_path / "lake"), session_catalog=True, fsync=False)
    settings |= {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        "spark.sql.warehouse.dir": str(tmp_path / "spark-warehouse"),
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": " ".join(options),
    }
    job = tmp_path / "job.py"
    job.write_text(
        textwrap.dedent(f"""
            import json
            from pyspark.errors import PySparkException
            from pyspark.sql import SparkSession
            builder = SparkSession.builder.master("local-cluster[1,1,1024]")
            for key, value in {settings!r}.items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
            def ran(statement):
                try:
                    return [list(row) for row in spark.sql(statement).collect()]
                except PySparkException as error:
                    return error.getCondition() or str(error)
            outcomes = [ran(statement) for statement in {STATEMENTS!r}]
            spark.createDataFrame([(7, 7)], "id BIGINT, k BIGINT").write.mode("append").saveAsTable("t")
            outcomes.append(sorted(map(list, spark.table("lake.shop.t").collect()))[-2:])
            print("OUT", json.dumps(outcomes))
        """)
    )
    text = run(
        [sys.executable, str(job)],
        SPARK_HOME=str(HOME),
        SPARK_WORKER_DIR=str(tmp_path / "work"),
        HIVE_HOME=str(tmp_path),
    )
    (line,) = [line for line in text.splitlines() if line.startswith("OUT")]
    got = dict(zip([*STATEMENTS, "appended"], json.loads(line[4:]), strict=True))
    kept_texts = [["shop", name, False] for name in ("copy", "h", "p", "t", "v")]
    results = {
        "SELECT count(*), sum(f(id)) FROM v": [[10, 55]],
        "SELECT /*+ BROADCAST(h) */ count(*) FROM t JOIN h USING (id)": [[5]],
        "SELECT /*+ MERGE(h) */ count(*) FROM t JOIN h USING (id) JOIN p USING (id)": [[5]],
        "CREATE TABLE t (id INT) STORED AS ORC": "TABLE_OR_VIEW_ALREADY_EXISTS",
        "CREATE TABLE text (id INT) USING lakelog": "TABLE_OR_VIEW_ALREADY_EXISTS",
        "DESCRIBE copy": [["id", "bigint", None], ["k", "bigint", None]],
        "SELECT count(*) FROM t VERSION AS OF 1": [[100]],
        "SELECT count(*), sum(k) FROM t": [[9, 13]],
        "SELECT count(DISTINCT n) FROM numbered": [[5]],
        "ALTER TABLE t RENAME TO h": "TABLE_OR_VIEW_ALREADY_EXISTS",
        "ALTER TABLE h RENAME TO t": "TABLE_OR_VIEW_ALREADY_EXISTS",
        "SHOW TABLES": kept_texts,
        "appended": [[8, 2], [9, 0]],
    }
    assert got == {statement: results.get(statement, []) for statement in got}
    catalog = Catalog(str(tmp_path / "lake"))
    assert catalog.list_tables("shop") == [("shop", "copy"), ("shop", "t")]
    assert catalog.load_table("shop.t").row_count == 10
