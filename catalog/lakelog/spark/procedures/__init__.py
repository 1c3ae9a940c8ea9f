"""Procedures: `CALL lake.system.<name>(…)`, one small module for each group.

To add one, write a function and its declaration in a module of this package, and name the module in
`_MODULES`:

    # catalog/lakelog/spark/procedures/undrop.py
    def _undrop(call: Call) -> Rows:
        restored = call.catalog.undrop_table(call.table("table"), id=call["id"], token=call.token)
        return [(quoted(restored),)]

    PROCEDURES = (
        Procedure(
            name="undrop_table",
            description="Restore a dropped table, with its history.",
            run=_undrop,
            parameters=(
                Parameter("table", "STRING", "the name that it had"),
                Parameter("id", "STRING", "which one", default="NULL"),
            ),
            columns=(Column("restored", "STRING", "the name that it has now"),),
            changes=lambda call: call.table("table")[:-1],
        ),
    )

An operation that is a command, too, is declared in `lakelog.catalog.operations`: `procedure_of(EXPIRE,
_expire)`. That is all. Spark gets it by the bridge's request `procedures`, and checks and casts the
arguments. Modules import slow parts of the catalog (anything that needs pyarrow) inside of their functions.
Errors are `LakelogError`s, as everywhere.
"""

from functools import cache
from importlib import import_module

from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)

__all__ = ["ProcedureCall", "AnswerColumn", "OperationParameter", "SystemProcedure", "Rows", "all_procedures"]

_MODULES = (
    "transactions",
    "cuts",
    "undrop",
    "maintenance",
    "fsck",
    "versions",
    "last_commit",
    "refs",
    "files",
    "statistics",
    "compaction",
    "clones",
    "backups",
    "iceberg",
    "iceberg_words",
    "upkeep",
    "erasure",
)


@cache
def all_procedures() -> dict[str, SystemProcedure]:
    """Return the procedures by their names."""
    procedures: dict[str, SystemProcedure] = {}
    for module in _MODULES:
        for procedure in import_module(f"{__name__}.{module}").PROCEDURES:
            assert procedure.name not in procedures, f"two procedures are called {procedure.name}"
            procedures[procedure.name] = procedure
    return procedures
