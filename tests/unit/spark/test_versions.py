"""What runs on every version of Spark for each change: it has to have a test of each file of internals."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.spark.internals import TESTS

from lakelog.spark.jar import sources

SUITE = Path(__file__).parents[2] / "spark"


def test_every_file_of_internals_has_a_test() -> None:
    folders = [sources() / "internals", *sources().glob("versions/*/internals")]
    internals = {
        str(file.relative_to(folder).with_suffix(""))
        for folder in folders
        for file in folder.rglob("*.scala")
    }
    assert set(TESTS) == internals


@pytest.mark.parametrize("test", sorted(set(TESTS.values())))
def test_the_test_is_there_and_runs_with_each_change(test: str) -> None:
    file, name = test.split("::")
    module = ast.parse((SUITE / file).read_text(encoding="utf-8"))
    (found_node,) = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name == name.partition("[")[0]
    ]
    assert "slow" not in "".join(map(ast.unparse, found_node.decorator_list))
