"""Statistics of whole columns, computed by a Spark job and kept in the table for Spark's cost-based optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog import Scalar, engine
from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)
from lakelog.spark.requests.jobs import ComputeStatistics, StatisticsResult

if TYPE_CHECKING:
    from lakelog.catalog import Table, Token


def _prepare(call: ProcedureCall) -> ComputeStatistics:
    path = call.table("table")
    return ComputeStatistics(
        table=tuple(path),
        columns=tuple(_columns(call.catalog.load_table(path), call["columns"])),
    )


def _columns(table: Table, wanted: list[str | None] | None) -> list[str]:
    """Return the names of the requested columns. Raises InvalidInput if a column cannot be counted."""
    from lakelog.catalog.keeping.upkeep import is_counted

    countable = {field.name: is_counted(field.type) for field in table.schema.fields}
    if wanted is None:
        return [name for name, is_countable in countable.items() if is_countable]
    if not wanted or None in wanted:
        raise InvalidInput(
            "the list of columns is empty, or has a NULL: name columns, or leave them out for all"
        )
    names = list(dict.fromkeys(table.schema.find((str(name),)).name for name in wanted))
    for name in names:
        if not countable[name]:
            kind = table.schema.find((name,)).type
            raise InvalidInput(
                f"the column {name} is {kind}, for which Spark computes no statistics: leave it out"
            )
    return names


def commit_statistics(newest: Table, result: StatisticsResult, token: Token | None) -> int:
    """Commit the results of a job, and return the version that it read. Raises CommitConflict."""
    from lakelog.catalog.engine import ColumnEstimates, TableEstimates
    from lakelog.catalog.errors import CommitConflict

    if newest.id != result.id:
        raise CommitConflict(
            f"{newest.name} was dropped and re-created while its statistics were computed: compute them again",
            version=newest.version,
        )
    table = newest if newest.version == result.version else newest.at(version=result.version)
    if table.metadata.generation != newest.metadata.generation:
        raise CommitConflict(
            f"{newest.name} was replaced while its statistics were computed: compute them again",
            version=newest.version,
        )
    columns: dict[int, ColumnEstimates] = {}
    for column in result.columns:
        column_facts = msgspec.structs.asdict(column)
        field = table.schema.find((column_facts.pop("name"),))
        columns[field.id] = ColumnEstimates(type=str(field.type), **column_facts)
    estimates = TableEstimates(
        version=table.version, rows=result.rows, size_bytes=table.size_bytes, columns=columns
    )
    engine.commit_statistics(newest, estimates, token=token)
    return table.version


def _compute(call: ProcedureCall) -> Rows:
    result = call.came_of(StatisticsResult)
    version = commit_statistics(call.catalog.load_table(call.table("table")), result, call.token)
    return [
        (
            column.name, result.rows, column.distinct, column.nulls, _shown(column.min), _shown(column.max),
            column.average_bytes, column.most_bytes, version,
        )
        for column in result.columns
    ]  # fmt: skip


def _shown(literal: Scalar) -> str | None:
    return None if literal is None else str(literal)


PROCEDURES = (
    SystemProcedure(
        name="compute_statistics",
        description="Compute statistics of a table's columns from all rows, for Spark's cost-based optimizer.",
        prepare=_prepare,
        run=_compute,
        parameters=(
            OperationParameter("table", "STRING", "the table"),
            OperationParameter(
                "columns", "ARRAY<STRING>", "these columns; NULL: all that can be counted", default="NULL"
            ),
        ),
        columns=(
            AnswerColumn("column", "STRING"),
            AnswerColumn("rows", "BIGINT", "of the table"),
            AnswerColumn("distinct_values", "BIGINT", "estimated, without NULL"),
            AnswerColumn("nulls", "BIGINT"),
            AnswerColumn("min", "STRING", "as the log stores it: days, microseconds"),
            AnswerColumn("max", "STRING"),
            AnswerColumn("average_bytes", "BIGINT"),
            AnswerColumn("most_bytes", "BIGINT"),
            AnswerColumn("version", "BIGINT", "that was read"),
        ),
        changes=lambda call: call.table("table"),
    ),
)
