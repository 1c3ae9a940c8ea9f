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
        from lakelog.catalog.outcome import has_happened

        token = token_of(params) if "token" in params else None
        if token is not None and has_happened(catalogs.outside._logs, token):
            raise CommitUnknown(
                f"commit {token.commit_id} happened, but not all that it needs is there any more: {gone}",
                commit_id=token.commit_id,
                location=catalogs.outside.warehouse,
            ) from gone
        raise
