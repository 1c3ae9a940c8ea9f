"""Listing and restoring dropped tables, views, functions and namespaces, and naming a table that has no name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakelog.catalog.operations.copies import DROPPED
from lakelog.catalog.times import time_us
from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
    procedure_of,
)

if TYPE_CHECKING:
    from lakelog.catalog.engine import CatalogNames
    from lakelog.catalog.names import Identifier

_ID = OperationParameter(
    "id", "STRING", "which one, as listed by dropped(); NULL: the one dropped last", default="NULL"
)
_TO = OperationParameter("to", "STRING", "another name for it; NULL: the one it had", default="NULL")
_RESTORED = (AnswerColumn("restored", "STRING", "the name that it has now"),)


def _undrop(
    kind: str, description: str, method: Callable[[CatalogNames], Callable[..., Identifier]]
) -> SystemProcedure:
    """Declare the procedure that restores a table, view or function by that method of the catalog."""

    def run(call: ProcedureCall) -> Rows:
        from lakelog.catalog.names import quoted

        to = None if call["to"] is None else call.table("to")
        undrop = method(call.catalog)
        return [(quoted(undrop(call.table(kind), id=call["id"], to=to, token=call.token)),)]

    return SystemProcedure(
        name=f"undrop_{kind}",
        description=description,
        run=run,
        parameters=(OperationParameter(kind, "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.table(kind)[:-1],
    )


def _undrop_namespace(call: ProcedureCall) -> Rows:
    from lakelog.catalog.names import quoted

    to = None if call["to"] is None else call.namespace("to")
    if to == ("system",):
        raise InvalidInput(
            "the namespace system holds lakelog's own procedures and tables: choose another name"
        )
    name = call.namespace("namespace")
    return [(quoted(call.catalog.undrop_namespace(name, id=call["id"], to=to, token=call.token)),)]


def _dropped(call: ProcedureCall) -> Rows:
    from lakelog.catalog.names import quoted

    drops = call.catalog.dropped(call.namespace("namespace"), recursive=call["recursive"])
    return [
        (drop.id, drop.kind, quoted(drop.name), time_us(drop.dropped_at), time_us(drop.kept_until), drop.user)
        for drop in drops
    ]


def _register_table(call: ProcedureCall) -> Rows:
    location = call["location"]
    if not location:
        raise InvalidInput("the location is empty: give the folder or URL where the table's log is")
    table = call.catalog.register_table(
        call.table("table"), location, take_over=bool(call["take_over"]), token=call.token
    )
    return [(table.version, table.row_count, table.file_count)]


PROCEDURES = (
    SystemProcedure(
        name="register_table",
        description="Give a name to a table at a location that has none.",
        run=_register_table,
        parameters=(
            OperationParameter("table", "STRING", "the name that it gets"),
            OperationParameter("location", "STRING", "the folder or URL that holds its log"),
            OperationParameter(
                "take_over",
                "BOOLEAN",
                "also one that a namespace of another warehouse links",
                default="false",
            ),
        ),
        columns=(
            AnswerColumn("current_version", "BIGINT"),
            AnswerColumn("rows", "BIGINT"),
            AnswerColumn("files", "BIGINT", "data files"),
        ),
        changes=lambda call: call.table("table"),
    ),
    _undrop("table", "Restore a dropped table, with its history.", lambda catalog: catalog.undrop_table),
    _undrop("view", "Restore a dropped view.", lambda catalog: catalog.undrop_view),
    _undrop("function", "Restore a dropped function.", lambda catalog: catalog.undrop_function),
    SystemProcedure(
        name="undrop_namespace",
        description="Restore a dropped namespace, with all that was dropped together with it.",
        run=_undrop_namespace,
        parameters=(OperationParameter("namespace", "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.namespace("namespace")[:-1],
    ),
    procedure_of(DROPPED, _dropped),
)
