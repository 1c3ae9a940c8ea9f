"""Fast-forward of a branch. SQL has statements for all other changes of tags and branches."""

from __future__ import annotations

from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)


def _fast_forward(call: ProcedureCall) -> Rows:
    table = call.catalog.load_table(call.table("table"))
    new_table = table.fast_forward(call["branch"], call["to"], token=call.token)
    return [(call["branch"], table.version, new_table.version)]


PROCEDURES = (
    SystemProcedure(
        name="fast_forward",
        description="Give a branch the rows of another one that contains all its changes; main is the table itself.",
        run=_fast_forward,
        parameters=(
            OperationParameter("table", "STRING", "the table"),
            OperationParameter("branch", "STRING", "the branch that changes"),
            OperationParameter("to", "STRING", "the branch whose rows it gets"),
        ),
        columns=(
            AnswerColumn("branch_updated", "STRING", "the branch that has all of the other one now"),
            AnswerColumn("previous_version", "BIGINT", "the version of the table before"),
            AnswerColumn(
                "current_version", "BIGINT", "after; the same where the branch had all changes already"
            ),
        ),
        changes=lambda call: call.table("table"),
    ),
)
