"""The check of a log's inbox: what is left over there, and what is no proposal. Nothing there is a part of the log."""

from collections.abc import Sequence
from itertools import islice

from lakelog.log.checks.findings import Findings
from lakelog.log.errors import FormatError
from lakelog.log.log import Log
from lakelog.log.proposals.inbox import READ_MAX, proposal_at
from lakelog.log.view import S

TODO = "leave it to vacuum: nothing reads it any more, and what it proposes is decided, or will never be"


def check_inbox(log: Log[S], findings: Findings, keys: Sequence[str], head: int) -> None:
    """Note how many objects are of no use any more, and each that is not the proposal that its key names: of the first
    few hundred, which are read in one round."""
    if not keys:
        return
    findings.count("proposals", len(keys))
    over = [key for key in keys if (until := log.keys.inbox_until(key)) is not None and until <= head]
    if over:
        what = f"{len(over):,} objects are left here from windows that are over"
        findings.note("proposals-left", log.replay.at(log.keys.inbox.removesuffix("/")), what, TODO)
    gone = set(over)
    named = list(islice((key for key in keys if key not in gone and not log.keys.is_wish(key)), READ_MAX))
    for key, data in zip(named, log.store.get_many(named), strict=True):
        where = log.replay.at(key)
        if data is None:
            continue  # it was decided meanwhile
        try:
            proposal = proposal_at(key, data, log.keys, where, tuple(log.options.features))
        except FormatError as error:
            findings.note("proposal-unreadable", where, f"no client will commit it: {error}", TODO)
            continue
        findings.count("bytes read", len(data))
        if proposal.seen > head:
            what = f"it saw version {proposal.seen}, and the log is at version {head}"
            findings.note("proposal-unreadable", where, f"no client will commit it: {what}", TODO)
