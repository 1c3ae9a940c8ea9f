"""What became of a change whose answer was lost: for whoever asks again from another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.catalog.logs.commits import Token
from lakelog.log.errors import NotFound

if TYPE_CHECKING:
    from lakelog.catalog.logs.cache import LogCache


def was_committed(logs: LogCache, token: Token) -> bool:
    """Tell whether the transaction of `token`, whose coordinator is dead, happened. Costs about 2 GETs.

    What is undecided is settled first, so that nobody decides it later. Of a transaction in one log only, which is one
    PUT, False says that this PUT has not arrived yet; a store may still be busy with it.
    """
    for location in sorted(token.bases):
        found = _has_commit(logs, location, token)
        if found is not None:
            # All of the transaction's logs have its commit or none has: one answer is enough.
            return found
    return False


def has_happened(logs: LogCache, token: Token) -> bool:
    """As `was_committed`, of any change, which may be in some only of the logs of its token. A few GETs for each."""
    return any(_has_commit(logs, location, token) for location in sorted(token.bases))


def _has_commit(logs: LogCache, location: str, token: Token) -> bool | None:
    """Tell whether the change is in a log, None where there is no such log."""
    log = logs.unread(location).log
    try:
        head = log.refresh_settled(log.load())
    except NotFound:
        return None
    return log.find(token.commit_id, token.bases[location] + 1, head.version) is not None
