"""Erasing rows from all data that a table has or had. Spark's jobs read and write the rows."""

from __future__ import annotations

from lakelog.catalog.operations.maintaining import FORGET
from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import ProcedureCall, Rows, procedure_of


def _forget(call: ProcedureCall) -> Rows:
    from lakelog.catalog.names import identifier
    from lakelog.spark.spark_work import SparkWork

    table = call.table("table")
    if call["namespace"] is not None:
        if len(identifier(call["table"])) > 1:
            raise InvalidInput(
                "the table is named with its namespace, and a namespace is given: give it once"
            )
        table = (*call.namespace("namespace"), table[-1])
    result = call.catalog.forget(table, **call.keywords("table", "namespace"), work=SparkWork(call.asked()))
    rows: list[tuple[object, ...]] = [
        (
            part.kind, part.name, part.details or None, part.files, part.rows, part.past_files, part.versions,
            part.erased_at, part.checked_objects,
        )
        for part in result.tables
        if part.holds_any or part.versions or part.error
    ]  # fmt: skip
    no_facts = (None,) * 6
    rows += [(f"lost {log.kind}", log.name, log.why, *no_facts) for log in result.lost]
    rows += [("left", result.table, text, *no_facts) for text in result.left]
    if result.is_needed:
        rows += [("out of reach", result.table, text, *no_facts) for text in result.out_of_reach]
    if result.statement is not None:
        rows.append(("receipt", result.table, result.statement, *no_facts[:-2], result.version, None))
    return rows


PROCEDURES = (procedure_of(FORGET, _forget, rows=True, in_transaction=False, asks=True),)
