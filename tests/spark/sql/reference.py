"""Spark's own catalogs beside lakelog: the same statements on both, and what comes of them side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.spark.conftest import Place


@dataclass(frozen=True)
class Outcome:
    """What came of a statement: columns and rows, or the error's condition and parameters; each catalog is `lake`.

    The condition of an error that is in none of Spark's error classes is the name of its class.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    condition: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()


def outcome(place: Place, statement: str, *, ordered: bool = False) -> Outcome:
    """Run a statement, in which the word `lake` stands for the catalog. Rows are sorted unless they are `ordered`."""

    def masked(value: Any) -> Any:
        return re.sub(rf"\b{place.name}\b", "lake", value) if isinstance(value, str) else value

    try:
        frame = place.spark.sql(re.sub(r"\blake\b", place.name, statement))
        rows = [tuple(masked(value) for value in row) for row in frame.collect()]
    except PySparkException as error:
        named = (error.getMessageParameters() or {}).items()
        return Outcome(
            condition=error.getCondition() or type(error).__name__,
            parameters=tuple(sorted((key, masked(value)) for key, value in named)),
        )
    except Py4JJavaError as error:
        return Outcome(condition=error.java_exception.getClass().getSimpleName())
    return Outcome(columns=tuple(frame.columns), rows=tuple(rows if ordered else sorted(rows, key=repr)))
