"""Checking what is stored, and repairing what can be without cost to any reader: `lakelog fsck`, as rows."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.maintenance import NAMESPACE, TABLE, subject


def _fsck(call: Call) -> Rows:
    [name] = subject(call).values() or [None]
    findings = call.catalog.fsck(
        name, deep=call["deep"], all_versions=call["all_versions"], repair=call["repair"]
    )
    repaired = [("repaired", None, None, line, None) for line in findings.repaired]
    return [
        *repaired,
        *(
            (each.severity.value, each.kind, each.where, each.what, each.todo)
            for each in findings.by_severity()
        ),
    ]


PROCEDURES = (
    Procedure(
        name="fsck",
        description="Check every object of the catalog, or of a part of it. No row means that nothing is wrong.",
        run=_fsck,
        parameters=(
            TABLE,
            Parameter(
                "repair",
                "BOOLEAN",
                "write hints and snapshots anew, and finish what is unfinished",
                default="false",
            ),
            Parameter("deep", "BOOLEAN", "read every page of the data files too", default="false"),
            Parameter(
                "all_versions",
                "BOOLEAN",
                "check data files of all versions that can be read",
                default="false",
            ),
            NAMESPACE,
        ),
        columns=(
            Column(
                "severity", "STRING", "damage, repairable or note; repaired: what a repair did, or why not"
            ),
            Column("kind", "STRING", "a stable word"),
            Column("location", "STRING", "the URL of the object"),
            Column("what", "STRING", "what is wrong"),
            Column("todo", "STRING", "what to do about it"),
        ),
        in_transaction=False,
    ),
)
