"""Statistics of whole columns, computed by a Spark job and kept in the table for Spark's cost-based optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.schema import Scalar
from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import ComputeStatistics, StatisticsComputed

if TYPE_CHECKING:
    from lakelog.catalog.core.logs import Token
    from lakelog.catalog.table import Table


def _prepare(call: Call) -> ComputeStatistics:
    path = call.table("table")
    return ComputeStatistics(
        table=tuple(path),
        columns=tuple(_columns(call.catalog.load_table(path), call["columns"])),
    )


def _columns(table: Table, wanted: list[str | None] | None) -> list[str]:
    """Return the names of the columns that are meant. InvalidInput for one that cannot be counted."""
    from lakelog.catalog.keeping.upkeep import is_counted

    countable = {field.name: is_counted(field.type) for field in table.schema.fields}
    if wanted is None:
        return [name for name, counted in countable.items() if counted]
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


def commit_statistics(newest: Table, result: StatisticsComputed, token: Token | None) -> int:
    """Commit what a job has computed; return the version that was read. CommitConflict."""
    from lakelog.catalog.core.files import ColumnEstimates, TableEstimates
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
    for each in result.columns:
        own = msgspec.structs.asdict(each)
        field = table.schema.find((own.pop("name"),))
        columns[field.id] = ColumnEstimates(type=str(field.type), **own)
    estimates = TableEstimates(
        version=table.version, rows=result.rows, size_bytes=table.size_bytes, columns=columns
    )
    newest.commit_statistics(estimates, token=token)
    return table.version


def _compute(call: Call) -> Rows:
    result = call.came_of(StatisticsComputed)
    version = commit_statistics(call.catalog.load_table(call.table("table")), result, call.token)
    return [
        (
            each.name, result.rows, each.distinct, each.nulls, _shown(each.min), _shown(each.max),
            each.average_bytes, each.most_bytes, version,
        )
        for each in result.columns
    ]  # fmt: skip


def _shown(literal: Scalar) -> str | None:
    return None if literal is None else str(literal)


PROCEDURES = (
    Procedure(
        name="compute_statistics",
        description="Compute statistics of a table's columns from all rows, for Spark's cost-based optimizer.",
        prepare=_prepare,
        run=_compute,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter(
                "columns", "ARRAY<STRING>", "these columns; NULL: all that can be counted", default="NULL"
            ),
        ),
        columns=(
            Column("column", "STRING"),
            Column("rows", "BIGINT", "of the table"),
            Column("distinct_values", "BIGINT", "estimated, without NULL"),
            Column("nulls", "BIGINT"),
            Column("min", "STRING", "as the log stores it: days, microseconds"),
            Column("max", "STRING"),
            Column("average_bytes", "BIGINT"),
            Column("most_bytes", "BIGINT"),
            Column("version", "BIGINT", "that was read"),
        ),
        changes=lambda call: call.table("table"),
    ),
)
