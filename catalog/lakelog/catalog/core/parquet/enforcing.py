"""CHECK conditions on rows that Python writes: enforced if they are understood; otherwise nothing is written.

A condition is Spark's SQL. lakelog understands the part that it can filter files by: comparisons of columns
with literals, IN, NULL tests, text tests, AND, OR, NOT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.parquet.proofs import condition_of
from lakelog.catalog.core.planning.bound import Bound, unknown_parts
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema.constraints import CheckConstraint
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.errors import CheckViolated
from lakelog.log.errors import Unsupported


@dataclass(frozen=True, slots=True)
class EnforcedCheck:
    check: CheckConstraint
    condition: Bound


def checks_of(metadata: Metadata) -> list[EnforcedCheck]:
    """Return the CHECKs of a table to enforce here.

    Raises Unsupported, with the name, if any cannot be enforced.
    """
    checks = []
    for check in metadata.constraints:
        if isinstance(check, CheckConstraint):
            condition = condition_of(check, metadata.schema)
            if unknown_parts(condition):
                raise Unsupported(
                    f"the table has the constraint {check.name} CHECK ({check.sql}), which only Spark can evaluate: "
                    "write the rows by INSERT, UPDATE or MERGE in Spark"
                )
            checks.append(EnforcedCheck(check, condition))
    return checks


def enforce(checks: Sequence[EnforcedCheck], rows: pa.Table) -> None:
    """Raise CheckViolated, with the constraint's name, if a condition is false for a row."""
    for rule in checks:
        count = pc.sum(pc.equal(evaluate(rule.condition, rows), False)).as_py() or 0
        if count:
            raise CheckViolated(
                f"{count} rows of the data violate the constraint {rule.check.name} CHECK ({rule.check.sql}): leave "
                "them out, or change them"
            )
