"""Saved cuts: names for the state of the catalog, or of a namespace, for `spark.sql.catalog.<name>.as-of`."""

from __future__ import annotations

from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)

_NAME = OperationParameter("name", "STRING", "the cut's name")
_NAMESPACE = OperationParameter(
    "namespace", "STRING", "a namespace, for a cut of its own; NULL: the whole catalog", default="NULL"
)
_COLUMNS = (
    AnswerColumn("name", "STRING"),
    AnswerColumn("as_of", "TIMESTAMP", "the moment that it shows"),
    AnswerColumn("logs", "BIGINT", "how many namespaces and tables it includes"),
)


def _save(call: ProcedureCall) -> Rows:
    cut = call.catalog.save_cut(call["name"], namespace=call.namespace("namespace"), token=call.token)
    return [(call["name"], cut.time_us, cut.logs)]


def _drop(call: ProcedureCall) -> Rows:
    call.catalog.drop_cut(call["name"], namespace=call.namespace("namespace"), token=call.token)
    return []


def _all(call: ProcedureCall) -> Rows:
    cuts = call.catalog.cuts(call.namespace("namespace"))
    return [(name, cut.time_us, cut.logs) for name, cut in sorted(cuts.items())]


PROCEDURES = (
    SystemProcedure(
        name="save_cut",
        description="Name the present state of all namespaces and tables, or of one namespace, to show it later.",
        run=_save,
        parameters=(_NAME, _NAMESPACE),
        columns=_COLUMNS,
        changes=lambda call: call.namespace("namespace"),
        in_transaction=False,
    ),
    SystemProcedure(
        name="drop_cut",
        description="Delete a saved cut: versions that only it needs can expire then.",
        run=_drop,
        parameters=(_NAME, _NAMESPACE),
        changes=lambda call: call.namespace("namespace"),
        in_transaction=False,
    ),
    SystemProcedure(
        name="cuts",
        description="List the saved cuts of the whole catalog, or a namespace's own.",
        run=_all,
        parameters=(_NAMESPACE,),
        columns=_COLUMNS,
    ),
)
