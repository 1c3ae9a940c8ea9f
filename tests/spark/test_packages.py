"""The adapter's packages are their folders, stand in layers, and have no circles; nor have its files."""

from __future__ import annotations

import re

import pytest
from tests.spark.class_files import ClassFile, Graph, between_packages, between_sources, circle, classes_of

from lakelog.spark.configure import CATALOG_CLASS, EXTENSIONS_CLASS, SESSION_CATALOG_CLASS
from lakelog.spark.jar import jar_path, scala_files, sources, spark_jars, spark_version

BY_NAME = {CATALOG_CLASS, SESSION_CATALOG_CLASS, EXTENSIONS_CLASS}


@pytest.fixture(scope="module")
def classes() -> dict[str, ClassFile]:
    return classes_of(jar_path())


@pytest.fixture(scope="module")
def files(classes: dict[str, ClassFile]) -> Graph:
    return between_sources(classes)


def layers() -> list[list[str]]:
    """Return the packages in the order of the README's map, from the top."""
    text = (sources() / "README.md").read_text(encoding="utf-8")
    match = re.search(r"<!-- layers -->(.*?)<!-- /layers -->", text, re.DOTALL)
    assert match
    return [re.split(r",\s*", line.strip().split("  ")[0]) for line in match[1].splitlines() if line.strip()]


def test_a_package_is_its_folder(files: Graph) -> None:
    folder = sources()
    names = [path.relative_to(folder).parts for path in scala_files(folder, spark_version(spark_jars()))]
    # Those for some versions of Spark only are in a folder of `versions`, in the same folders as the others.
    there = {"/".join(parts[2:] if parts[0] == "versions" else parts) for parts in names}
    assert set(files) == there


def test_no_files_go_in_a_circle(files: Graph) -> None:
    assert " -> ".join(circle(files)) == ""


def test_a_package_knows_those_below_it_only(files: Graph) -> None:
    at = {package: floor for floor, packages in enumerate(layers()) for package in packages}
    graph = between_packages(files)
    assert set(graph) == set(at)
    up = [
        f"{package} -> {other_package}"
        for package, other_packages in graph.items()
        for other_package in other_packages
        if at[other_package] <= at[package]
    ]
    assert sorted(up) == []


def test_the_names_that_settings_have_are_those_of_classes(classes: dict[str, ClassFile]) -> None:
    root = "org.apache.spark.sql.lakelog."
    assert {name.removeprefix(root) for name in BY_NAME} <= set(classes)
    text = (sources() / "names/EntranceNames.scala").read_text(encoding="utf-8")
    matches = re.findall(r"\$Package\.(\w+)", text)
    assert len(matches) == 4
    assert set(matches) <= set(classes)


def test_a_circle_of_real_classes_is_found(classes: dict[str, ClassFile]) -> None:
    """Companions name each other, in one file: taken for files, they would be a circle."""
    both = {"bridge/Bridge", "bridge/Bridge$"}
    assert circle({name: classes[name].names & both - {name} for name in both}) == sorted(both)


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": "b", "b": "c", "c": ""}, []),
        ({"a": "b", "b": "c", "c": "a"}, ["a", "b", "c"]),
        ({"a": "b", "b": "cd", "c": "a", "d": "b"}, ["b", "d"]),
        ({"a": "bc", "b": "d", "c": "d", "d": ""}, []),
    ],
)
def test_the_shortest_circle_is_said(graph: dict[str, str], found: list[str]) -> None:
    assert circle({place: frozenset(other_texts) for place, other_texts in graph.items()}) == found
