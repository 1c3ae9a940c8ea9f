"""The transactions that Spark's sessions have open in this process, by their ids.

They live in this process only: one that it does not know was lost with another process, and was not committed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.log.errors import ConflictError, InvalidInput, StorageError

if TYPE_CHECKING:
    from lakelog.catalog.transaction import Transaction

OPEN_LIMIT = 256
ENDED_KEPT = 1024


class TransactionLost(ConflictError):
    """The process that held the transaction is gone, and the transaction with it."""

    kind = "transaction-lost"


class TransactionEnded(ConflictError):
    """The transaction has ended before a request that was prepared in it."""

    kind = "transaction-ended"


class NotCommitted(StorageError):
    """The store failed before the commit took effect: it did not happen, and the transaction is over."""


@dataclass(slots=True)
class OpenTransaction:
    """A session's transaction. `step` counts its changes: a table that was loaded at another step may be older."""

    transaction: Transaction
    step: int = 0

    @property
    def id(self) -> str:
        return self.transaction.commit_id


class OpenTransactions:
    """Safe to share between threads. It remembers those that ended last, as others were lost with their process."""

    def __init__(self) -> None:
        self._open: dict[str, OpenTransaction] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, transaction: Transaction) -> OpenTransaction:
        with self._lock:
            if len(self._open) >= OPEN_LIMIT:
                raise InvalidInput(
                    f"{OPEN_LIMIT} transactions are open already in the sessions of this Spark application: commit or "
                    "roll back some of them first"
                )
            opened = OpenTransaction(transaction)
            self._open[opened.id] = opened
            return opened

    def find(self, id: str) -> OpenTransaction | None:
        with self._lock:
            return self._open.get(id)

    def get(self, id: str) -> OpenTransaction:
        """Return an open transaction. TransactionEnded, TransactionLost."""
        with self._lock:
            opened, has_ended = self._open.get(id), id in self._ended
        if opened is not None:
            return opened
        if has_ended:
            raise TransactionEnded(
                f"the transaction {id} ended while this statement was running, which has changed nothing: run the "
                "statement again"
            )
        raise lost(id)

    def abandon(self, id: str) -> None:
        """Roll a transaction back that its session cannot end any more."""
        opened = self.find(id)
        if opened is not None:
            self.remove(opened.id)
            if opened.transaction.is_open:
                opened.transaction.rollback()

    def abandon_all(self) -> None:
        with self._lock:
            open_ones = list(self._open)
        for id in open_ones:
            self.abandon(id)

    def remove(self, id: str) -> None:
        with self._lock:
            if self._open.pop(id, None) is not None:
                self._ended[id] = None
                while len(self._ended) > ENDED_KEPT:
                    self._ended.popitem(last=False)


def lost(id: str) -> TransactionLost:
    return TransactionLost(
        f"the transaction {id} is lost: the Python side of lakelog ended while it was open. Nothing of it was "
        "committed: roll it back with CALL <catalog>.system.rollback_transaction(), and begin another one"
    )
