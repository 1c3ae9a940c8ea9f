"""The tables that the adapter has loaded, so that planning and writing need no request to find them again.

The adapter names one by its place, id and version, by its tag or branch where it is on one, and in a transaction by the
transaction's step too: there a table changes without a new version. What is forgotten is looked up anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakelog.spark.catalogs import Catalogs

if TYPE_CHECKING:
    from lakelog.catalog.table import Table

LIMIT = 256

PLANNED_COLUMNS = (
    "path", "size", "rows", "footer", "names", "constants", "deleted", "deletes", "first_row", "version",
)  # fmt: skip
"""What the adapter is told of the files that it is to read, as far as there is any of it."""

Params = Mapping[str, Any]


class Handles:
    """Safe to share between threads."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[Any, ...], Table] = OrderedDict()

    def facts(self, params: Params, table: Table, *, past: bool = False) -> Params:
        """Remember a table that is loaded for a request; answer its facts, by which the adapter names it."""
        from lakelog.spark.facts import of_table

        step = self._catalogs.step(params)
        self.remember(params, table, past=past, step=step)
        return {**of_table(table, past=past), "step": step}

    def remember(self, params: Params, table: Table, *, past: bool, step: int) -> None:
        on = table.ref_id
        key = (params.get("transaction"), table.location, table.id, on, table.version, past, step)
        with self._lock:
            self._tables[key] = table
            while len(self._tables) > LIMIT:
                self._tables.popitem(last=False)

    def loaded(self, params: Params) -> Table:
        """Return the version of a table that the adapter has loaded. NoSuchTable when the table is another by now."""
        from lakelog.catalog.errors import CommitConflict

        known = self._known(params, past=params["past"]) or self._known(params, past=True)
        if known is not None:
            return known
        table = self._newest(params)
        if table.is_tag:
            return table
        past = params["past"] or table.version != params["version"]
        if past:
            table = table.at(version=params["version"])
        elif params["step"] != self._catalogs.step(params):
            raise CommitConflict(
                f"{table.name} may have changed in this transaction since the statement was prepared: run it again",
                version=table.version,
            )
        self.remember(params, table, past=past, step=params["step"])
        return table

    def writable(self, params: Params) -> Table:
        """Return the table to be changed, which may be newer than the version that the adapter has loaded."""
        if params["past"]:
            return self.loaded(params)
        return self._known(params, past=False) or self._newest(params)

    def _known(self, params: Params, *, past: bool) -> Table | None:
        key = (
            params.get("transaction"), params["location"], params["id"], params.get("ref", {}).get("id"),
            params["version"], past, params["step"],
        )  # fmt: skip
        # Whether its transaction is still open is asked even where the table is known.
        self._catalogs.of(params)
        with self._lock:
            if key in self._tables:
                # A streaming query may ask about the same version for months.
                self._tables.move_to_end(key)
            return self._tables.get(key)

    def _newest(self, params: Params) -> Table:
        from lakelog.catalog.errors import NoSuchTable

        table = self._catalogs.of(params).table_at(params["location"])
        if table.id != params["id"]:
            raise NoSuchTable(
                f"the table at {params['location']} is another one by now: it was dropped and created again"
            )
        return on_ref_of(params, table)


def on_ref_of(params: Params, table: Table) -> Table:
    """Return a table on the tag or branch that a reference names. NoSuchRef where that is another one by now."""
    from lakelog.catalog.errors import NoSuchRef

    if "ref" not in params:
        return table
    name, id = params["ref"]["name"], params["ref"]["id"]
    found = table.at(ref=name)
    if found.ref_id != id:
        raise NoSuchRef(f"{name} of {table.name} is another one by now: it was dropped or replaced")
    return found
