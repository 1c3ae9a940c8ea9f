"""Requests that are retried because their answer was lost, and whose table or version is gone: did they happen?

Most are found by their commit ids before anything else is read. But a table or a branch that was dropped
since, or a version that has expired, cannot be loaded any more; then the log alone shows what became of the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelog.catalog.core.ddl import Stage
from lakelog.catalog.core.logs import Token
from lakelog.log.errors import CommitUnknown, FormatError, NotFound
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests.base import Request
from lakelog.spark.requests.writes import CommitCompaction, CommitRows, CommitWrite


@contextmanager
def reporting_what_happened(at: OpenCatalog, asked: Request) -> Iterator[None]:
    """Inside, a request is answered. CommitUnknown, rather than NotFound, where it has happened already, and rather
    than FormatError, as it may have.

    So the adapter never deletes the files of a write that happened, or takes a change for one that did not. Costs a
    few GETs, and only where something is not there.
    """
    try:
        yield
    except NotFound as gone:
        token = _token(at, asked)
        if token is not None and at.outside.has_happened(token):
            raise CommitUnknown(
                f"commit {token.commit_id} happened, but what it needs is gone: {gone}",
                commit_id=token.commit_id,
                location=at.outside.warehouse,
            ) from gone
        raise
    except FormatError as unreadable:
        # What a newer client has written since hides whether it happened, and that client may do it yet.
        made: Token | Stage | None = _token(at, asked) or getattr(asked, "stage", None)
        if made is None:
            raise
        raise CommitUnknown(
            f"whether commit {made.commit_id} happened cannot be seen: {unreadable}",
            commit_id=made.commit_id,
            location=at.outside.warehouse,
        ) from unreadable


def _token(at: OpenCatalog, asked: Request) -> Token | None:
    """Return what identifies a request when it is retried: its token or, where it has none, its write, as a batch of a
    stream."""
    token: Token | None = getattr(asked, "token", None)
    if token is not None:
        return token
    if not isinstance(asked, CommitWrite | CommitRows | CommitCompaction) or asked.transaction is not None:
        return None
    return at.outside.token_of_write(asked.location, asked.write)
