"""Decisions: the one object that says whether a transaction across logs happened.

The client that creates it first decides, for ever; it is never overwritten or deleted. Only the coordinator may write
"committed", and only once all intents stand; any client may write "aborted". All clients obey what stands there.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lakelog.log.errors import CommitUnknown, FormatError, InvalidInput, StorageError
from lakelog.log.format import (
    ABORTED,
    COMMITTED,
    FORMAT,
    Commit,
    Decision,
    Settled,
    decode_decision,
    encode,
)
from lakelog.log.grammar import check_id
from lakelog.log.options import LogOptions
from lakelog.log.settling import place
from lakelog.log.stores import ObjectStore

OpenUrl: TypeAlias = Callable[[str], tuple[ObjectStore, str]]
"""Return the store and the key of the object at a URL."""

POLL_FIRST_S = 0.02
POLL_MAX_S = 0.5
PARTICIPANTS_MAX = 28  # bounds how long the content of an object can make other clients wait


@dataclass(frozen=True, slots=True)
class DecisionPlace:
    """Where the decision of one transaction is, or will be."""

    store: ObjectStore
    key: str
    txn: str
    opened: bool = True
    """Whether it is in the folder that was opened: else it is only read."""

    def read(self) -> Decision | None:
        """Return the decision, None while there is none. One GET."""
        data = self.store.get(self.key)
        return None if data is None else self._decode(data)

    def create(self, decision: Decision, options: LogOptions) -> Decision:
        """Put `decision` unless there is one, and return what stands there.

        Raises CommitUnknown when that cannot be determined, StorageError when nothing can have happened.
        """
        if not self.opened:
            raise InvalidInput(
                f"transaction {self.txn} is decided at {self.location}, outside of the folder that was opened; open "
                "the warehouse that it belongs to"
            )
        data = encode(decision)
        found = place(
            self.store,
            self.key,
            data,
            lambda found: found == data,
            options,
            f"{decision.commit_id}'s decision",
        )
        return self._decode(data if found is None else found)

    def abort(self, commit_id: str, options: LogOptions) -> Decision:
        """Write "aborted" unless the decision exists, and return what stands there. Raises StorageError."""
        aborted = Decision(format=FORMAT, txn=self.txn, commit_id=commit_id, outcome=ABORTED)
        try:
            return self.create(aborted, options)
        except CommitUnknown as error:
            raise StorageError(
                f"could not settle transaction {self.txn} of commit {commit_id}: {error}; try again",
                location=self.location,
            ) from error

    @property
    def location(self) -> str:
        return f"{self.store.url}/{self.key}"

    def _decode(self, data: bytes) -> Decision:
        decision = decode_decision(data, self.location)
        if decision.txn != self.txn:
            raise FormatError(
                f"{self.location} holds the decision of transaction {decision.txn}: it was copied or moved; "
                "restore it from a backup"
            )
        return decision


class Decisions:
    """The decisions of a warehouse: the objects `<prefix>/_txn/<transaction id>.json` of `store`."""

    def __init__(self, store: ObjectStore, prefix: str = "") -> None:
        self.store = store
        self.prefix = prefix

    def place(self, txn: str) -> DecisionPlace:
        check_id(txn, "the id of a transaction")
        folder = f"{self.prefix}/_txn" if self.prefix else "_txn"
        return DecisionPlace(self.store, f"{folder}/{txn}.json", txn)

    def reference(self, txn: str, log_store: ObjectStore, log_folder: str) -> str:
        """Return how an intent of the log in `log_folder` names the decision: relative, so that a warehouse can be
        moved, or as a URL where the log is in another store, or not below the folder that has `_txn`."""
        key = self.place(txn).key
        if log_store is self.store or log_store.url == self.store.url:
            relative = posixpath.relpath(key, log_folder or ".")
            if set(relative.split("/")[:-2]) <= {".."}:
                return relative
        return f"{self.store.url}/{key}"


def place_of(
    commit: Commit,
    log_store: ObjectStore,
    log_folder: str,
    open_url: OpenUrl | None,
    opened: str | None,
    location: str,
) -> DecisionPlace:
    """Return where the decision of an intent in the log in `log_folder` is.

    An intent can be forged, and its decision is written by any client that has to go on: so the grammar allows a
    reference only up from the log and into `_txn/`, or to a URL, and this function only inside of `opened`. FormatError
    for another place.
    """
    intent = commit.intent
    if intent is None:
        raise FormatError(
            f"{location} is not part of a transaction; restore the log's objects from one backup"
        )
    reference = intent.decision
    if reference.rpartition("/_txn/")[2] != f"{intent.txn}.json" and reference != f"_txn/{intent.txn}.json":
        raise FormatError(
            f"{location} names the decision {reference!r}, which is not a place of transaction {intent.txn}; "
            "find out which client wrote this object"
        )
    is_relative = not (reference.startswith("/") or "://" in reference)
    if is_relative:
        key = posixpath.normpath(posixpath.join(log_folder, reference))
        scheme, separator, path = log_store.url.rpartition("://")
        # Where the store was opened below the warehouse's root, the decision is above it.
        above = posixpath.normpath(posixpath.join(path, key))
        if above.startswith("../"):
            raise FormatError(
                f"{location} names the decision {reference!r}, which is above all folders; find out which client wrote "
                "this object"
            )
        reference = f"{scheme}{separator}{above}"
    is_inside = opened is None or _is_below(reference, opened)
    log_url = f"{log_store.url.rstrip('/')}/{log_folder}".rstrip("/")
    # A log that is itself what was opened shows what its decision says, wherever its warehouse is.
    if not is_inside and not (is_relative and not _is_below(log_url, opened or "")):
        raise FormatError(
            f"{location} is part of a transaction that is decided at {reference}, outside of {opened}; open the "
            "warehouse that it belongs to, or find out which client wrote this object"
        )
    if _is_below(reference, log_store.url):
        inside = reference.removeprefix(log_store.url.rstrip("/") + "/")
        return DecisionPlace(log_store, inside, intent.txn, is_inside)
    if open_url is None:
        # With guessed settings of the store, this client could read, and write "aborted", at another place than all
        # others.
        raise InvalidInput(
            f"{location} is part of a transaction that is decided at {reference}; open this log through its "
            "catalog, which knows that place"
        )
    return DecisionPlace(*open_url(reference), intent.txn, is_inside)


def _is_below(url: str, folder: str) -> bool:
    return url.startswith(folder.rstrip("/") + "/")


def settled_by(decision: Decision, commit: Commit, location: str) -> Settled:
    """Return what `decision` makes of an intent. Raises FormatError where it is about another one."""
    strange = decision.outcome == COMMITTED and commit.version not in decision.positions.values()
    if strange or decision.commit_id != commit.commit_id:
        raise FormatError(
            f"{location} of commit {decision.commit_id} at {decision.positions} is not the decision of version "
            f"{commit.version} of commit {commit.commit_id}, which names it; restore both from one backup"
        )
    return decision.settled


def wait_or_abort(place: DecisionPlace, commit: Commit, options: LogOptions) -> Decision:
    """Return the outcome of an intent that was undecided when read: wait for its decision, then abort it.

    The patience grows with the number of participants. Clocks and chance decide only how long this takes.
    """
    participants = commit.intent.participants if commit.intent is not None else 0
    patience_s = options.patience_s + options.patience_each_s * min(participants, PARTICIPANTS_MAX)
    waited_s, pause_s = 0.0, POLL_FIRST_S
    while waited_s < patience_s:
        options.sleep_s(pause_s * (0.5 + options.random()))
        waited_s += pause_s
        pause_s = min(pause_s * 1.5, POLL_MAX_S)
        try:
            decision = place.read()
        except StorageError:
            continue  # the abort below settles it, or raises
        if decision is not None:
            return decision
    return place.abort(commit.commit_id, options)
