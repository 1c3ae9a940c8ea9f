"""Saved cuts: names for the state of the whole catalog, for `spark.sql.catalog.<name>.as-of`."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

_NAME = Parameter("name", "STRING", "the cut's name")
_COLUMNS = (
    Column("name", "STRING"),
    Column("time", "TIMESTAMP", "the moment that it shows"),
    Column("logs", "BIGINT", "how many namespaces and tables it includes"),
)


def _save(call: Call) -> Rows:
    cut = call.catalog.save_cut(call["name"], token=call.token)
    return [(call["name"], cut.time_us, cut.logs)]


def _drop(call: Call) -> Rows:
    call.catalog.drop_cut(call["name"], token=call.token)
    return []


def _all(call: Call) -> Rows:
    return [(name, cut.time_us, cut.logs) for name, cut in sorted(call.catalog.cuts().items())]


PROCEDURES = (
    Procedure(
        name="save_cut",
        description="Name the present state of all namespaces and tables, to show it later.",
        run=_save,
        parameters=(_NAME,),
        columns=_COLUMNS,
        changes=lambda call: (),
        in_transaction=False,
    ),
    Procedure(
        name="drop_cut",
        description="Delete a saved cut: versions that only it needs can expire then.",
        run=_drop,
        parameters=(_NAME,),
        changes=lambda call: (),
        in_transaction=False,
    ),
    Procedure(name="cuts", description="List the saved cuts.", run=_all, columns=_COLUMNS),
)
