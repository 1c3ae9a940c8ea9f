"""Going back to an earlier version of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

if TYPE_CHECKING:
    from lakelog.catalog.table import Table

_TABLE = Parameter("table", "STRING", "the table")
_COLUMNS = (
    Column("previous_version", "BIGINT", "the version that was the current one"),
    Column("restored_version", "BIGINT", "the version that was restored"),
    Column("current_version", "BIGINT", "the new version"),
)


def _loaded(call: Call) -> Table:
    return call.catalog.load_table(call.table("table"))


def _rollback_to_version(call: Call) -> Rows:
    table = _loaded(call)
    now = table.rollback_to_version(call["version"], token=call.token)
    return [(table.version, call["version"], now.version)]


def _rollback_to_timestamp(call: Call) -> Rows:
    table = _loaded(call)
    version = table.at(timestamp_us=call["timestamp"]).version
    return [(table.version, version, table.rollback_to_version(version, token=call.token).version)]


def _set_current_version(call: Call) -> Rows:
    table = _loaded(call)
    now = table.set_current_version(call["version"], token=call.token)
    return [(table.version, call["version"], now.version)]


PROCEDURES = (
    Procedure(
        name="rollback_to_version",
        rows=True,
        description="Restore a table as of a version: rows, columns, partitioning and properties.",
        run=_rollback_to_version,
        parameters=(_TABLE, Parameter("version", "BIGINT", "the version to go back to")),
        columns=_COLUMNS,
        changes=lambda call: call.table("table"),
    ),
    Procedure(
        name="rollback_to_timestamp",
        rows=True,
        description="Restore a table as of a time: rows, columns, partitioning and properties.",
        run=_rollback_to_timestamp,
        parameters=(_TABLE, Parameter("timestamp", "TIMESTAMP", "the newest version not after it is meant")),
        columns=_COLUMNS,
        changes=lambda call: call.table("table"),
    ),
    Procedure(
        name="set_current_version",
        rows=True,
        description="Give a table the rows of a version; its columns, partitioning and properties stay as they are.",
        run=_set_current_version,
        parameters=(_TABLE, Parameter("version", "BIGINT", "the version that has the rows")),
        columns=_COLUMNS,
        changes=lambda call: call.table("table"),
    ),
)
