"""Going back to an earlier version of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)

if TYPE_CHECKING:
    from lakelog.catalog import Table

_TABLE = OperationParameter("table", "STRING", "the table")
_COLUMNS = (
    AnswerColumn("previous_version", "BIGINT", "the version that was the current one"),
    AnswerColumn("restored_version", "BIGINT", "the version that was restored"),
    AnswerColumn("current_version", "BIGINT", "the new version"),
)


def _loaded(call: ProcedureCall) -> Table:
    return call.catalog.load_table(call.table("table"))


def _rollback_to_version(call: ProcedureCall) -> Rows:
    table = _loaded(call)
    new_table = table.rollback_to_version(call["version"], token=call.token)
    return [(table.version, call["version"], new_table.version)]


def _rollback_to_timestamp(call: ProcedureCall) -> Rows:
    table = _loaded(call)
    version = table.at(timestamp=call["timestamp"]).version
    return [(table.version, version, table.rollback_to_version(version, token=call.token).version)]


def _set_current_version(call: ProcedureCall) -> Rows:
    table = _loaded(call)
    new_table = table.set_current_version(call["version"], token=call.token)
    return [(table.version, call["version"], new_table.version)]


PROCEDURES = (
    SystemProcedure(
        name="rollback_to_version",
        rows=True,
        description="Restore a table as of a version: rows, columns, partitioning and properties.",
        run=_rollback_to_version,
        parameters=(_TABLE, OperationParameter("version", "BIGINT", "the version to go back to")),
        columns=_COLUMNS,
        changes=lambda call: call.table("table"),
    ),
    SystemProcedure(
        name="rollback_to_timestamp",
        rows=True,
        description="Restore a table as of a time: rows, columns, partitioning and properties.",
        run=_rollback_to_timestamp,
        parameters=(
            _TABLE,
            OperationParameter("timestamp", "TIMESTAMP", "the newest version not after it is meant"),
        ),
        columns=_COLUMNS,
        changes=lambda call: call.table("table"),
    ),
    SystemProcedure(
        name="set_current_version",
        rows=True,
        description="Give a table the rows of a version; its columns, partitioning and properties stay as they are.",
        run=_set_current_version,
        parameters=(_TABLE, OperationParameter("version", "BIGINT", "the version that has the rows")),
        columns=_COLUMNS,
        changes=lambda call: call.table("table"),
    ),
)
