"""The tables that the adapter has loaded, so that planning and writing need no request to find them again.

The adapter names a table by its place, id and version, by its tag or branch if it is on any, and by the name
that it was loaded by. In a transaction it also gives the transaction's step, because a table changes there
without a new version. A forgotten table is loaded again from its place, and is changed only while it has that
name.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from lakelog.catalog.engine import BRANCH, FoundName
from lakelog.catalog.errors import CommitConflict, NoSuchNamespace, NoSuchRef, NoSuchTable
from lakelog.catalog.names import Identifier
from lakelog.spark.facts import found_by, of_table
from lakelog.spark.requests.base import LoadedRef, LoadedTable
from lakelog.spark.requests.tables import TableFacts
from lakelog.spark.stored_code import ALL, computed_by_writes

if TYPE_CHECKING:
    from lakelog.catalog import Table
    from lakelog.catalog.engine import CatalogNames

LIMIT = 256

_NAME = re.compile(r"(?P<kind>branch|tag)_(?P<name>.+)", re.DOTALL)


class OpenHandles:
    """Safe to share between threads."""

    def __init__(
        self,
        of: Callable[[str | None], CatalogNames],
        step: Callable[[str | None], int],
        stored_code: str = ALL,
    ) -> None:
        """Take functions of the open catalog.

        `of` returns the catalog of a transaction, or outside of all transactions. `step` returns the
        transaction's step. `stored_code` is the code that may run (see `stored_code`).
        """
        self._of, self._step, self._stored_code = of, step, stored_code
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[Any, ...], Table] = OrderedDict()

    def facts(self, table: Table, transaction: str | None, *, past: bool = False) -> TableFacts:
        """Remember a table that is loaded for a request, and return its facts, by which the adapter names it."""
        step = self._step(transaction)
        self.remember(table, transaction, past=past, step=step)
        facts = of_table(table, past=past, step=step)
        return msgspec.structs.replace(
            facts, computes=computed_by_writes(table, self._stored_code) is not None
        )

    def remember(self, table: Table, transaction: str | None, *, past: bool, step: int) -> None:
        ref_id = table.table_head.ref_id
        key = (transaction, table.location, table.id, ref_id, found_by(table), table.version, past, step)
        with self._lock:
            self._tables[key] = table
            while len(self._tables) > LIMIT:
                self._tables.popitem(last=False)

    def loaded(self, named: LoadedTable, transaction: str | None) -> Table:
        """Return the version of a table that the adapter has loaded.

        Raises NoSuchTable if it was dropped and created again.
        """
        known_table = self._known(named, transaction, past=named.past) or self._known(
            named, transaction, past=True
        )
        if known_table is not None:
            return known_table
        table = self._newest(named, transaction)
        if table.is_tag:
            return table
        past = named.past or table.version != named.version
        if past:
            table = table.at(version=named.version)
        elif named.step != self._step(transaction):
            raise CommitConflict(
                f"{table.name} may have changed in this transaction since the statement was prepared: run it again",
                version=table.version,
            )
        self.remember(table, transaction, past=past, step=named.step)
        return table

    def writable(self, named: LoadedTable, transaction: str | None) -> Table:
        """Return the table to be changed, which may be newer than the version that the adapter has loaded."""
        if named.past:
            return self.loaded(named, transaction)
        return self._known(named, transaction, past=False) or self._newest(named, transaction)

    def _known(self, named: LoadedTable, transaction: str | None, *, past: bool) -> Table | None:
        ref = None if named.ref is None else named.ref.id
        key = (
            transaction, named.location, named.id, ref, named.found_by, named.version, past, named.step,
        )  # fmt: skip
        # The transaction has to be open even if the table is known.
        self._of(transaction)
        with self._lock:
            if key in self._tables:
                # A streaming query may ask about the same version for months.
                self._tables.move_to_end(key)
            return self._tables.get(key)

    def _newest(self, named: LoadedTable, transaction: str | None) -> Table:
        table = self._of(transaction).table_at(named.location)
        if table.id != named.id:
            raise NoSuchTable(
                f"the table at {named.location} was dropped and re-created since it was loaded: run the statement again"
            )
        found_by = named.found_by
        if found_by is not None:
            table = type(table)(table.table_head.known_by(FoundName(found_by.identifier, found_by.namespace)))
        return on_ref(table, named.ref)


def on_ref(table: Table, ref: LoadedRef | None) -> Table:
    """Return a table on the tag or branch that a reference names.

    Raises NoSuchRef if that ref was replaced.
    """
    if ref is None:
        return table
    ref_table = table.at(ref=ref.name)
    if ref_table.table_head.ref_id != ref.id:
        raise NoSuchRef(
            f"{ref.name} of {table.name} was dropped or replaced since it was loaded: run the statement again"
        )
    return ref_table


def on_named(table: Table, name: str, kind: str | None) -> Table:
    """Return a table on the tag or branch `name`, which has to be of the `kind`, if given.

    Raises NoSuchRef.
    """
    ref_table = table.at(ref=name)
    own_kind = BRANCH if ref_table.table_head.ref_id is None else ref_table.refs[ref_table.ref].kind
    if kind is not None and kind != own_kind:
        raise NoSuchRef(f"{name} of {table.name} is a {own_kind}: write {own_kind}_{name}")
    return ref_table


def load_named(catalog: CatalogNames, path: Identifier) -> Table:
    """Return the table of that name or, if there is none, the table on the tag or branch that the last part
    names.

    Names are as in SQL (see `RefTables.scala`). Raises NoSuchTable or NoSuchNamespace.
    """
    try:
        return catalog.load_table(path)
    except (NoSuchTable, NoSuchNamespace):
        match = _NAME.fullmatch(path[-1])
        if match is None or len(path) == 1:
            raise
        try:
            return on_named(catalog.load_table(path[:-1]), match["name"], match["kind"])
        except (NoSuchTable, NoSuchNamespace, NoSuchRef):
            pass
        raise
