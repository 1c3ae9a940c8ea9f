"""Decisions: each is the object that says whether a transaction across logs happened.

The client that creates it first decides, for ever; it is never overwritten or deleted. Only the coordinator
may write "committed", and only once all intents are in place. Any client may write "aborted". All clients
obey the stored decision. Its place follows from the intent alone, which proves that it may lead there (see
`participants`). That place is never outside of the opened folder.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakelog.log.errors import CommitUnknown, FormatError, InvalidInput, PermissionDenied, StorageError
from lakelog.log.format import (
    ABORTED,
    COMMITTED,
    FORMAT,
    Commit,
    Decision,
    Intent,
    SettledIntent,
    decode_decision,
    encode,
)
from lakelog.log.grammar import RIGHTS_KEY, ROOT_RIGHTS_KEY, check_id, shortened
from lakelog.log.options import LogOptions
from lakelog.log.participants import folder_of, intents_of, is_listed, is_url
from lakelog.log.settling import place, prove_conditions
from lakelog.log.stores import ObjectStore

OpenUrl: TypeAlias = Callable[[str], tuple[ObjectStore, str]]
"""Return the store and the key of the object at a URL."""

POLL_FIRST_S = 0.02
POLL_MAX_S = 0.5
PARTICIPANTS_MAX = 28  # limits how long an object's content can make other clients wait
RIGHTS = b"Clients find out here whether they may write decisions.\n"

_proven: "weakref.WeakKeyDictionary[ObjectStore, set[str]]" = weakref.WeakKeyDictionary()
"""The folders in which this process has written decisions, or may write them, by store."""
_proving = threading.Lock()


@dataclass(frozen=True, slots=True)
class DecisionPlace:
    """The place of a transaction's decision, whether it exists or not."""

    store: ObjectStore
    key: str
    txn: str
    refusal: str = ""
    """Why nothing is written there; an existing decision is obeyed."""

    def read(self) -> Decision | None:
        """Return the decision, None if there is none. Makes a GET."""
        data = self.store.get(self.key)
        return None if data is None else self._decode(data)

    def create(self, decision: Decision, options: LogOptions) -> Decision:
        """Put `decision` unless the object exists, and return the stored decision.

        Raises CommitUnknown if that cannot be determined, StorageError if nothing can have happened.
        """
        if self.refusal:
            raise InvalidInput(self.refusal)
        data = encode(decision)
        existing_data = place(
            self.store,
            self.key,
            data,
            lambda found: found == data,
            options,
            f"{decision.commit_id}'s decision",
        )
        _prove(self.store, self.folder)
        return self._decode(data if existing_data is None else existing_data)

    def abort(self, commit_id: str, options: LogOptions) -> Decision:
        """Write "aborted" unless the decision exists, and return the stored decision. Raises StorageError."""
        abort_decision = Decision(format=FORMAT, txn=self.txn, commit_id=commit_id, outcome=ABORTED)
        try:
            return self.create(abort_decision, options)
        except CommitUnknown as error:
            raise StorageError(
                f"could not settle transaction {self.txn} of commit {commit_id}: {error}; try again",
                location=self.location,
            ) from error
        except PermissionDenied as error:
            raise PermissionDenied(
                f"transaction {self.txn} of commit {commit_id} is undecided, and these credentials may not decide it "
                f"({error.message}); write again once its writer, or a client that may write {self.folder}/, has",
                location=self.location,
            ) from error

    @property
    def location(self) -> str:
        return f"{self.store.url}/{self.key}"

    @property
    def folder(self) -> str:
        """The key of its `_txn` folder."""
        return self.key.rpartition("/")[0]

    def prove_rights(self, options: LogOptions) -> None:
        """Raise PermissionDenied unless this client may write decisions there. Makes a PUT per folder and process.

        If the folder is new, and so the PUT succeeds, it also shows whether the server holds conditions: see
        `prove_conditions`, which may make another PUT.
        """
        with _proving:
            if self.folder in _proven.get(self.store, ()):
                return
        try:
            if self.store.put_if_absent(f"{self.folder}/{RIGHTS_KEY}", RIGHTS):
                prove_conditions(self.store, f"{self.folder}/{RIGHTS_KEY}", RIGHTS, options)
        except PermissionDenied as error:
            raise PermissionDenied(
                f"nothing was changed: this transaction is decided in {self.store.url}/{self.folder}/, the deepest "
                f"folder that holds all of its logs, and these credentials may not write there ({error.message}); get "
                "that right, or change what is in different folders one after another",
                location=self.location,
            ) from error
        except StorageError:
            return  # This shows nothing about rights; the decision itself is tried more often.
        _prove(self.store, self.folder)

    def _decode(self, data: bytes) -> Decision:
        decision = decode_decision(data, self.location)
        if decision.txn != self.txn:
            raise FormatError(
                f"{self.location} holds the decision of transaction {decision.txn}: it was copied or moved; "
                "restore it from a backup"
            )
        return decision


def prove_root(store: ObjectStore, prefix: str, options: LogOptions) -> None:
    """Raise Unsupported if the server of a store cannot hold the logs of a new root: see `prove_conditions`.

    The root is the folder `prefix`. The object for this is that of `prove_rights`.
    """
    key = _joined(prefix, ROOT_RIGHTS_KEY) if prefix else ROOT_RIGHTS_KEY
    prove_conditions(store, key, RIGHTS, options)


def _prove(store: ObjectStore, folder: str) -> None:
    with _proving:
        _proven.setdefault(store, set()).add(folder)


class WarehouseDecisions:
    """The decisions of a warehouse, which is the folder `prefix` of `store`."""

    def __init__(self, store: ObjectStore, prefix: str = "") -> None:
        self.store = store
        self.prefix = prefix

    @property
    def warehouse(self) -> str:
        return f"{self.store.url}/{self.prefix}".rstrip("/") if self.prefix else self.store.url

    def check_place(self, place: str, location: str) -> None:
        """Raise InvalidInput unless `place` is that of the log at `location` in this warehouse."""
        if (place if is_url(place) else _joined(self.warehouse, place)) != location:
            raise InvalidInput(f"{shortened(place)!r} is not the place of {location} in {self.warehouse}")

    def begin(
        self, id: str, places: Sequence[str], homes: Sequence[str]
    ) -> tuple[DecisionPlace, list[Intent]]:
        """Return the place of the decision of a transaction of the logs at these places, and the intent of each log.

        `homes` are the warehouse's folders that decide the rights to the logs.
        """
        intents = intents_of(id, folder_of(homes), places, self.warehouse)
        check_id(intents[0].txn, "the id of a transaction")
        inside = intents[0].decision
        key = _joined(self.prefix, inside) if self.prefix else inside
        return DecisionPlace(self.store, key, intents[0].txn), intents


def place_of(
    commit: Commit,
    log_store: ObjectStore,
    log_folder: str,
    open_url: OpenUrl | None,
    opened: str | None,
    location: str,
) -> DecisionPlace | None:
    """Return the place of the decision of an intent in the log in `log_folder`; None if the intent is void.

    An intent can be forged, and any client that has to continue writes its decision. So an intent is void if
    it does not prove that the list has its log. Other intents lead only up from their log, and there only to
    a decision of that list. Nothing is written outside of `opened`. Raises FormatError if a log in a folder
    of `opened` would need a read outside.
    """
    intent = commit.intent
    if intent is None:
        raise FormatError(
            f"{location} is not part of a transaction; restore the log's objects from one backup"
        )
    log_url = _joined(log_store.url, log_folder)
    if not is_listed(intent):
        return None
    warehouse = _warehouse_of(intent, log_url)
    if warehouse is None:
        return _misplaced(intent, log_store, log_folder, log_url, opened, location)
    reference = _joined(warehouse or "/", intent.decision)
    refusal = ""
    if opened is not None and not _is_below(reference, opened):
        refusal = (
            f"{location} is part of a transaction that is decided at {reference}, outside of {opened}; open the "
            "warehouse that it belongs to, or find out which client wrote this object"
        )
        # If the log itself was opened, it shows what its decision says, wherever its warehouse is.
        if log_url != opened or is_url(intent.log):
            raise FormatError(refusal)
    if _is_below(reference, log_store.url):
        inside = reference.removeprefix(log_store.url.rstrip("/") + "/")
        return DecisionPlace(log_store, inside, intent.txn, refusal)
    if open_url is None:
        # With guessed settings of the store, this client could read, and write "aborted", at another place
        # than all others.
        raise InvalidInput(
            f"{location} is part of a transaction that is decided at {reference}; open this log through its "
            "catalog, which knows that place"
        )
    return DecisionPlace(*open_url(reference), intent.txn, refusal)


def _warehouse_of(intent: Intent, log_url: str) -> str | None:
    """Return the URL of the warehouse in which the log at `log_url` has the place that its intent names."""
    if is_url(intent.log):
        return intent.warehouse if intent.log == log_url else None
    if not intent.log:
        return log_url
    parent_url = log_url.removesuffix(f"/{intent.log}")
    return parent_url if parent_url != log_url else None


def _misplaced(
    intent: Intent, log_store: ObjectStore, log_folder: str, log_url: str, opened: str | None, location: str
) -> DecisionPlace | None:
    """Return None for an intent of another log of its warehouse, which is void.

    Raises FormatError if the log may be the right log under another name of the opened folder (a link, a
    mount), because its decision is elsewhere.
    """
    log_path = "" if opened is None else log_url.removeprefix(opened.rstrip("/")).lstrip("/")
    own = intent.log
    if (
        log_path
        and not is_url(own)
        and not f"/{own}".endswith(f"/{log_path}")
        and _is_below(log_url, opened or "")
    ):
        return None
    raise FormatError(
        f"{location} is part of a transaction of {shortened(own)!r}, and the log is at {log_url}: open the warehouse "
        "by the path that its writers use, or restore the log's objects from one backup"
    )


def _joined(url: str, place: str) -> str:
    return f"{url.rstrip('/')}/{place}" if place else url


def _is_below(url: str, folder: str) -> bool:
    return url.startswith(folder.rstrip("/") + "/")


def settled_by(decision: Decision, commit: Commit, location: str) -> SettledIntent:
    """Return the outcome that `decision` gives an intent. Raises FormatError if it commits another intent.

    An abort counts whatever commit it names. Its writer took the name from the intent that it met, which may
    be forged in another log of the transaction. So a client that may write one of these logs cannot make the
    others unreadable.
    """
    if not commits_another(decision, commit):
        return decision.settled
    raise FormatError(
        f"{location} of commit {decision.commit_id} in {len(decision.positions):,} logs is not the decision of "
        f"version {commit.version} of commit {commit.commit_id}, which names it; restore both from one backup"
    )


def commits_another(decision: Decision, commit: Commit) -> bool:
    """Return whether a decision commits something else than the intent that leads to it."""
    own = commit.intent.log if commit.intent is not None else ""
    return decision.outcome == COMMITTED and (
        decision.commit_id != commit.commit_id or decision.positions.get(own) != commit.version
    )


def wait_or_abort(place: DecisionPlace, commit: Commit, options: LogOptions) -> Decision:
    """Return the outcome of an intent that was undecided when read: wait for its decision, then abort it.

    The patience grows with the number of participants. Clocks and chance affect only how long this takes.
    """
    participants = commit.intent.count if commit.intent is not None else 0
    patience_s = options.patience_s + options.patience_each_s * min(participants, PARTICIPANTS_MAX)
    waited_s, pause_s = 0.0, POLL_FIRST_S
    while waited_s < patience_s:
        options.sleep_s(pause_s * (0.5 + options.random()))
        waited_s += pause_s
        pause_s = min(pause_s * 1.5, POLL_MAX_S)
        try:
            decision = place.read()
        except PermissionDenied:
            break
        except StorageError:
            continue  # the abort below settles it, or raises
        if decision is not None:
            return decision
    return place.abort(commit.commit_id, options)
