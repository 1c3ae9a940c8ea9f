"""Procedures: `CALL lake.system.<name>(…)`, one small module for each group.

To add one, write a function and its declaration in a module of this package, and name the module in `_MODULES`:

    # catalog/lakelog/spark/procedures/maintenance.py
    def _expire(call: Call) -> Rows:
        report = call.catalog.expire(call.table("table"), dry_run=call["dry_run"], token=call.token)
        return [(report.versions, report.bytes)]

    PROCEDURES = (
        Procedure(
            name="expire",
            description="Remove the versions of a table that are older than a time.",
            run=_expire,
            parameters=(
                Parameter("table", "STRING", "the table's name"),
                Parameter("dry_run", "BOOLEAN", "only count", default="true"),
            ),
            columns=(Column("versions", "BIGINT"), Column("bytes", "BIGINT")),
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

_MODULES = ("transactions",)


@cache
def all_procedures() -> dict[str, Procedure]:
    """Return the procedures by their names."""
    found: dict[str, Procedure] = {}
    for module in _MODULES:
        for procedure in import_module(f"{__name__}.{module}").PROCEDURES:
            assert procedure.name not in found, f"two procedures are called {procedure.name}"
            found[procedure.name] = procedure
    return found
