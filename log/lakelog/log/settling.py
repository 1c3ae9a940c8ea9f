"""Creating an object for good, and finding out what happened if the response is lost, late or an echo.

A failed put-if-absent proves nothing. It may have been applied, and may still be. Only reading the key shows
whose object it has, and only an object settles the question, never its absence.

All of that assumes that the server refuses a taken key. `prove_conditions` finds out.
"""

import weakref
from collections.abc import Callable

from lakelog.log.errors import CommitUnknown, StorageError, Unsupported
from lakelog.log.options import LogOptions
from lakelog.log.stores import ObjectStore, unknown_server

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 2.0

_proven_stores: "weakref.WeakSet[ObjectStore]" = weakref.WeakSet()
"""The stores whose server has refused a taken key in this process."""


def place(
    store: ObjectStore,
    key: str,
    data: bytes,
    is_mine: Callable[[bytes], bool],
    options: LogOptions,
    commit_id: str,
) -> bytes | None:
    """Create `key` with `data`. Returns None if the object is ours, the other object's bytes if the key was taken.

    Raises CommitUnknown if that cannot be determined, StorageError if nothing can have happened. Costs a PUT,
    and a GET more if the key is taken.
    """
    uncertain: StorageError | None = None
    for attempt in range(options.put_tries):
        if attempt:
            options.sleep_s(_delay_s(attempt - 1, options))
        try:
            if store.put_if_absent(key, data):
                return None
        except StorageError as error:
            if error.without_effect and uncertain is None:
                raise
            uncertain = error
        else:
            # The key is taken, but an earlier try of ours, or a resent try of the client library, may have
            # done it.
            uncertain = uncertain or StorageError("the key is taken", location=f"{store.url}/{key}")
        try:
            existing_data = store.get(key)
        except StorageError as error:
            uncertain = error
            continue
        if existing_data is not None:
            return None if is_mine(existing_data) else existing_data
        # An absent object proves nothing, as an earlier try may land any moment. Only the same put again is
        # safe.
    raise CommitUnknown(
        f"it is unknown whether commit {commit_id} happened: after {options.put_tries} tries the last answer was: "
        f"{uncertain}; retry with the same commit id, or look it up in the log once the store answers",
        commit_id=commit_id,
        location=f"{store.url}/{key}",
    )


def create(store: ObjectStore, key: str, data: bytes, options: LogOptions) -> bool:
    """Create an object that is no commit, and return whether it has `data` now, by this call or another.

    False if the object has other bytes. Raises StorageError, even if that cannot be determined; the caller
    may repeat the call. Costs the same as `place`.
    """
    try:
        existing_data = place(store, key, data, lambda found: found == data, options, key)
    except CommitUnknown as error:
        raise StorageError(
            f"it is unknown whether the object was written, after {options.put_tries} tries: run the same again",
            location=f"{store.url}/{key}",
        ) from error
    return existing_data is None


def prove_conditions(store: ObjectStore, key: str, data: bytes, options: LogOptions) -> None:
    """Raise Unsupported if the store's server lets a put-if-absent replace an object, as some servers do.

    All callers put the same `data` at `key`, so a replaced object is no loss. No caller deletes it. A refusal
    proves that the server holds the condition, even if it is the echo of this call. Costs 2 PUTs if the key is
    absent and a PUT if it exists, but nothing if the server is the cloud's own, or was proven in this process.
    Raises StorageError if no answer proves anything.
    """
    server = unknown_server(store)
    if not server or store in _proven_stores:
        return
    is_there, tries = False, 0
    while True:
        try:
            if not store.put_if_absent(key, data):
                break
        except StorageError as error:
            tries += 1
            if error.without_effect or tries == options.put_tries:
                raise
            options.sleep_s(_delay_s(tries - 1, options))
            continue
        if is_there:
            raise Unsupported(
                f"{store.url} cannot hold a log: the server at {server} ignores the condition of a put "
                "(If-None-Match), so two writers could replace each other's commits. Nothing was committed. Use "
                f"another server, or a newer release of it, and try it by: lakelog doctor {store.url}"
            )
        is_there = True
    _proven_stores.add(store)


def put_patiently(store: ObjectStore, key: str, data: bytes, options: LogOptions) -> None:
    """Put an object that may be put any number of times, and retry failures. Raises StorageError."""
    for attempt in range(options.put_tries - 1):
        try:
            return store.put(key, data)
        except StorageError as error:
            if error.without_effect:
                raise
            options.sleep_s(_delay_s(attempt, options))
    store.put(key, data)


def _delay_s(tried: int, options: LogOptions) -> float:
    return min(RETRY_MAX_S, RETRY_FIRST_S * float(2**tried)) * (0.5 + options.random())
