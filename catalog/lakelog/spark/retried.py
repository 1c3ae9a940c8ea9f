"""Retried requests whose answer was lost and whose table or version no longer exists: did they happen? Most
are found by their commit ids before anything else is read.

But a dropped table or branch, or an expired version, cannot be loaded any more. Then only the log shows the
outcome of the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelog.catalog import Token, engine
from lakelog.catalog.engine import StagedTable
from lakelog.log.errors import CommitUnknown, FormatError, NotFound
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests.base import Request
from lakelog.spark.requests.writes import CommitCompaction, CommitRows, CommitWrite


@contextmanager
def reporting_what_happened(at: ServedCatalog, asked: Request) -> Iterator[None]:
    """Inside, a request is answered.

    Raises CommitUnknown in place of NotFound if the request happened. Raises it in place of FormatError too,
    because the request may have happened. So the adapter never deletes the files of a write that happened, or
    takes a change for a failed change. Makes a few GETs, and only if something does not exist.
    """
    try:
        yield
    except NotFound as missing_error:
        token = _token(at, asked)
        if token is not None and engine.has_happened(at.outside, token):
            raise CommitUnknown(
                f"commit {token.commit_id} happened, but what it needs is gone: {missing_error}",
                commit_id=token.commit_id,
                location=at.outside.warehouse,
            ) from missing_error
        raise
    except FormatError as format_error:
        # A newer client's writes hide whether it happened, and that client may still do it.
        token_or_stage: Token | StagedTable | None = _token(at, asked) or getattr(asked, "stage", None)
        if token_or_stage is None:
            raise
        raise CommitUnknown(
            f"whether commit {token_or_stage.commit_id} happened cannot be seen: {format_error}",
            commit_id=token_or_stage.commit_id,
            location=at.outside.warehouse,
        ) from format_error


def _token(at: ServedCatalog, asked: Request) -> Token | None:
    """Return the token that identifies retries of a request.

    Without a token, as in a batch of a stream, it is the token of its write.
    """
    token: Token | None = getattr(asked, "token", None)
    if token is not None:
        return token
    if not isinstance(asked, CommitWrite | CommitRows | CommitCompaction) or asked.transaction is not None:
        return None
    return engine.token_of_write(at.outside, asked.location, asked.write)
