"""The commits of the session's last change of tables, with the number of rows that it has changed."""

from __future__ import annotations

from lakelog.catalog.times import time_us
from lakelog.spark.procedures.declare import AnswerColumn, ProcedureCall, Rows, SystemProcedure


def _last_commit(call: ProcedureCall) -> Rows:
    rows = []
    for commit in call.newest_commits():
        entry, counts = commit.entry, commit.entry.rows
        numbers = (
            (None,) * 4
            if counts is None
            else (counts.inserted, counts.updated, counts.deleted, counts.copied)
        )
        rows.append(
            (
                commit.table,
                entry.version,
                time_us(entry.committed_at),
                entry.operation,
                *numbers,
                entry.commit_id,
            )
        )
    return rows


PROCEDURES = (
    SystemProcedure(
        name="last_commit",
        description="Show what this session's last change of tables has committed, and how many rows it has changed.",
        run=_last_commit,
        columns=(
            AnswerColumn("table", "STRING"),
            AnswerColumn("version", "BIGINT", "that the commit has made"),
            AnswerColumn("committed_at", "TIMESTAMP"),
            AnswerColumn("operation", "STRING"),
            AnswerColumn("rows_inserted", "BIGINT", "NULL: not known, or no change of rows"),
            AnswerColumn("rows_updated", "BIGINT"),
            AnswerColumn("rows_deleted", "BIGINT"),
            AnswerColumn("rows_copied", "BIGINT", "written once more as they were"),
            AnswerColumn("commit_id", "STRING"),
        ),
    ),
)
