"""Versions of several tables that were the newest ones at the same moment, for statements that read several tables.

Tables are loaded one after the other, and other clients commit in between: a row that moved from one table to another
would be read in both or in neither. So all logs are polled at once, until none has moved since the poll before: then
the versions found were the newest of all of them at the moment between the two polls.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.core.logs import seen_on
from lakelog.catalog.core.state import MAIN
from lakelog.catalog.errors import CommitConflict, NoSuchTable
from lakelog.catalog.table import Table

ROUNDS = 100


def read_together(tables: Sequence[Table]) -> list[Table]:
    """Return each of `tables`, loaded before and not of the past, at a moment not before the last of them was loaded.

    Costs nothing for one table; for more, one GET each in one round, and another round for each time that one of them
    has moved. NoSuchTable; CommitConflict where the columns or properties of one changed meanwhile, or where they
    change faster than they can be read; NoSuchRef where the branch of one was dropped.
    """
    found = list(tables)
    if len({(table.location, table.id) for table in tables}) <= 1 and len(set(map(_version, tables))) <= 1:
        return found
    for _ in range(ROUNDS):
        tables[0].head.logs.refresh(
            list({table.location: table.head.whole.tracked for table in tables}.values())
        )
        newer = [_newest(table) for table in found]
        if list(map(_version, newer)) == list(map(_version, found)):
            return newer
        found = newer
    names = ", ".join(table.name for table in tables)
    raise CommitConflict(
        f"{names} changed {ROUNDS} times while they were read together: run the statement again, and in a transaction "
        "if that does not help"
    )


def _version(table: Table) -> int:
    return table.version


def _newest(table: Table) -> Table:
    whole = table.head.whole.tracked.known
    assert whole is not None
    if whole.sealed or whole.log_id != table.id:
        raise NoSuchTable(f"the table {table.name} was dropped while the statement was prepared")
    view = whole if table.ref == MAIN else seen_on(whole, table.ref, table.refs[table.ref].id)
    if view.version <= table.version:
        return table
    if view.state.current.generation != table.metadata.generation:
        raise CommitConflict(
            f"the columns or properties of {table.name} changed in version {view.version} or before, while the "
            "statement was prepared: run it again",
            version=view.version,
        )
    return Table(table.head.at(view))
