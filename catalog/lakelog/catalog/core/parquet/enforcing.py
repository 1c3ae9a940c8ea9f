"""CHECK conditions on rows that Python writes: enforced where they are understood; otherwise nothing is written.

A condition is Spark's SQL. What lakelog understands of it is the part that it can filter files by: comparisons of
columns with literals, IN, NULL tests, text tests, AND, OR, NOT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.parquet.proofs import condition_of
from lakelog.catalog.core.planning import Bound, evaluate, unknown_parts
from lakelog.catalog.core.schema import Check, Metadata
from lakelog.catalog.errors import CheckViolated
from lakelog.log.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Enforced:
    check: Check
    condition: Bound


def checks_of(metadata: Metadata) -> list[Enforced]:
    """Return the CHECKs of a table to enforce here. Unsupported, with the name, for one that cannot be enforced."""
    found = []
    for check in metadata.constraints:
        if isinstance(check, Check):
            condition = condition_of(check, metadata.schema)
            if unknown_parts(condition):
                raise Unsupported(
                    f"the table has the constraint {check.name} CHECK ({check.sql}), which only Spark can evaluate: "
                    "write the rows by INSERT, UPDATE or MERGE in Spark"
                )
            found.append(Enforced(check, condition))
    return found


def enforce(checks: Sequence[Enforced], rows: pa.Table) -> None:
    """Raise CheckViolated, with the constraint's name, where a condition is false for a row."""
    for each in checks:
        violated = pc.sum(pc.equal(evaluate(each.condition, rows), False)).as_py() or 0
        if violated:
            raise CheckViolated(
                f"{violated} rows of the data violate the constraint {each.check.name} CHECK ({each.check.sql}): leave "
                "them out, or change them"
            )
