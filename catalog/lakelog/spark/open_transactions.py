"""The transactions that Spark's sessions have open in this process, by their ids.

They live in this process only. A transaction that it does not know was lost with another process, and was not
committed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.log.errors import ConflictError, InvalidInput, StorageError

if TYPE_CHECKING:
    from lakelog.catalog import Transaction

OPEN_LIMIT = 256
ENDED_KEPT = 1024


class TransactionLost(ConflictError):
    """The process that held the transaction has ended, and the transaction is lost with it."""

    kind = "transaction-lost"


class TransactionEnded(ConflictError):
    """The transaction ended before a request that was prepared in it."""

    kind = "transaction-ended"


class NotCommitted(StorageError):
    """The store failed before the commit took effect.

    The commit did not happen, and the transaction is over.
    """


@dataclass(slots=True)
class OpenTransaction:
    """A session's transaction.

    `step` counts its changes. A table that was loaded at another step may be older.
    """

    transaction: Transaction
    step: int = 0

    @property
    def id(self) -> str:
        return self.transaction.commit_id


class OpenTransactions:
    """The open transactions.

    Safe to share between threads. It remembers the transactions that ended last. Any other unknown
    transaction was lost with its process.
    """

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
            open_transaction = OpenTransaction(transaction)
            self._open[open_transaction.id] = open_transaction
            return open_transaction

    def find(self, id: str) -> OpenTransaction | None:
        with self._lock:
            return self._open.get(id)

    def get(self, id: str) -> OpenTransaction:
        """Return an open transaction. Raises TransactionEnded or TransactionLost."""
        with self._lock:
            open_transaction, has_ended = self._open.get(id), id in self._ended
        if open_transaction is not None:
            return open_transaction
        if has_ended:
            raise TransactionEnded(
                f"the transaction {id} ended while this statement was running, which has changed nothing: run the "
                "statement again"
            )
        raise lost(id)

    def abandon(self, id: str) -> None:
        """Roll back a transaction that its session cannot end any more."""
        open_transaction = self.find(id)
        if open_transaction is not None:
            self.remove(open_transaction.id)
            if open_transaction.transaction.is_open:
                open_transaction.transaction.rollback()

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
