"""Saved cuts: names for the state of the catalog, or of a namespace, for `spark.sql.catalog.<name>.as-of`."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

_NAME = Parameter("name", "STRING", "the cut's name")
_NAMESPACE = Parameter(
    "namespace", "STRING", "a namespace, for a cut of its own; NULL: the whole catalog", default="NULL"
)
_COLUMNS = (
    Column("name", "STRING"),
    Column("time", "TIMESTAMP", "the moment that it shows"),
    Column("logs", "BIGINT", "how many namespaces and tables it includes"),
)


def _save(call: Call) -> Rows:
    cut = call.catalog.save_cut(call["name"], namespace=call.namespace("namespace"), token=call.token)
    return [(call["name"], cut.time_us, cut.logs)]


def _drop(call: Call) -> Rows:
    call.catalog.drop_cut(call["name"], namespace=call.namespace("namespace"), token=call.token)
    return []


def _all(call: Call) -> Rows:
    cuts = call.catalog.cuts(call.namespace("namespace"))
    return [(name, cut.time_us, cut.logs) for name, cut in sorted(cuts.items())]


PROCEDURES = (
    Procedure(
        name="save_cut",
        description="Name the present state of all namespaces and tables, or of one namespace, to show it later.",
        run=_save,
        parameters=(_NAME, _NAMESPACE),
        columns=_COLUMNS,
        changes=lambda call: call.namespace("namespace"),
        in_transaction=False,
    ),
    Procedure(
        name="drop_cut",
        description="Delete a saved cut: versions that only it needs can expire then.",
        run=_drop,
        parameters=(_NAME, _NAMESPACE),
        changes=lambda call: call.namespace("namespace"),
        in_transaction=False,
    ),
    Procedure(
        name="cuts",
        description="List the saved cuts of the whole catalog, or a namespace's own.",
        run=_all,
        parameters=(_NAMESPACE,),
        columns=_COLUMNS,
    ),
)
