"""Write, audit, publish: rows are written to a branch, checked, and published by a single commit or not at
all.

spark.sql("ALTER TABLE lake.shop.orders CREATE BRANCH audit")
new_rows.writeTo("lake.shop.orders.branch_audit").append() audited = audit_and_publish(spark,
{"lake.shop.orders": ["amount > 0", "customer IS NOT NULL"]}, branch="audit")

The same transaction makes the checks and publishes all tables. It fails if a branch got more rows after that,
or if a table has changed after its branch was made. Only `spark.sql` is used, so any kind of session will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput
from lakelog.spark.transaction import transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Failed:
    """Rows of a table's branch for which a check is false: their count, and the query that shows them."""

    table: str
    check: str
    count: int
    query: str


@dataclass(frozen=True, slots=True)
class Audited:
    """The result of an audit. All tables are `published`, or none is and there are `failed` checks."""

    published: bool
    failed: tuple[Failed, ...]


def audit_and_publish(
    spark: SparkSession, checks: Mapping[str, Sequence[str]], *, branch: str, catalog: str = "lake"
) -> Audited:
    """Publish the branch of that name of each table, if all of its rows pass the table's checks.

    `checks` has conditions in SQL by the names of tables, as statements of the session name them. A row
    passes if the condition is true or NULL, as with a CHECK. Publishing gives the tables the rows of their
    branches, by a single commit of all tables. The branches stay. If any row fails, nothing is changed. A
    table that has changes which its branch lacks is an error, as in `fast_forward`. Then create the branch
    again, and write the rows again.
    """
    if not checks:
        raise InvalidInput("no table is given: name at least one, with conditions or with none")
    failed_checks: list[Failed] = []
    try:
        with transaction(spark, catalog, isolation="serializable"):
            for table, conditions in checks.items():
                failed_checks += _failed(spark, table, conditions, branch)
            if failed_checks:
                raise _NotPublished
            for table in checks:
                spark.sql(
                    f"CALL {_quoted(catalog)}.system.fast_forward("
                    f"table => '{_text(table)}', branch => 'main', to => '{_text(branch)}')"
                )
    except _NotPublished:
        pass
    return Audited(not failed_checks, tuple(failed_checks))


def _failed(spark: SparkSession, table: str, conditions: Sequence[str], branch: str) -> list[Failed]:
    if isinstance(conditions, str):
        raise InvalidInput(f"the checks of {table} are the text {conditions!r}: give a list of conditions")
    failed_checks = []
    for condition in conditions:
        failing_query = f"SELECT * FROM {table}.{_quoted(f'branch_{branch}')} WHERE NOT ({condition})"
        [row] = spark.sql(f"SELECT count(*) FROM ({failing_query})").collect()
        if row[0]:
            failed_checks.append(Failed(table, condition, row[0], failing_query))
    return failed_checks


class _NotPublished(Exception):
    """Ends the transaction of an audit that has found failing rows."""


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
