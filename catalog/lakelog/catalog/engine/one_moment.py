"""Versions of several tables that were the newest at the same moment, for statements that read several
tables.

Tables are loaded in turn, and other clients commit in between. So a statement could read a row that moved
between two tables in both or in neither. Therefore all logs are polled at once, until none has moved since
the poll before. The versions found were then the newest of all tables at the moment between the two polls.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.core.logs import seen_on
from lakelog.catalog.core.state import MAIN
from lakelog.catalog.errors import CommitConflict, NoSuchTable
from lakelog.catalog.table import Table

ROUNDS = 100


def read_together(tables: Sequence[Table]) -> list[Table]:
    """Return all `tables` as of the same moment, which is not before the last of them was loaded.

    The tables were loaded before, and are not of the past. A single table needs no request. Several tables
    need a round with a GET for each, and another round each time that a table has moved. Raises NoSuchTable.
    Raises CommitConflict if a table's columns or properties changed, or if the tables change faster than they
    can be read. Raises NoSuchRef if a table's branch was dropped.
    """
    present_tables = list(tables)
    if len({(table.location, table.id) for table in tables}) <= 1 and len(set(map(_version, tables))) <= 1:
        return present_tables
    for _ in range(ROUNDS):
        tables[0].table_head.logs.refresh(
            list({table.location: table.table_head.whole.tracked for table in tables}.values())
        )
        newer = [_newest(table) for table in present_tables]
        if list(map(_version, newer)) == list(map(_version, present_tables)):
            return newer
        present_tables = newer
    names = ", ".join(table.name for table in tables)
    raise CommitConflict(
        f"{names} changed {ROUNDS} times while they were read together: run the statement again, and in a transaction "
        "if that does not help"
    )


def _version(table: Table) -> int:
    return table.version


def _newest(table: Table) -> Table:
    whole = table.table_head.whole.tracked.known
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
    return Table(table.table_head.at(view))
