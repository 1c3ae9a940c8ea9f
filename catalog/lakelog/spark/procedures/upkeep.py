"""The health of tables, and the upkeep that their policies make due."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lakelog.catalog import engine
from lakelog.catalog.operations.maintaining import HEALTH, MAINTAIN
from lakelog.log.errors import LakelogError
from lakelog.log.secrets import masked
from lakelog.spark.procedures.declare import ProcedureCall, Rows, procedure_of
from lakelog.spark.procedures.maintenance import SCOPE, JobsOfCall, subject_name
from lakelog.spark.procedures.statistics import commit_statistics
from lakelog.spark.requests.jobs import KeepTable, KeptTable, MaintainResult, MaintainTables
from lakelog.spark.requests.writes import ClusteringGoal, CompactionGoal

if TYPE_CHECKING:
    from lakelog.catalog.keeping.upkeep import DueWork
    from lakelog.catalog.keeping.upkeep import Maintained as KeptOutside


def _health(call: ProcedureCall) -> Rows:
    tables = call.catalog.health(subject_name(call), listing=call["listing"])
    return [
        (
            table.name, table.version, table.files, table.size_bytes, table.small_files, table.rows, table.deleted_rows,
            table.old_versions, table.past_bytes, table.unreachable_bytes, table.last_day.commits,
            table.last_day.rebased, advice and advice.level, advice and advice.what, advice and advice.action,
            advice and advice.reads_bytes, advice and advice.writes_bytes, advice and advice.saves_files,
            advice and advice.frees_bytes, advice and advice.sql, advice and advice.command, table.problem,
        )
        for table in tables
        for advice in (table.advice or (None,))
    ]  # fmt: skip


def _prepare(call: ProcedureCall) -> MaintainTables:
    """Return the job for Spark's executors. In a dry run it is empty."""
    from lakelog.catalog.engine.upkeep import plan_upkeep
    from lakelog.catalog.keeping.upkeep import MaintenanceLimits

    name, limit_time = subject_name(call), call["limit_time"]
    limit_s = None if limit_time is None else limit_time.total_seconds()
    MaintenanceLimits(now_s=lambda: 0.0, limit_s=limit_s, limit_bytes=call["limit_bytes"])
    due = [] if call["dry_run"] else plan_upkeep(call.catalog, name)
    return MaintainTables(
        tables=tuple(
            KeepTable(
                table=tuple(due_table.path),
                goal=CompactionGoal(
                    target_size_bytes=due_table.goal.target_size_bytes,
                    deleted_ratio=due_table.goal.deleted_ratio,
                    fan_in=due_table.goal.fan_in,
                    joins=due_table.goal.joins,
                ),
                most_bytes=due_table.goal.most_bytes,
                clustering=_clustering(call, due_table),
                statistics=due_table.statistics,
            )
            for due_table in due
        ),
        limit_us=_micros(limit_time),
        limit_bytes=call["limit_bytes"],
    )


def _clustering(call: ProcedureCall, due: DueWork) -> ClusteringGoal | None:
    """Return the goal of a table that is to be clustered. Makes boundaries that divide its rows."""
    if due.clustering is None:
        return None
    try:
        engine.ranked(call.catalog.load_table(due.path))
    except LakelogError:
        return None  # it stays due, and other upkeep reports the table's problem
    goal = due.clustering
    return ClusteringGoal(
        target_size_bytes=goal.target_size_bytes, key=due.key, fresh_min=goal.fresh_min, full=goal.full
    )


def _micros(time: dt.timedelta | None) -> int | None:
    return None if time is None else time // dt.timedelta(microseconds=1)


def _maintain(call: ProcedureCall) -> Rows:
    """Have Spark rewrite rows. Then expire and vacuum, if no limit came before, and commit statistics."""
    from lakelog.catalog.engine.upkeep import plan_upkeep

    name = subject_name(call)
    job = call.asked().run(_prepare(call), MaintainResult)
    if call["dry_run"]:
        due = {
            _name(table_result.path): len(table_result.statistics)
            for table_result in plan_upkeep(call.catalog, name)
        }
        plans = call.catalog.maintain(name, **call.keywords(*SCOPE))
        return [_row(table_result, statistics=due.get(table_result.name, 0)) for table_result in plans]
    limit_us = _micros(call["limit_time"])
    is_over = any(table_result.is_left for table_result in job.tables) or (
        limit_us is not None and job.took_us >= limit_us
    )
    remaining_time = None if limit_us is None else dt.timedelta(microseconds=max(1, limit_us - job.took_us))
    actions = () if is_over else ("expire", "vacuum")
    with JobsOfCall(call.asked()).engine() as engine:
        results = call.catalog.maintain(name, actions=actions, limit_time=remaining_time, engine=engine)
    jobs_by_table = {_name(table_result.table): table_result for table_result in job.tables}
    return [
        _row(table_result, _with_statistics(call, jobs_by_table.get(table_result.name)), is_over=is_over)
        if table_result.kind == "table"
        else _row(table_result)
        for table_result in results
    ]


def _name(path: Sequence[str]) -> str:
    from lakelog.catalog.names import quoted

    return quoted(tuple(path))


def _with_statistics(call: ProcedureCall, job: KeptTable | None) -> KeptTable | None:
    """Commit the computed statistics, if the table is still the same."""
    if job is None or job.statistics is None or job.error is not None:
        return job
    try:
        commit_statistics(call.catalog.load_table(job.table), job.statistics, None)
    except LakelogError as error:
        return msgspec.structs.replace(job, error=str(error))
    return job


def _row(
    each: KeptOutside, job: KeptTable | None = None, *, statistics: int = 0, is_over: bool = False
) -> tuple[Any, ...]:
    compaction, note, error = each.compacted, each.note, each.error
    counts = (
        compaction.read_files,
        compaction.read_bytes,
        compaction.written_files,
        compaction.written_bytes,
        compaction.deleted_rows,
    )
    is_left = each.is_left or is_over
    if job is not None:
        counts = (
            job.rewritten_files, job.rewritten_bytes, job.added_files, job.added_bytes, job.deleted_rows
        )  # fmt: skip
        statistics = 0 if job.statistics is None else len(job.statistics.columns)
        if job.lost:
            note = (
                note or "other writers changed files of some steps: what is left of these is for the next run"
            )
        error = error or (None if job.error is None else masked(job.error))
    freed_counts = (each.versions, each.freed_files, each.freed_bytes)
    return (each.name, *counts, statistics, *freed_counts, is_left, note, error)


PROCEDURES = (
    procedure_of(HEALTH, _health, in_transaction=False),
    procedure_of(MAINTAIN, _maintain, in_transaction=False, asks=True),
)
