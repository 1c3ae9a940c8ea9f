"""Procedures: `CALL lake.system.<name>(…)`, one small module for each group.

To add one, write a function and its declaration in a module of this package, and name the module in `_MODULES`:

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

That is all: Spark learns of it by the bridge's request `procedures`, and checks and casts the arguments. Modules import
what they need of the catalog inside of their functions where it is slow to import (anything that needs pyarrow).
Errors are `LakelogError`s, as everywhere.
"""

from functools import cache
from importlib import import_module

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows

__all__ = ["Call", "Column", "Parameter", "Procedure", "Rows", "all_procedures"]

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
def all_procedures() -> dict[str, Procedure]:
    """Return the procedures by their names."""
    found: dict[str, Procedure] = {}
    for module in _MODULES:
        for procedure in import_module(f"{__name__}.{module}").PROCEDURES:
            assert procedure.name not in found, f"two procedures are called {procedure.name}"
            found[procedure.name] = procedure
    return found
