"""Requests that are asked again because their answer was lost, and find gone what they need: did they happen?

Most are found again by their commit ids before anything else is looked at. But a table or a branch that was dropped
since, or a version that has expired, cannot be loaded any more; then the log alone tells what became of the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.log.errors import CommitUnknown, NotFound
from lakelog.spark.asking import Params, token_of

if TYPE_CHECKING:
    from lakelog.catalog.logs import Token
    from lakelog.spark.catalogs import Catalogs


@contextmanager
def telling_what_happened(catalogs: Catalogs, params: Params) -> Iterator[None]:
    """Inside, a request is answered. CommitUnknown, rather than NotFound, where it has happened already.

    So nobody deletes the files of a write that happened, or takes a change for one that did not. Costs a few GETs, and
    only where something is not there.
    """
    try:
        yield
    except NotFound as gone:
        token = _token(catalogs, params)
        if token is not None and catalogs.outside.has_happened(token):
            raise CommitUnknown(
                f"commit {token.commit_id} happened, but not all that it needs is there any more: {gone}",
                commit_id=token.commit_id,
                location=catalogs.outside.warehouse,
            ) from gone
        raise


def _token(catalogs: Catalogs, params: Params) -> Token | None:
    """Return what makes a request the same when it is asked again: where it has no token, its write, as a batch of a
    stream."""
    import msgspec

    from lakelog.log import WriteRef

    if params.get("token") is not None:
        return token_of(params)
    if params.get("write") is None or "transaction" in params:
        return None
    write = msgspec.convert(params["write"], WriteRef)
    return catalogs.outside.token_of_write(params["location"], write)
