"""What the session's last change of tables has committed: how many rows it has changed."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Procedure, Rows


def _last_commit(call: Call) -> Rows:
    rows = []
    for each in call.newest_commits():
        entry, counts = each.entry, each.entry.rows
        numbers = (
            (None,) * 4
            if counts is None
            else (counts.inserted, counts.updated, counts.deleted, counts.copied)
        )
        rows.append(
            (each.table, entry.version, entry.timestamp_us, entry.operation, *numbers, entry.commit_id)
        )
    return rows


PROCEDURES = (
    Procedure(
        name="last_commit",
        description="Show what this session's last change of tables has committed, and how many rows it has changed.",
        run=_last_commit,
        columns=(
            Column("table", "STRING"),
            Column("version", "BIGINT", "that the commit has made"),
            Column("committed_at", "TIMESTAMP"),
            Column("operation", "STRING"),
            Column("rows_inserted", "BIGINT", "NULL: not known, or no change of rows"),
            Column("rows_updated", "BIGINT"),
            Column("rows_deleted", "BIGINT"),
            Column("rows_copied", "BIGINT", "written once more as they were"),
            Column("commit_id", "STRING"),
        ),
    ),
)
