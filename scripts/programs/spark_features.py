"""The table of docs/compatibility.md: which Spark has which feature, by the marks of the tests.

A marked test has to pass with a Spark that has the feature. With an older one it has to be refused in words.
`python -m programs.spark_features` writes the table into the page.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "compatibility.md"
TESTS = REPOSITORY / "tests"
MARKS = TESTS / "spark" / "versions.py"
SPARKS = ("4.3", "4.2", "4.1", "4.0")

_TABLE = re.compile(r"(<!-- features: [^\n]* -->\n).*?(<!-- end of features -->)", re.S)


@dataclass(frozen=True)
class SparkFeature:
    """A feature that Sparks have from `version` on, with the number of tests that are marked with it."""

    version: str
    name: str
    tests: int


def features(marks: Path = MARKS, tests: Path = TESTS) -> list[SparkFeature]:
    """Return the features that tests are marked with, those of the newest Spark first.

    Raises ValueError if a mark has no test.
    """
    declared = dict(_declared(ast.parse(marks.read_text(encoding="utf-8"))))
    counts = Counter(
        name
        for path in sorted(tests.rglob("*.py"))
        if path != marks
        for name in _decorators(path)
        if name in declared
    )
    if unused := sorted(declared.keys() - counts.keys()):
        raise ValueError(f"No test has the marks {', '.join(unused)}.")
    rows = [SparkFeature(version, name, counts[mark]) for mark, (version, name) in declared.items()]
    return sorted(rows, key=lambda feature: (feature.version, feature.name), reverse=True)


def table(rows: list[SparkFeature]) -> str:
    """Return the table of the page."""
    head = [f"| feature | {' | '.join(SPARKS)} | tests |", f"|---|{'---|' * len(SPARKS)}---|"]
    return "".join(f"{line}\n" for line in [*head, *map(_row, rows)])


def with_table(page: str, rows: list[SparkFeature]) -> str:
    """Return the page with the table. Raises ValueError if the page has no place for it."""
    text, count = _TABLE.subn(lambda place: place[1] + "\n" + table(rows) + "\n" + place[2], page)
    if count != 1:
        raise ValueError("The page has no place for the table, or several.")
    return text


def _row(feature: SparkFeature) -> str:
    answers = ("yes" if _number(feature.version) <= _number(spark) else "no" for spark in SPARKS)
    return f"| {feature.name} | {' | '.join(answers)} | {feature.tests} |"


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _declared(module: ast.Module) -> list[tuple[str, tuple[str, str]]]:
    marks = []
    for statement in module.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(mark)],
                value=ast.Call(
                    func=ast.Name("needs_spark"),
                    args=[ast.Constant(str(version)), ast.Constant(str(name)), _],
                ),
            ):
                marks.append((mark, (version, name)))
    return marks


def _decorators(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if "tests.spark.versions" not in text:
        return []
    return [
        decorator.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Name)
    ]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), features()), encoding="utf-8")
