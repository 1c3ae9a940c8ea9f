"""Creating one object for good, and finding out what happened when the answer is lost, late or an echo.

A put-if-absent that failed proves nothing: it may have been applied, and may still be. Only reading the key shows
whose object stands there, and only an object settles the question, never its absence.
"""

from collections.abc import Callable

from lakelog.log.errors import CommitUnknown, StorageError
from lakelog.log.options import LogOptions
from lakelog.log.stores import ObjectStore

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 2.0


def place(
    store: ObjectStore,
    key: str,
    data: bytes,
    is_mine: Callable[[bytes], bool],
    options: LogOptions,
    commit_id: str,
) -> bytes | None:
    """Create `key` with `data`. Returns None when it is ours, the other's bytes when the key was taken before.

    Raises CommitUnknown when that cannot be determined, StorageError when nothing can have happened. Costs
    one PUT; one GET more when the key is taken.
    """
    uncertain: StorageError | None = None
    for tried in range(options.put_tries):
        if tried:
            options.sleep_s(_delay_s(tried - 1, options))
        try:
            if store.put_if_absent(key, data):
                return None
        except StorageError as error:
            if error.without_effect and uncertain is None:
                raise
            uncertain = error
        else:
            # Taken, but an earlier try of ours, or one that the client library resent, may have done it.
            uncertain = uncertain or StorageError("the key is taken", location=f"{store.url}/{key}")
        try:
            found = store.get(key)
        except StorageError as error:
            uncertain = error
            continue
        if found is not None:
            return None if is_mine(found) else found
        # Absent proves nothing: an earlier try may land any moment. The same put again is the only safe step.
    raise CommitUnknown(
        f"it is unknown whether commit {commit_id} happened: after {options.put_tries} tries the last answer was: "
        f"{uncertain}; retry with the same commit id, or look it up in the log once the store answers",
        commit_id=commit_id,
        location=f"{store.url}/{key}",
    )


def create(store: ObjectStore, key: str, data: bytes, options: LogOptions) -> bool:
    """Create an object that is no commit, and return whether `data` stands there now, by this call or another one.

    False for an object with other bytes. Raises StorageError, also where that cannot be determined: the same call may
    be repeated. Costs as `place`.
    """
    try:
        taken = place(store, key, data, lambda found: found == data, options, key)
    except CommitUnknown as error:
        raise StorageError(
            f"it is unknown whether the object was written, after {options.put_tries} tries: run the same again",
            location=f"{store.url}/{key}",
        ) from error
    return taken is None


def put_patiently(store: ObjectStore, key: str, data: bytes, options: LogOptions) -> None:
    """Put an object that may be put any number of times, again where that failed. Raises StorageError."""
    for tried in range(options.put_tries - 1):
        try:
            return store.put(key, data)
        except StorageError as error:
            if error.without_effect:
                raise
            options.sleep_s(_delay_s(tried, options))
    store.put(key, data)


def _delay_s(tried: int, options: LogOptions) -> float:
    return min(RETRY_MAX_S, RETRY_FIRST_S * float(2**tried)) * (0.5 + options.random())
