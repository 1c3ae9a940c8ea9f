"""The tables that the adapter has loaded, so that planning and writing need no request to find them again.

The adapter names one by its place, id and version, by its tag or branch where it is on one, by the name that it was
loaded by, and in a transaction by the transaction's step too: there a table changes without a new version. One that was
forgotten is loaded again from its place, and is changed only while it has that name.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from lakelog.catalog.core.logs import FoundBy
from lakelog.catalog.core.state import BRANCH
from lakelog.catalog.errors import CommitConflict, NoSuchNamespace, NoSuchRef, NoSuchTable
from lakelog.catalog.names import Identifier
from lakelog.spark.facts import found_by, of_table
from lakelog.spark.requests.base import LoadedTable, Ref
from lakelog.spark.requests.tables import TableFacts
from lakelog.spark.stored_code import ALL, computed_by_writes

if TYPE_CHECKING:
    from lakelog.catalog import CatalogNames
    from lakelog.catalog.table import Table

LIMIT = 256

_NAME = re.compile(r"(?P<kind>branch|tag)_(?P<name>.+)", re.DOTALL)


class Handles:
    """Safe to share between threads."""

    def __init__(
        self,
        of: Callable[[str | None], CatalogNames],
        step: Callable[[str | None], int],
        stored_code: str = ALL,
    ) -> None:
        """`of` returns the catalog of a transaction, or outside of all; `step` how far the transaction has come;
        `stored_code` is what may run (see there)."""
        self._of, self._step, self._stored_code = of, step, stored_code
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[Any, ...], Table] = OrderedDict()

    def facts(self, table: Table, transaction: str | None, *, past: bool = False) -> TableFacts:
        """Remember a table that is loaded for a request; return its facts, by which the adapter names it."""
        step = self._step(transaction)
        self.remember(table, transaction, past=past, step=step)
        facts = of_table(table, past=past, step=step)
        return msgspec.structs.replace(
            facts, computes=computed_by_writes(table, self._stored_code) is not None
        )

    def remember(self, table: Table, transaction: str | None, *, past: bool, step: int) -> None:
        on = table.ref_id
        key = (transaction, table.location, table.id, on, found_by(table), table.version, past, step)
        with self._lock:
            self._tables[key] = table
            while len(self._tables) > LIMIT:
                self._tables.popitem(last=False)

    def loaded(self, named: LoadedTable, transaction: str | None) -> Table:
        """Return the version of a table that the adapter has loaded. NoSuchTable when it was dropped and
        re-created since."""
        known = self._known(named, transaction, past=named.past) or self._known(named, transaction, past=True)
        if known is not None:
            return known
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
        # Whether its transaction is still open is asked even where the table is known.
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
        by = named.found_by
        if by is not None:
            table = type(table)(table.head.known_by(FoundBy(by.identifier, by.namespace)))
        return on_ref(table, named.ref)


def on_ref(table: Table, ref: Ref | None) -> Table:
    """Return a table on the tag or branch that a reference names. NoSuchRef where that was replaced since."""
    if ref is None:
        return table
    found = table.at(ref=ref.name)
    if found.ref_id != ref.id:
        raise NoSuchRef(
            f"{ref.name} of {table.name} was dropped or replaced since it was loaded: run the statement again"
        )
    return found


def on_named(table: Table, name: str, kind: str | None) -> Table:
    """Return a table on the tag or branch `name`, which has to be of the `kind`, if one is given. NoSuchRef."""
    found = table.at(ref=name)
    own = BRANCH if found.ref_id is None else found.refs[found.ref].kind
    if kind is not None and kind != own:
        raise NoSuchRef(f"{name} of {table.name} is a {own}: write {own}_{name}")
    return found


def load_named(catalog: CatalogNames, path: Identifier) -> Table:
    """Return the table of that name or, where there is none, the one on a tag or branch that the last part names.

    Names are as in SQL, see `RefTables.scala`. NoSuchTable, NoSuchNamespace.
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
