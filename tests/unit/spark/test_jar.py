"""Finding and naming the adapter's jar, and building a small one; building its own is tested with Spark."""

from __future__ import annotations

import os
import sys
import zipfile
from unittest.mock import MagicMock

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakelog.log.errors import InvalidInput, LakelogError, NotFound
from lakelog.spark import configure, jar, spark_conf
from lakelog.spark.configure import CATALOG_CLASS, EXTENSIONS_CLASS, PYTHON_PATH, own_folders


@pytest.fixture
def spark(tmp_path):
    """A folder of jars like that of a Spark of the version."""

    def make(version):
        folder = tmp_path / version
        folder.mkdir()
        (folder / f"spark-catalyst_2.13-{version}.jar").touch()
        return folder

    return make


def test_the_sources_are_found_in_the_checkout():
    assert (jar.sources() / "LakeCatalog.scala").is_file()


def test_a_jar_that_is_in_the_cache_is_not_built_again(spark, tmp_path, monkeypatch):
    built = []

    def build(folder, jars, target):
        built.append(target)
        target.parent.mkdir(exist_ok=True)
        target.touch()
        return target

    monkeypatch.setattr(jar, "_build", build)
    cache, jars = tmp_path / "cache", spark("4.3.0")
    first = jar.jar_path(cache=cache, jars=jars)
    assert jar.jar_path(cache=cache, jars=jars) == first
    assert built == [first]
    assert jar.jar_path(cache=cache, jars=spark("4.2.1")) != first


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_cache_that_others_may_write_to_is_refused_by_name(spark, tmp_path, monkeypatch, what):
    monkeypatch.setattr(jar, "_build", lambda folder, jars, target: target)
    cache, jars = tmp_path / "cache", spark("4.3.0")
    target = jar.jar_path(cache=cache, jars=jars)
    cache.mkdir(mode=0o700)
    target.touch(mode=0o644)
    assert jar.jar_path(cache=cache, jars=jars) == target
    path = cache if what == "folder" else target
    path.chmod(0o777)
    with pytest.raises(InvalidInput, match=f"other users may write to {path} .*777"):
        jar.jar_path(cache=cache, jars=jars)


def test_a_cache_of_another_user_is_refused_by_name(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(jar, "_build", lambda folder, jars, target: target)
    jars = spark("4.3.0")
    target = jar.jar_path(cache=tmp_path, jars=jars)
    target.touch(mode=0o644)
    if os.getuid() == 0:
        os.chown(target, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(InvalidInput, match="belongs to the user"):
        jar.jar_path(cache=tmp_path, jars=jars)


def test_a_spark_that_is_too_old_or_new_is_refused_by_its_version(spark, tmp_path):
    with pytest.raises(InvalidInput, match=r"3\.5\.3"):
        jar.jar_path(cache=tmp_path, jars=spark("3.5.3"))


def test_sources_of_a_version_are_compiled_for_that_version_only(tmp_path, monkeypatch):
    for name in (
        "Common.scala",
        "versions/4.0-4.2/Older.scala",
        "versions/4.2/Own.scala",
        "versions/9.9/deeper/Own.scala",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(jar, "SUPPORTED", (*jar.SUPPORTED, "9.9"))

    def files(spark):
        return [path.relative_to(tmp_path).as_posix() for path in jar.scala_files(tmp_path, spark)]

    assert files("4.2.1") == ["Common.scala", "versions/4.0-4.2/Older.scala", "versions/4.2/Own.scala"]
    assert files("4.1.4") == ["Common.scala", "versions/4.0-4.2/Older.scala"]
    assert files("4.3.0") == ["Common.scala"]
    assert files("9.9.1") == ["Common.scala", "versions/9.9/deeper/Own.scala"]


WARNED_OF = "package p\nimport java.util.Locale\n"


def test_the_source_of_a_version_is_in_its_jar_and_in_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(jar, "SUPPORTED", ("9.8", "9.9"))
    for name, text in {
        "Common.scala": WARNED_OF + "object Common { val word: String = Own.word }\n",
        "versions/9.8/Own.scala": 'package p\nobject Own { val word = "older" }\nclass Older\n',
        "versions/9.9/Own.scala": 'package p\nobject Own { val word = "newer" }\nclass Newer\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert jar._jar_name(tmp_path, "9.8.0") != jar._jar_name(tmp_path, "9.9.0")
    monkeypatch.setattr(jar, "spark_version", lambda _: "9.9.0")
    with zipfile.ZipFile(jar._build(tmp_path, jar.spark_jars(), tmp_path / "own.jar")) as archive:
        held_names = {name for name in archive.namelist() if "$" not in name}
    assert held_names == {"lakelog-adapter.properties", "p/Common.class", "p/Own.class", "p/Newer.class"}


def test_a_warning_is_an_error_in_a_checkout(tmp_path, monkeypatch):
    (tmp_path / "A.scala").write_text(WARNED_OF + "class A\n")
    monkeypatch.setattr(jar, "_CHECKOUT", tmp_path)
    with pytest.raises(LakelogError, match="Unused import"):
        jar._build(tmp_path, jar.spark_jars(), tmp_path / "own.jar")


def test_a_folder_without_spark_is_named(tmp_path):
    with pytest.raises(NotFound, match=str(tmp_path)):
        jar.jar_path(cache=tmp_path, jars=tmp_path)


def test_settings_name_the_catalog_its_warehouse_and_this_python(tmp_path):
    settings = spark_conf(
        f"file://{tmp_path}", name="mine", jar="/a.jar", region="eu-west-1", path_style=True, fsync=False
    )
    assert settings["spark.jars"] == "/a.jar"
    assert settings["spark.sql.catalog.mine.warehouse"] == str(tmp_path)
    assert settings["spark.sql.catalog.mine.region"] == "eu-west-1"
    assert settings["spark.sql.catalog.mine.path_style"] == "true"
    assert settings["spark.sql.catalog.mine.fsync"] == "off"
    assert "spark.sql.catalog.mine.endpoint" not in settings
    with pytest.raises(InvalidInput, match="my lake"):
        spark_conf(str(tmp_path), name="my lake", jar="/a.jar")


def test_the_settings_say_where_this_one_has_lakelog_from(tmp_path, monkeypatch):
    assert (PYTHON_PATH in spark_conf(str(tmp_path), jar="/a.jar")) == bool(own_folders())
    monkeypatch.setattr("lakelog.__path__", [str(tmp_path / "files.zip" / "lakelog")])
    settings = spark_conf(str(tmp_path), jar="/a.jar")
    assert settings[PYTHON_PATH] == str(tmp_path / "files.zip")
    other_spark_conf = spark_conf(str(tmp_path), jar="/a.jar", python="/usr/bin/other")
    assert PYTHON_PATH not in other_spark_conf
    assert sys.executable == settings["spark.sql.catalog.lake.python"]


def test_jars_and_extensions_that_a_builder_has_stay(tmp_path):
    builder = (
        SparkSession.Builder()
        .config("spark.jars", "/b.jar")
        .config("spark.sql.extensions", "other.Extension")
    )
    for _ in range(2):
        builder = configure(builder, str(tmp_path), jar="/a.jar")
    assert builder._options["spark.jars"] == "/b.jar,/a.jar"
    assert builder._options["spark.sql.extensions"] == f"other.Extension,{EXTENSIONS_CLASS}"


@pytest.mark.parametrize("has_lakelog", [True, False])
def test_a_jvm_that_runs_without_lakelog_is_not_configured(tmp_path, monkeypatch, has_lakelog):
    """It takes jars at its start only, and outlives a session that is stopped."""
    jvm = MagicMock()
    jvm.org.apache.spark.util.Utils.classIsLoadable.side_effect = lambda name: (
        has_lakelog and name == CATALOG_CLASS
    )
    monkeypatch.setattr(SparkContext, "_jvm", jvm)
    if has_lakelog:
        assert configure(SparkSession.Builder(), str(tmp_path), jar="/a.jar")
    else:
        with pytest.raises(InvalidInput, match="without lakelog's jar .* start the process anew"):
            configure(SparkSession.Builder(), str(tmp_path), jar="/a.jar")


def test_the_session_catalog_gets_the_same_settings_beside_the_named_one(tmp_path):
    settings = spark_conf(str(tmp_path), name="mine", jar="/a.jar", region="eu-west-1", session_catalog=True)
    ours = {
        key.removeprefix("spark.sql.catalog.mine"): value for key, value in settings.items() if ".mine" in key
    }
    its = {
        key.removeprefix("spark.sql.catalog.spark_catalog"): value
        for key, value in settings.items()
        if ".spark_catalog" in key
    }
    assert its == ours | {"": "org.apache.spark.sql.lakelog.LakeSessionCatalog"}
    with pytest.raises(InvalidInput, match="session_catalog=True"):
        spark_conf(str(tmp_path), name="spark_catalog", jar="/a.jar")
    with pytest.raises(InvalidInput, match="as_of"):
        spark_conf(str(tmp_path), as_of="2026-01-01", session_catalog=True, jar="/a.jar")


def test_the_jar_says_which_class_a_format_is():
    (service,) = jar.resources(jar.sources())
    assert service.name == "org.apache.spark.sql.sources.DataSourceRegister"
    assert service.read_text().strip() == "org.apache.spark.sql.lakelog.LakeDataSource"
