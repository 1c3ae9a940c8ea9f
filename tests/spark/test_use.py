"""The ways in which people start Spark: PySpark, spark-sql, spark-submit, executors elsewhere."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyspark
import pytest

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema.definition import FunctionDefinition
from lakelog.spark import spark_conf
from lakelog.spark.jar import jar_path

HOME = Path(pyspark.__file__).parent
QUIET = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
}


def home(folder):
    """An installation of Spark whose workers, those of `local-cluster` too, have their folders below `folder`."""
    own = folder / "spark-home"
    own.mkdir()
    for path in HOME.iterdir():
        if path.name != "work":
            (own / path.name).symlink_to(path)
    return own


def arguments(settings):
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def run(command, **environment):
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow  # With settings of the command, `spark-sql` is started in the short form too, with paths with spaces.
def test_spark_sql_takes_the_settings_as_conf_lines_and_finds_python_by_itself(tmp_path):
    settings = QUIET | spark_conf(str(tmp_path / "lake"), fsync=False)
    del settings["spark.sql.catalog.lake.python"]
    text = run(
        [
            str(HOME / "bin" / "spark-sql"), *arguments(settings), "--conf", f"spark.sql.warehouse.dir={tmp_path}/w",
            "--hiveconf", f"javax.jdo.option.ConnectionURL=jdbc:derby:{tmp_path}/m;create=true",
            "-e", "CREATE TABLE lake.t PARTITIONED BY (k) AS SELECT id, id % 2 AS k FROM range(10); "
            "INSERT INTO lake.t VALUES (77, 0); SELECT sum(id), count(*) FROM lake.t; SHOW CREATE TABLE lake.t;",
        ],
        PYSPARK_DRIVER_PYTHON=sys.executable, PYSPARK_PYTHON="/nowhere/python", SPARK_HOME=str(HOME),
    )  # fmt: skip
    assert "122\t11" in text
    assert "PARTITIONED BY (k)" in text
    assert Catalog(str(tmp_path / "lake")).load_table("t").row_count == 11


def test_configure_makes_a_session_that_works_under_spark_submit_too(tmp_path):
    job = tmp_path / "job.py"
    job.write_text(
        textwrap.dedent(f"""
            from pyspark.sql import SparkSession
            from lakelog.spark import configure
            builder = SparkSession.builder.master("local[1]")
            for key, value in {QUIET!r}.items():
                builder = builder.config(key, value)
            spark = configure(builder, warehouse={str(tmp_path / "lake")!r}, name="mine").getOrCreate()
            spark.sql("CREATE TABLE mine.t AS SELECT 1 AS id")
            print("rows", spark.table("mine.t").count())
        """)
    )
    assert "rows 1" in run([sys.executable, str(job)])
    assert Catalog(str(tmp_path / "lake")).list_tables() == [("t",)]


@pytest.mark.adapter
def test_executors_need_the_jar_only(tmp_path):
    """The executors are processes of their own, whose Python cannot import lakelog."""
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    settings = QUIET | spark_conf(str(tmp_path / "lake"), fsync=False)
    settings |= {"spark.pyspark.python": str(bare), "spark.executor.memory": "512m"}
    job = tmp_path / "job.py"
    job.write_text(
        textwrap.dedent(f"""
            import json
            from pyspark.sql import SparkSession
            builder = SparkSession.builder.master("local-cluster[1,1,1024]")
            for key, value in {settings!r}.items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
            spark.sql("CREATE TABLE lake.t PARTITIONED BY (bucket(2, id)) AS SELECT id, id * 2 AS v FROM range(100)")
            spark.sql("INSERT OVERWRITE lake.t SELECT id, v + 1 FROM lake.t WHERE id < 50")
            print("OUT", json.dumps(spark.sql("SELECT count(*), sum(v) FROM lake.t").collect()[0]))
        """)
    )
    text = run([sys.executable, str(job)], SPARK_HOME=str(home(tmp_path)))
    (line,) = [line for line in text.splitlines() if line.startswith("OUT")]
    assert json.loads(line[3:]) == [50, 2500]


def test_without_the_extension_spark_says_what_is_missing_and_calls_what_is_there(tmp_path):
    """The functions of other sessions' making: scalar ones need no extension to be called."""
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("a")
    engine.create_function(
        catalog,
        "a.twice",
        FunctionDefinition(language="sql", body="x * 2", parameters="x INT", returns="INT"),
    )
    settings = QUIET | spark_conf(str(tmp_path / "lake"), fsync=False)
    del settings["spark.sql.extensions"]
    job = tmp_path / "job.py"
    job.write_text(
        textwrap.dedent(f"""
            from lakelog.log.errors import InvalidInput
            from lakelog.spark import configure
            from pyspark.errors import AnalysisException, UnsupportedOperationException
            from pyspark.sql import SparkSession
            builder = SparkSession.builder.master("local[1]")
            for key, value in {settings!r}.items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
            try:
                configure(SparkSession.builder, {str(tmp_path / "lake")!r}, fsync=False)
            except InvalidInput as error:
                print("OUT", str(error)[:78])
            print("OUT", *spark.sql("SELECT lake.a.twice(21), lake.bucket(16, 34)").collect()[0])
            spark.sql("CREATE TABLE lake.a.t (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT)")
            try:
                spark.sql("UPDATE lake.a.t SET v = 1")
            except UnsupportedOperationException as error:
                print("OUT", "needs lakelog's session extension" in str(error))
            for statement in (
                "CREATE FUNCTION lake.a.f() RETURNS INT RETURN 1", "CREATE FUNCTION lake.a.f AS 'x.Y'",
                "DROP FUNCTION lake.a.twice",
            ):
                try:
                    spark.sql(statement)
                except AnalysisException as error:
                    print("OUT", error.getCondition())
        """)
    )
    assert [line[4:] for line in run([sys.executable, str(job)]).splitlines() if line.startswith("OUT")] == [
        "Spark was started in this process without lakelog's jar or session extension, ",
        "42 3",
        "True",
        "MISSING_CATALOG_ABILITY.CREATE_FUNCTION",
        "MISSING_CATALOG_ABILITY.CREATE_FUNCTION",
        "MISSING_CATALOG_ABILITY.DROP_FUNCTION",
    ]
    assert catalog.list_functions("a") == [("a", "twice")]


def test_the_command_prints_the_jar(tmp_path):
    assert run([sys.executable, "-m", "lakelog.spark", "jar"]).strip() == str(jar_path())
    assert jar_path().is_file()


def test_a_catalog_without_a_warehouse_says_what_to_set(spark):
    spark.conf.set("spark.sql.catalog.nowhere", "org.apache.spark.sql.lakelog.LakeCatalog")
    with pytest.raises(Exception, match=r"spark\.sql\.catalog\.nowhere\.warehouse"):
        spark.sql("SHOW TABLES IN nowhere")
