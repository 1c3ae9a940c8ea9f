"""What was dropped and can be restored, and restoring it; giving a name to a table that has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

if TYPE_CHECKING:
    from lakelog.catalog import CatalogNames
    from lakelog.catalog.names import Identifier

_ID = Parameter(
    "id", "STRING", "which one, as listed by dropped(); NULL: the one dropped last", default="NULL"
)
_TO = Parameter("to", "STRING", "another name for it; NULL: the one it had", default="NULL")
_RESTORED = (Column("restored", "STRING", "the name that it has now"),)


def _undrop(
    kind: str, description: str, method: Callable[[CatalogNames], Callable[..., Identifier]]
) -> Procedure:
    """Declare the procedure that restores a table, view or function by that method of the catalog."""

    def run(call: Call) -> Rows:
        from lakelog.catalog.names import quoted

        to = None if call["to"] is None else call.table("to")
        undrop = method(call.catalog)
        return [(quoted(undrop(call.table(kind), id=call["id"], to=to, token=call.token)),)]

    return Procedure(
        name=f"undrop_{kind}",
        description=description,
        run=run,
        parameters=(Parameter(kind, "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.table(kind)[:-1],
    )


def _undrop_namespace(call: Call) -> Rows:
    from lakelog.catalog.names import quoted

    to = None if call["to"] is None else call.namespace("to")
    if to == ("system",):
        raise InvalidInput(
            "the namespace system holds lakelog's own procedures and tables: choose another name"
        )
    name = call.namespace("namespace")
    return [(quoted(call.catalog.undrop_namespace(name, id=call["id"], to=to, token=call.token)),)]


def _dropped(call: Call) -> Rows:
    from lakelog.catalog.names import quoted

    found = call.catalog.dropped(call.namespace("namespace"), recursive=call["recursive"])
    return [
        (each.id, each.kind, quoted(each.name), each.dropped_us, each.kept_until_us, each.user)
        for each in found
    ]


def _register_table(call: Call) -> Rows:
    location = call["location"]
    if not location:
        raise InvalidInput("the location is empty: give the folder or URL where the table's log is")
    table = call.catalog.register_table(
        call.table("table"), location, take_over=bool(call["take_over"]), token=call.token
    )
    return [(table.version, table.row_count, table.file_count)]


PROCEDURES = (
    Procedure(
        name="register_table",
        description="Give a name to a table at a location that has none.",
        run=_register_table,
        parameters=(
            Parameter("table", "STRING", "the name that it gets"),
            Parameter("location", "STRING", "the folder or URL that holds its log"),
            Parameter(
                "take_over",
                "BOOLEAN",
                "also one that a namespace of another warehouse links",
                default="false",
            ),
        ),
        columns=(
            Column("current_version", "BIGINT"),
            Column("rows", "BIGINT"),
            Column("files", "BIGINT", "data files"),
        ),
        changes=lambda call: call.table("table"),
    ),
    _undrop("table", "Restore a dropped table, with its history.", lambda catalog: catalog.undrop_table),
    _undrop("view", "Restore a dropped view.", lambda catalog: catalog.undrop_view),
    _undrop("function", "Restore a dropped function.", lambda catalog: catalog.undrop_function),
    Procedure(
        name="undrop_namespace",
        description="Restore a dropped namespace, with all that was dropped together with it.",
        run=_undrop_namespace,
        parameters=(Parameter("namespace", "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.namespace("namespace")[:-1],
    ),
    Procedure(
        name="dropped",
        description="List what was dropped and can be restored, the latest drop first.",
        run=_dropped,
        parameters=(
            Parameter("namespace", "STRING", "where; NULL: at the root", default="NULL"),
            Parameter("recursive", "BOOLEAN", "in all namespaces below it too", default="true"),
        ),
        columns=(
            Column("id", "STRING"),
            Column("kind", "STRING", "table, view, function or namespace"),
            Column("name", "STRING", "the name that it had"),
            Column("dropped", "TIMESTAMP"),
            Column("kept_until", "TIMESTAMP", "when vacuum, run as usual, may purge it"),
            Column("user", "STRING", "who dropped it"),
        ),
    ),
)
