"""The lowest version of each library that lakelog says it works with, as pyproject.toml has it: `NAME==VERSION` a line.

Those of the tests are not among them: which of these work is no promise to users.
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
    wanted = list(project["dependencies"])
    for extra in PROMISED:
        wanted += project["optional-dependencies"][extra]
    pins = {}
    for each in wanted:
        bound = _BOUND.fullmatch(each)
        assert bound is not None, f"{each} has no lowest version: write NAME>=VERSION"
        pins[bound[1]] = f"{bound[1]}=={bound[2]}"
    yield from pins.values()


if __name__ == "__main__":
    print("\n".join(lowest(Path("pyproject.toml").read_text())))
