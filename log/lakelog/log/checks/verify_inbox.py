"""The check of a log's inbox: leftovers, and objects that are not proposals. Nothing there is a part of the log."""

from collections.abc import Sequence
from itertools import islice

from lakelog.log.checks.findings import Findings
from lakelog.log.errors import FormatError
from lakelog.log.log import Log
from lakelog.log.proposals.inbox import READ_MAX, proposal_at
from lakelog.log.view import S

TODO = "leave it to vacuum: nothing reads it any more, and what it proposes is decided, or will never be"


def check_inbox(log: Log[S], findings: Findings, keys: Sequence[str], head: int) -> None:
    """Note the number of useless objects, and each object that is not the proposal that its key names.

    Only the first few hundred objects are read, in a single round.
    """
    if not keys:
        return
    findings.count("proposals", len(keys))
    expired_keys = [key for key in keys if (until := log.keys.inbox_until(key)) is not None and until <= head]
    if expired_keys:
        message = f"{len(expired_keys):,} objects are left here from windows that are over"
        findings.note("proposals-left", log.replay.at(log.keys.inbox.removesuffix("/")), message, TODO)
    expired_set = set(expired_keys)
    proposal_keys = list(
        islice((key for key in keys if key not in expired_set and not log.keys.is_wish(key)), READ_MAX)
    )
    for key, data in zip(proposal_keys, log.store.get_many(proposal_keys), strict=True):
        where = log.replay.at(key)
        if data is None:
            continue  # it was decided since
        try:
            proposal = proposal_at(key, data, log.keys, where, log.replay.features)
        except FormatError as error:
            findings.note("proposal-unreadable", where, f"no client will commit it: {error}", TODO)
            continue
        findings.count("bytes read", len(data))
        if proposal.seen > head:
            message = f"it saw version {proposal.seen}, and the log is at version {head}"
            findings.note("proposal-unreadable", where, f"no client will commit it: {message}", TODO)
