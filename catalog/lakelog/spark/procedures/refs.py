"""Fast-forward of a branch; SQL has statements for all else about tags and branches."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows


def _fast_forward(call: Call) -> Rows:
    table = call.catalog.load_table(call.table("table"))
    now = table.fast_forward(call["branch"], call["to"], token=call.token)
    return [(call["branch"], table.version, now.version)]


PROCEDURES = (
    Procedure(
        name="fast_forward",
        description="Give a branch the rows of another one that contains all its changes; main is the table itself.",
        run=_fast_forward,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter("branch", "STRING", "the branch that changes"),
            Parameter("to", "STRING", "the branch whose rows it gets"),
        ),
        columns=(
            Column("branch_updated", "STRING", "the branch that has all of the other one now"),
            Column("previous_version", "BIGINT", "the version of the table before"),
            Column("current_version", "BIGINT", "after; the same where the branch had all changes already"),
        ),
        changes=lambda call: call.table("table"),
    ),
)
