"""The lowest version of each library that pyproject.toml promises: `NAME==VERSION` on each line.

The tests' libraries are not included, because lakelog promises users nothing about their versions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROMISED = ("s3", "pandas", "polars", "duckdb", "sql", "otel", "signing")
"""The extras of users, without Spark: its versions have environments of their own."""

_BOUND = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)(?:,<[\w.]+)?")


def lowest(text: str) -> Iterator[str]:
    """Yield the pins of a pyproject.toml."""
    project = tomllib.loads(text)["project"]
    dependencies = list(project["dependencies"])
    for extra in PROMISED:
        dependencies += project["optional-dependencies"][extra]
    pins = {}
    for dependency in dependencies:
        lower_bound = _BOUND.fullmatch(dependency)
        assert lower_bound is not None, f"{dependency} has no lowest version: write NAME>=VERSION"
        pins[lower_bound[1]] = f"{lower_bound[1]}=={lower_bound[2]}"
    yield from pins.values()


if __name__ == "__main__":
    print("\n".join(lowest(Path("pyproject.toml").read_text())))
