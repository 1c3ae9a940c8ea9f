"""What was dropped and can be restored, and restoring it; giving a name to a table that has none."""

from __future__ import annotations

from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

_ID = Parameter("id", "STRING", "which one, as dropped() tells; NULL: the one dropped last", default="NULL")
_TO = Parameter("to", "STRING", "another name for it; NULL: the one it had", default="NULL")
_RESTORED = (Column("restored", "STRING", "the name that it has now"),)


def _undrop_table(call: Call) -> Rows:
    from lakelog.catalog.names import quoted

    to = None if call["to"] is None else call.table("to")
    return [(quoted(call.catalog.undrop_table(call.table("table"), id=call["id"], to=to, token=call.token)),)]


def _undrop_view(call: Call) -> Rows:
    from lakelog.catalog.names import quoted

    to = None if call["to"] is None else call.table("to")
    return [(quoted(call.catalog.undrop_view(call.table("view"), id=call["id"], to=to, token=call.token)),)]


def _undrop_function(call: Call) -> Rows:
    from lakelog.catalog.names import quoted

    to = None if call["to"] is None else call.table("to")
    name = call.table("function")
    return [(quoted(call.catalog.undrop_function(name, id=call["id"], to=to, token=call.token)),)]


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
        description="Give a name to a table that stands at a location, and that no name leads to.",
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
    Procedure(
        name="undrop_table",
        description="Restore a dropped table, with its history.",
        run=_undrop_table,
        parameters=(Parameter("table", "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.table("table")[:-1],
    ),
    Procedure(
        name="undrop_view",
        description="Restore a dropped view.",
        run=_undrop_view,
        parameters=(Parameter("view", "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.table("view")[:-1],
    ),
    Procedure(
        name="undrop_function",
        description="Restore a dropped function.",
        run=_undrop_function,
        parameters=(Parameter("function", "STRING", "the name that it had"), _ID, _TO),
        columns=_RESTORED,
        changes=lambda call: call.table("function")[:-1],
    ),
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
