"""A catalog that the adapter has opened: its settings, its transactions, and its remembered tables.

Catalogs of a process share no stores, transactions or caches.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelog.catalog import Catalog, Table, Transaction, engine
from lakelog.catalog.engine import with_statement, writer_facts
from lakelog.log import BackgroundThread, LogOptions
from lakelog.log.errors import InvalidInput
from lakelog.spark import stored_code
from lakelog.spark.going_calls import RunningCalls
from lakelog.spark.handles import OpenHandles
from lakelog.spark.open_transactions import OpenTransaction, OpenTransactions
from lakelog.spark.requests.base import LoadedTableRequest, Request, UserStatement

if TYPE_CHECKING:
    from lakelog.catalog.looking.changelog import Changelog

STORE = frozenset({"endpoint", "region", "path_style", "fsync", "gcs_endpoint", "azure_endpoint"})
SETTINGS = STORE | {
    "warehouse",
    "as-of",
    "as-of-namespace",
    "maintenance",
    "proposals",
    "statement-text",
    stored_code.SETTING,
}
MAINTENANCES = ("auto", "on-demand", "off")
MAINTENANCE_DEFAULT = "auto"
PROPOSALS = {"auto": None, "on": True, "off": False}
PROPOSALS_DEFAULT = "auto"
STATEMENT_TEXTS = ("normalized", "full", "none")

AT_ONCE = 16
CHANGES_KEPT = 8


class ServedCatalog:
    """A catalog of the adapter. Safe to share between threads."""

    def __init__(self, settings: Mapping[str, str], spark: str) -> None:
        from lakelog.catalog.looking.changelog import StreamVersions

        unknown_settings = sorted(settings.keys() - SETTINGS)
        if unknown_settings:
            raise InvalidInput(
                f"the catalog has the settings {', '.join(unknown_settings)}, which lakelog does not know: it knows "
                f"{', '.join(sorted(SETTINGS))}; correct spark.sql.catalog.<name>.{unknown_settings[0]}"
            )
        self._keeps = settings.get("statement-text", "normalized")
        if self._keeps not in STATEMENT_TEXTS:
            raise InvalidInput(
                f"the catalog's statement-text is {self._keeps}, but commits keep {', '.join(STATEMENT_TEXTS)} of a "
                "statement's text: correct spark.sql.catalog.<name>.statement-text"
            )
        self._maintenance = settings.get("maintenance", MAINTENANCE_DEFAULT)
        if self._maintenance not in MAINTENANCES:
            raise InvalidInput(
                f"the catalog's maintenance is {self._maintenance}, but it can be {', '.join(MAINTENANCES)}: correct "
                "spark.sql.catalog.<name>.maintenance"
            )
        self._proposals = settings.get("proposals", PROPOSALS_DEFAULT)
        if self._proposals not in PROPOSALS:
            raise InvalidInput(
                f"the catalog's proposals is {self._proposals}, but it can be {', '.join(PROPOSALS)}: correct "
                "spark.sql.catalog.<name>.proposals"
            )
        self.stored_code = stored_code.allowed_from(settings.get(stored_code.SETTING, stored_code.SQL))
        self.open_transactions = OpenTransactions()
        self.going_calls = RunningCalls()
        self.handles = OpenHandles(self.of, self.step, self.stored_code)
        self.changes = KnownChanges()
        self.stream_versions = StreamVersions()
        self._settings = dict(settings)
        self._spark = spark
        # A store that hangs must not hold up the snapshots of other catalogs.
        self._background = BackgroundThread()
        self.turns = threading.BoundedSemaphore(AT_ONCE)
        """At most this many requests of a catalog are answered at a time."""
        self._lock = threading.Lock()
        self._made: Catalog | None = None

    def close(self) -> None:
        """Roll back the open transactions. A request under way ends as usual."""
        self.open_transactions.abandon_all()
        self.going_calls.abandon_all()
        self._background.close()

    def of(self, transaction: str | None) -> Catalog | Transaction:
        """Return the catalog that a request is about, or its session's transaction if it has any.

        Raises TransactionLost.
        """
        return self.outside if transaction is None else self.open_transactions.get(transaction).transaction

    def loaded(self, asked: LoadedTableRequest) -> Table:
        """Return the version of the table that a request is about.

        Raises NoSuchTable if it was dropped and created again.
        """
        return self.handles.loaded(asked, asked.transaction)

    def writable(self, asked: LoadedTableRequest) -> Table:
        """Return the table that a request changes."""
        return self.handles.writable(asked, asked.transaction)

    @property
    def outside(self) -> Catalog:
        """The catalog outside of all transactions."""
        with self._lock:
            if self._made is None:
                self._made = Catalog(
                    self._settings["warehouse"],
                    options={key: value for key, value in self._settings.items() if key in STORE},
                    writer=writer_facts(engine=f"spark {self._spark}", application=""),
                    log_options=LogOptions(
                        in_background=self._background.run, proposals=PROPOSALS[self._proposals]
                    ),
                    as_of=self._settings.get("as-of"),
                    as_of_namespace=self._settings.get("as-of-namespace", ""),
                    maintenance=self._maintenance,
                )
            return self._made

    @contextmanager
    def writing_for(self, asked: Request) -> Iterator[None]:
        """Inside, commits name the user and the statement, if the request does.

        A conflict advises to run the statement again.
        """
        with engine.advising(engine.RUN_STATEMENT), self._named_in_commits(asked):
            yield

    @contextmanager
    def _named_in_commits(self, asked: Request) -> Iterator[None]:
        statement: UserStatement | None = getattr(asked, "query", None)
        transaction: str | None = getattr(asked, "transaction", None)
        if statement is None:
            yield
            return
        open_transaction = None if transaction is None else self.open_transactions.find(transaction)
        facts = with_statement(
            {"user": statement.user, "application": statement.application},
            query=statement.query,
            text=statement.text,
            keep=self._keeps,
        )
        with self._stepping(open_transaction), engine.writing_as(facts):
            yield

    @contextmanager
    def _stepping(self, opened: OpenTransaction | None) -> Iterator[None]:
        """Number the steps. Tables that are loaded before, during and after a change get different steps."""
        if opened is None:
            yield
            return
        opened.step += 1
        try:
            yield
        finally:
            opened.step += 1

    def step(self, transaction: str | None) -> int:
        """Return the step of the request's transaction. 0 if there is none."""
        return 0 if transaction is None else self.open_transactions.get(transaction).step


class KnownChanges:
    """The changes that were requested last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Any, ...], Changelog] = OrderedDict()

    def get(self, key: tuple[Any, ...], make: Callable[[], Changelog]) -> Changelog:
        """Return the changes of that key. Two threads that make them at once make the same."""
        with self._lock:
            changelog = self._known.get(key)
        new_changelog = make() if changelog is None else changelog
        with self._lock:
            self._known[key] = new_changelog
            self._known.move_to_end(key)
            while len(self._known) > CHANGES_KEPT:
                self._known.popitem(last=False)
        return new_changelog
