"""A release: what its parts hold, that the same sources make the same bytes, that Spark takes the adapter from it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from lakelog.log.errors import InvalidInput
from lakelog.spark import jar
from lakelog.spark.pom import artifact
from programs.release import ROOT, add_adapter, add_rest, components, notes_of

CHANGELOG = "# C\n\n## [Unreleased]\n\n- new\n\n## [0.1.0] - 2026-01-02\n\n- first\n\n## [0.0.9]\n\n- old\n"


def test_the_notes_are_those_of_the_version_and_on_trial_what_is_new() -> None:
    assert notes_of(CHANGELOG, "0.1.0", trial=False) == "# lakelog 0.1.0\n\n- first\n"
    assert notes_of(CHANGELOG, "0.2.0", trial=True) == "# lakelog 0.2.0\n\n- new\n"
    with pytest.raises(InvalidInput, match=r"no section \[0\.2\.0\].*--trial"):
        notes_of(CHANGELOG, "0.2.0", trial=False)


def test_the_components_are_valid_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    text = components(jar.version())
    assert text == components(jar.version())
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    names = {component["name"] for component in bom["components"]}
    assert {"pyarrow", "msgspec", "pyspark", "s3fs", "botocore", "py4j"} <= names
    assert names.isdisjoint({"pytest", "ruff", "lakelog", "deltalake"})
    needs = {
        dependency["ref"].split("@")[0]: dependency.get("dependsOn", []) for dependency in bom["dependencies"]
    }
    assert any(each.startswith("pyarrow@") for each in needs["lakelog"])
    assert any(each.startswith("py4j@") for each in needs["pyspark"])
    assert bom["metadata"]["timestamp"].startswith("2023-11-14")


def test_everything_of_a_release_has_its_checksum(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    (tmp_path / "packed").mkdir()
    pom = (jar.sources() / "pom.xml").read_bytes()
    add_adapter(tmp_path / "packed", dist / "maven")
    assert (jar.sources() / "pom.xml").read_bytes() == pom
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("<h1>lakelog</h1>")
    add_rest(dist, tmp_path / "site", trial=True)
    with tarfile.open(dist / f"lakelog-{jar.version()}-site.tar.gz") as archive:
        assert archive.getnames() == ["lakelog-site/index.html"]
    spark, version = jar.spark_version(jar.spark_jars()), jar.version()
    stem = f"{artifact(spark)}-{version}"
    folder = dist / "maven/org/lakelog" / artifact(spark) / version
    built_folder = folder / f"{stem}.jar"
    assert built_folder.read_bytes() == jar.jar_path().read_bytes()
    assert (folder / f"{stem}.jar.sha1").read_text() == hashlib.sha1(built_folder.read_bytes()).hexdigest()
    with zipfile.ZipFile(folder / f"{stem}-sources.jar") as sources:
        assert "LakeCatalog.scala" in sources.namelist()
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {
        path.relative_to(dist).as_posix() for path in dist.rglob("*") if path.is_file()
    } - {"SHA256SUMS"}
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest


@pytest.mark.slow
def test_the_same_sources_make_the_same_bytes_in_two_folders_at_two_times(tmp_path: Path) -> None:
    spark = jar.spark_jars()
    made = []
    for number, folder in enumerate((tmp_path / "a", tmp_path / "somewhere" / "else")):
        tracked_data = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        for name in tracked_data.decode().split("\0"):
            if (source := ROOT / name).is_file():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                os.utime(target, (1_600_000_000 + 86_400 * number,) * 2)
        packed_folder = folder / "catalog/lakelog/spark/jars"
        packed_folder.mkdir()
        cache = folder / "cache"
        adapter = jar._build(folder / "catalog/spark", spark, cache / "adapter.jar")
        shutil.copyfile(adapter, packed_folder / "adapter.jar")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")],
            cwd=folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
            check=True,
            capture_output=True,
        )  # fmt: skip
        (wheel,) = (folder / "dist").glob("*.whl")
        made.append((wheel.name, wheel.read_bytes(), adapter.read_bytes()))
    assert made[0] == made[1]


@pytest.mark.slow
def test_spark_takes_the_adapter_from_a_maven_repository_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    add_adapter(tmp_path / "packed", tmp_path / "maven")
    name = f"org.lakelog:{artifact(jar.spark_version(jar.spark_jars()))}:{jar.version()}"
    code = f"""
from pyspark.sql import SparkSession
from lakelog.spark import configure
builder = configure(SparkSession.builder, warehouse={str(tmp_path / "warehouse")!r}, jar="")
builder.config("spark.jars.repositories", {(tmp_path / "maven").as_uri()!r})
builder.config("spark.jars.ivy", {str(tmp_path / "ivy")!r})
spark = builder.config("spark.jars.packages", {name!r}).getOrCreate()
assert "spark.jars" not in builder._options, builder._options
spark.sql("CREATE NAMESPACE lake.shop")
spark.sql("CREATE TABLE lake.shop.orders AS SELECT 1 AS id")
print("rows:", spark.table("lake.shop.orders").count())
"""
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "rows: 1" in process.stdout, process.stdout + process.stderr
