"""A store that is set back to an earlier time below those who know more of it: clients, and streams with checkpoints.

No request of the protocol sets a store back, so it is no step: a scenario begins in a store that was set back, with
actors that know what was there before. What they have read is in no key.
"""

from __future__ import annotations

from typing import Any

from tests.model.machine import Program, Report
from tests.model.reading import cold
from tests.model.rules import Rule, on
from tests.model.world import Request, View, log_key
from tests.model.writing import begin_and_commit, commit


def client(me: str, knows: View, request: Request) -> Program:
    """A writer that had a view before the store was set back."""
    if on(Rule.SET_BACK_ENDS_CLIENTS):
        yield from begin_and_commit(me, request)
    else:
        yield from commit(me, knows, request)


def stream(place: str, read: int, hash: Any) -> Program:
    """A stream whose checkpoint says that it has read a version, which had that hash: it goes on, or stops."""
    view = yield from cold(place)
    if view is None or view.version < read:
        return
    found = yield ("get", log_key(place, read))
    if on(Rule.POSITION_HAS_HASH) and found.attempt != hash:
        return
    yield Report("streamed", (place, read, hash))


def sink(me: str, request: Request, written: int, hash: Any) -> Program:
    """A stream that writes: its checkpoint says that its last batch is in a version, which had that hash. It looks
    once, when it begins, and writes the next batch, or stops."""
    view = yield from cold(request.place)
    if view is None:
        return
    if on(Rule.BATCH_HAS_HASH):
        if view.version < written:
            return
        found = yield ("get", log_key(request.place, written))
        if found.attempt != hash:
            return
    yield from begin_and_commit(me, request)
    yield Report("sunk", (request.place, written, hash))
