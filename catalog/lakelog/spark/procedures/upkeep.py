"""How tables are, and doing what is due by their policies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lakelog.log.errors import LakelogError
from lakelog.log.secrets import masked
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.maintenance import NAMESPACE, TABLE, JobsOfCall, subject_name
from lakelog.spark.procedures.statistics import commit_statistics
from lakelog.spark.requests.jobs import KeepTable, KeptTable, Maintain, Maintained
from lakelog.spark.requests.writes import ClusteringGoal, CompactionGoal

if TYPE_CHECKING:
    from lakelog.catalog.keeping.upkeep import Due
    from lakelog.catalog.keeping.upkeep import Maintained as KeptOutside


def _health(call: Call) -> Rows:
    found = call.catalog.health(subject_name(call), listing=call["listing"])
    return [
        (
            table.name, table.version, table.files, table.size_bytes, table.small_files, table.rows, table.deleted_rows,
            table.old_versions, table.past_bytes, table.unreachable_bytes, table.last_day.commits,
            table.last_day.rebased, advice and advice.level, advice and advice.what, advice and advice.action,
            advice and advice.reads_bytes, advice and advice.writes_bytes, advice and advice.saves_files,
            advice and advice.frees_bytes, advice and advice.sql, advice and advice.command, table.problem,
        )
        for table in found
        for advice in (table.advice or (None,))
    ]  # fmt: skip


def _prepare(call: Call) -> Maintain:
    """Return what Spark's executors rewrite. In a dry run there is nothing."""
    from lakelog.catalog.keeping.upkeep import Limits

    name, limits = subject_name(call), _limits(call)
    Limits(
        now_s=lambda: 0.0,
        limit_s=None if limits["limit_time"] is None else limits["limit_time"].total_seconds(),
        limit_bytes=limits["limit_bytes"],
    )
    due = [] if call["dry_run"] else call.catalog.plan_upkeep(name)
    return Maintain(
        tables=tuple(
            KeepTable(
                table=tuple(each.path),
                goal=CompactionGoal(
                    target_size_bytes=each.goal.target_size_bytes,
                    deleted_ratio=each.goal.deleted_ratio,
                    fan_in=each.goal.fan_in,
                    joins=each.goal.joins,
                ),
                most_bytes=each.goal.most_bytes,
                clustering=_clustering(call, each),
                statistics=each.statistics,
            )
            for each in due
        ),
        limit_us=call["limit_time"],
        limit_bytes=call["limit_bytes"],
    )


def _clustering(call: Call, due: Due) -> ClusteringGoal | None:
    """Return the goal of a table that is to be clustered, which has boundaries that divide its rows then."""
    if due.clustering is None:
        return None
    try:
        call.catalog.load_table(due.path).ranked()
    except LakelogError:
        return None  # it is due still, and what ails the table is reported by what else is done for it
    goal = due.clustering
    return ClusteringGoal(
        target_size_bytes=goal.target_size_bytes, key=due.key, fresh_min=goal.fresh_min, full=goal.full
    )


def _limits(call: Call) -> dict[str, Any]:
    limit_us = call["limit_time"]
    limit_time = None if limit_us is None else dt.timedelta(microseconds=limit_us)
    return {"limit_time": limit_time, "limit_bytes": call["limit_bytes"]}


def _maintain(call: Call) -> Rows:
    """Have Spark rewrite rows; then expire and vacuum, where no limit came before, and commit statistics."""
    name = subject_name(call)
    job = call.asked().run(_prepare(call), Maintained)
    if call["dry_run"]:
        due = {_name(each.path): len(each.statistics) for each in call.catalog.plan_upkeep(name)}
        planned = call.catalog.maintain(name, dry_run=True, **_limits(call))
        return [_row(each, statistics=due.get(each.name, 0)) for each in planned]
    limit_us = call["limit_time"]
    is_over = any(each.is_left for each in job.tables) or (limit_us is not None and job.took_us >= limit_us)
    left = None if limit_us is None else dt.timedelta(microseconds=max(1, limit_us - job.took_us))
    actions = () if is_over else ("expire", "vacuum")
    with JobsOfCall(call.asked()).engine() as engine:
        found = call.catalog.maintain(name, actions=actions, limit_time=left, engine=engine)
    done = {_name(each.table): each for each in job.tables}
    return [
        _row(each, _with_statistics(call, done.get(each.name)), is_over=is_over)
        if each.kind == "table"
        else _row(each)
        for each in found
    ]


def _name(path: Sequence[str]) -> str:
    from lakelog.catalog.names import quoted

    return quoted(tuple(path))


def _with_statistics(call: Call, job: KeptTable | None) -> KeptTable | None:
    """Commit the statistics that were computed, where the table is still as it was then."""
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
    done, note, error = each.compacted, each.note, each.error
    counts = (done.read_files, done.read_bytes, done.written_files, done.written_bytes, done.deleted_rows)
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
    freed = (each.versions, each.freed_files, each.freed_bytes)
    return (each.name, *counts, statistics, *freed, is_left, note, error)


PROCEDURES = (
    Procedure(
        name="health",
        description="How tables are, from metadata alone: a row for each advice, with what it costs and saves.",
        run=_health,
        parameters=(
            TABLE,
            NAMESPACE,
            Parameter(
                "listing", "BOOLEAN", "count what a vacuum would delete now, by listing it", default="false"
            ),
        ),
        columns=(
            Column("name", "STRING"),
            Column("version", "BIGINT"),
            Column("files", "BIGINT"),
            Column("size_bytes", "BIGINT"),
            Column("small_files", "BIGINT", "that a compaction may join"),
            Column("rows", "BIGINT"),
            Column("deleted_rows", "BIGINT", "that are still in their files"),
            Column("old_versions", "BIGINT", "that only time travel needs"),
            Column("past_bytes", "BIGINT", "estimate: what expiry of all of these and a vacuum would free"),
            Column("unreachable_bytes", "BIGINT", "what a vacuum would delete now; NULL: not counted"),
            Column("day_commits", "BIGINT", "commits of the last day"),
            Column("day_lost_races", "BIGINT", "of which so many were rebased over others"),
            Column("level", "STRING", "good, could or should"),
            Column("advice", "STRING"),
            Column("action", "STRING"),
            Column("reads_bytes", "BIGINT", "that the action would read"),
            Column("writes_bytes", "BIGINT"),
            Column("saves_files", "BIGINT", "that a scan of all rows no longer opens"),
            Column("frees_bytes", "BIGINT"),
            Column("statement", "STRING", "that does it in Spark"),
            Column("command", "STRING", "that does it on a command line"),
            Column("problem", "STRING", "why no more is known"),
        ),
        in_transaction=False,
    ),
    Procedure(
        name="maintain",
        description="Do what is due for tables by their policies, in jobs: compact, cluster, compute old statistics "
        "anew, and expire and vacuum where a policy says so.",
        run=_maintain,
        asks=True,
        parameters=(
            TABLE,
            NAMESPACE,
            Parameter("dry_run", "BOOLEAN", "only report what is due", default="false"),
            Parameter(
                "limit_time",
                "INTERVAL DAY TO SECOND",
                "begin nothing more after that time; NULL: no limit",
                default="NULL",
            ),
            Parameter(
                "limit_bytes",
                "BIGINT",
                "begin nothing more once compactions have read so much; NULL: no limit",
                default="NULL",
            ),
        ),
        columns=(
            Column("name", "STRING"),
            Column("rewritten_files", "BIGINT", "that the table no longer has"),
            Column("rewritten_bytes", "BIGINT"),
            Column("added_files", "BIGINT", "in their place"),
            Column("added_bytes", "BIGINT"),
            Column("deleted_rows", "BIGINT", "that were still in those files"),
            Column("statistics", "BIGINT", "columns whose statistics were computed anew"),
            Column("versions", "BIGINT", "how many have expired"),
            Column("freed_files", "BIGINT", "that were deleted, as no version had them"),
            Column("freed_bytes", "BIGINT"),
            Column("is_left", "BOOLEAN", "a limit was reached before the end: call it again"),
            Column("note", "STRING", "why something was left"),
            Column("error", "STRING", "what failed"),
        ),
        in_transaction=False,
    ),
)
