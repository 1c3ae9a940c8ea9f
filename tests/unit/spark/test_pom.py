"""The pom says of the adapter what its builder does."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lakelog.log.errors import InvalidInput
from lakelog.spark import jar
from lakelog.spark.__main__ import main
from lakelog.spark.pom import artifact, pom

MAVEN = "{http://maven.apache.org/POM/4.0.0}"


def texts(pom: str, tag: str, below: str = "plugins") -> list[str]:
    found_element = ElementTree.fromstring(pom).find(f".//{MAVEN}{below}")
    assert found_element is not None
    return [element.text or "" for element in found_element.iter(f"{MAVEN}{tag}")]


def test_the_pom_that_is_checked_in_is_current():
    kept_text = (jar.sources() / "pom.xml").read_text(encoding="utf-8")
    assert kept_text == pom(jar.sources(), jar.SUPPORTED[-1]), "run scripts/release --trial"


def test_an_artifact_is_for_one_version_of_spark_and_scala():
    assert [artifact(spark) for spark in ("4.2.1", "4.3.0")] == [
        "lakelog-spark-4.2_2.13",
        "lakelog-spark-4.3_2.13",
    ]
    with pytest.raises(InvalidInput, match=r"3\.5\.3"):
        artifact("3.5.3")


@pytest.mark.parametrize("spark", jar.SUPPORTED)
def test_maven_compiles_with_the_options_of_the_builder(spark):
    assert texts(pom(jar.sources(), spark), "arg") == [*jar.OPTIONS, *jar.STRICT]


@pytest.mark.parametrize("spark", jar.SUPPORTED)
def test_maven_compiles_the_sources_of_the_builder(tmp_path, spark):
    for name in (
        "A.scala",
        "rows/B.scala",
        "versions/4.2/C.scala",
        "versions/4.3/deeper/D.scala",
        "README.md",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    written = pom(tmp_path, spark)
    chosen = _matching_paths(tmp_path, texts(written, "include")) - _matching_paths(
        tmp_path, texts(written, "exclude")
    )
    assert sorted(chosen) == jar.scala_files(tmp_path, spark)


def _matching_paths(folder: Path, patterns: list[str]) -> set[Path]:
    return {
        path
        for pattern in patterns
        for path in folder.glob(pattern + ("/*" if pattern.endswith("**") else ""))
    }


def test_what_goes_into_the_jar_as_it_is_is_a_resource_of_maven():
    (included,) = texts(pom(jar.sources(), "4.3"), "include", "resources")
    folder = jar.sources()
    assert {path for path in folder.glob(included + "/*") if path.is_file()} == set(jar.resources(folder))


def test_a_published_pom_depends_on_the_spark_that_it_is_for():
    assert texts(pom(jar.sources(), "4.2.1"), "version", "dependencies") == ["4.2.1", "4.2.1"]
    assert texts(pom(jar.sources(), "4.2"), "scope", "dependencies") == ["provided", "provided"]


def test_the_command_prints_the_pom(capsys):
    assert main(["pom", "4.2"]) == 0
    assert capsys.readouterr().out == pom(jar.sources(), "4.2")
    assert main(["pom", "3.5"]) == 1
    assert main(["pom", "4.2", "4.3"]) == 2
