"""Erasing rows from all that a table has or had. Only reports what it would do, unless dry_run is false."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows


def _forget(call: Call) -> Rows:
    from lakelog.spark.spark_work import SparkWork

    table = call.table("table")
    if call["namespace"] is not None:
        table = (*call.namespace("namespace"), table[-1])
    found = call.catalog.forget(
        table,
        call["where"],
        dry_run=call["dry_run"],
        key=call["key"],
        reference=call["reference"],
        leave_foreign=call["leave_foreign"],
        work=SparkWork(call.asked()),
    )
    rows: list[tuple[object, ...]] = [
        (
            each.kind, each.name, each.details or None, each.files, each.rows, each.past_files, each.versions,
            each.erased_at, each.checked_objects,
        )
        for each in found.tables
        if each.holds_any or each.versions or each.error
    ]  # fmt: skip
    nothing = (None,) * 6
    rows += [(f"lost {each.kind}", each.name, each.why, *nothing) for each in found.lost]
    rows += [("left", found.table, each, *nothing) for each in found.left]
    if found.is_needed:
        rows += [("out of reach", found.table, each, *nothing) for each in found.out_of_reach]
    if found.statement is not None:
        rows.append(("receipt", found.table, found.statement, *nothing[:-2], found.version, None))
    return rows


PROCEDURES = (
    Procedure(
        name="forget",
        rows=True,
        description="Erase rows from all that a table has or had, and commit a receipt; or say what that would do.",
        run=_forget,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter("where", "STRING", "which rows, as in a WHERE clause"),
            Parameter("namespace", "STRING", "the table's namespace; NULL: as named", default="NULL"),
            Parameter("dry_run", "BOOLEAN", "only report what would be done", default="true"),
            Parameter("reference", "STRING", "what the receipt names as the reason", default="NULL"),
            Parameter(
                "key", "STRING", "a PEM file of the driver with an Ed25519 key that signs", default="NULL"
            ),
            Parameter(
                "leave_foreign",
                "BOOLEAN",
                "leave such rows in files of another writer, and name these",
                default="false",
            ),
        ),
        columns=(
            Column(
                "what",
                "STRING",
                "table, clone, dropped-table, namespace, lost …, left, out of reach, receipt",
            ),
            Column("name", "STRING"),
            Column("details", "STRING", "of a receipt, its text"),
            Column("files", "BIGINT", "that have such rows now"),
            Column("rows", "BIGINT", "of these files, with those that are marked as deleted"),
            Column("past_files", "BIGINT", "that older versions have, or none"),
            Column("versions", "BIGINT", "that expire"),
            Column("version", "BIGINT", "the first without such rows; of a receipt, its own"),
            Column("checked", "BIGINT", "objects that were read at the end"),
        ),
        in_transaction=False,
        asks=True,
    ),
)
