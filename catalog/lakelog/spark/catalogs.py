"""Which catalog a request is about, and what its commits tell of the statement that asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelog.log.errors import InvalidInput
from lakelog.spark.open_transactions import OpenTransaction, OpenTransactions

if TYPE_CHECKING:
    # At run time `hello` imports it, once it is known that the versions fit: that takes longer than the start.
    from lakelog.catalog import Catalog, Transaction

STORE = frozenset({"endpoint", "region", "path_style", "fsync"})
SETTINGS = STORE | {"warehouse", "as-of", "statement-text"}
STATEMENT_TEXTS = ("normalized", "full", "none")

Params = Mapping[str, Any]


class Catalogs:
    """The catalog of one configuration, and the transactions in it. Safe to share between threads."""

    def __init__(self, settings: Mapping[str, str], spark: str) -> None:
        unknown = sorted(settings.keys() - SETTINGS)
        if unknown:
            raise InvalidInput(
                f"the catalog has the settings {', '.join(unknown)}, which lakelog does not know: it knows "
                f"{', '.join(sorted(SETTINGS))}; correct spark.sql.catalog.<name>.{unknown[0]}"
            )
        self._keeps = settings.get("statement-text", "normalized")
        if self._keeps not in STATEMENT_TEXTS:
            raise InvalidInput(
                f"the catalog's statement-text is {self._keeps}, but commits keep {', '.join(STATEMENT_TEXTS)} of a "
                "statement's text: correct spark.sql.catalog.<name>.statement-text"
            )
        self.open_transactions = OpenTransactions()
        self._settings = dict(settings)
        self._spark = spark
        self._lock = threading.Lock()
        self._made: Catalog | None = None

    def of(self, params: Params) -> Catalog | Transaction:
        """Return the catalog that a request is about: its session's transaction where one is open. TransactionLost."""
        transaction = params.get("transaction")
        return self.outside if transaction is None else self.open_transactions.get(transaction).transaction

    @property
    def outside(self) -> Catalog:
        """The catalog outside of all transactions."""
        with self._lock:
            if self._made is None:
                from lakelog.catalog import Catalog
                from lakelog.catalog.logs import writer_facts

                self._made = Catalog(
                    self._settings["warehouse"],
                    options={key: value for key, value in self._settings.items() if key in STORE},
                    writer=writer_facts(engine=f"spark {self._spark}", application=""),
                    as_of=self._settings.get("as-of"),
                )
            return self._made

    @contextmanager
    def telling(self, params: Params) -> Iterator[None]:
        """Inside, commits tell who asked for them, and by which statement."""
        query = params.get("query")
        if query is None:
            yield
            return
        from lakelog.catalog.state import with_statement

        opened = self.open_transactions.find(params.get("transaction", ""))
        facts = with_statement(
            {"user": query["user"], "application": query["application"]},
            query=query["query"],
            text=query["text"],
            keep=self._keeps,
        )
        with self._stepping(opened), self.outside.writing_as(facts):
            yield

    @contextmanager
    def _stepping(self, opened: OpenTransaction | None) -> Iterator[None]:
        """Tell apart what is loaded before, during and after a change."""
        if opened is None:
            yield
            return
        opened.step += 1
        try:
            yield
        finally:
            opened.step += 1

    def step(self, params: Params) -> int:
        """Return how far the request's transaction has come; 0 outside of all."""
        transaction = params.get("transaction")
        return 0 if transaction is None else self.open_transactions.get(transaction).step
