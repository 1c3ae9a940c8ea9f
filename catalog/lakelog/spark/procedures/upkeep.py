"""How tables are, and doing what is due by their policies."""

from __future__ import annotations

import datetime as dt

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.maintenance import NAMESPACE, TABLE, subject


def _health(call: Call) -> Rows:
    which = subject(call)
    found = call.catalog.health(which.get("table", which.get("namespace")), listing=call["listing"])
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


def _maintain(call: Call) -> Rows:
    which, limit_us = subject(call), call["limit_time"]
    found = call.catalog.maintain(
        which.get("table", which.get("namespace")),
        dry_run=call["dry_run"],
        limit_time=None if limit_us is None else dt.timedelta(microseconds=limit_us),
        limit_bytes=call["limit_bytes"],
    )
    return [
        (
            each.name, each.compacted.read_files, each.compacted.read_bytes, each.compacted.written_files,
            each.compacted.written_bytes, each.compacted.deleted_rows, each.versions, each.freed_files,
            each.freed_bytes, each.is_left, each.note, each.error,
        )
        for each in found
    ]  # fmt: skip


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
        description="Do what is due for tables by their policies: compact, and expire and vacuum where one says so.",
        run=_maintain,
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
