"""The proposals of one log: putting, listing and reading them. What becomes of them is not decided here.

Nothing depends on what a listing shows, or on an object's being there: what is missing costs its author time. Any
client may have put anything there, so what cannot be decoded, or is not of its key, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from lakelog.log.errors import FormatError
from lakelog.log.format import (
    FORMAT,
    PROPOSAL_SIZE_MAX,
    PROPOSED_MAX,
    WINDOW,
    Proposal,
    ProposedChange,
    decode_proposal,
    encode,
)
from lakelog.log.keys import Keys
from lakelog.log.replay import Replay
from lakelog.log.settling import put_patiently
from lakelog.log.stores import ObjectStore

LISTED_MAX = 4096
"""Keys that are looked at in one folder: more than clients put there in a window, and what a flood of them costs."""
READ_MAX = 512
"""Proposals that are read at a time."""
OLDER_FOLDER_VERSIONS = 16
"""How long the folder before is looked at too, after a new one has begun."""


def proposals_of(
    log_id: str, seen: int, features: Sequence[str], changes: Sequence[ProposedChange]
) -> Iterator[tuple[bytes | None, Sequence[ProposedChange]]]:
    """Yield the bytes of as many proposals as these changes need; None for a change that is too big for one."""
    pending = [changes[at : at + PROPOSED_MAX] for at in range(0, len(changes), PROPOSED_MAX)]
    while pending:
        part = pending.pop(0)
        data = encode(
            Proposal(
                format=FORMAT,
                log_id=log_id,
                seen=seen,
                until=seen + WINDOW,
                features=tuple(features),
                changes=tuple(part),
            )
        )
        if len(data) <= PROPOSAL_SIZE_MAX:
            yield data, part
        elif len(part) == 1:
            yield None, part
        else:
            pending = [part[: len(part) // 2], part[len(part) // 2 :], *pending]


def proposal_at(key: str, data: bytes, keys: Keys, location: str, features: Sequence[str] = ()) -> Proposal:
    """Return the proposal at a key. FormatError where it is none, or one of another key."""
    proposal = decode_proposal(data, location, frozenset(features))
    ids = [change.commit_id for change in proposal.changes]
    if keys.proposal_of(key) != (proposal.seen, ids[0]):
        what = f"says that it is of version {proposal.seen} and change {ids[0]}: it was copied or moved"
    elif not 0 < proposal.seen < proposal.until <= proposal.seen + WINDOW:
        what = f"may be applied up to version {proposal.until}, and saw version {proposal.seen}"
    elif len(set(ids)) < len(ids):
        what = "has one change twice"
    elif any(change.base > proposal.seen for change in proposal.changes):
        what = "has a change that was prepared on a later version than it saw"
    elif any(change.rows and (change.events or change.write) for change in proposal.changes):
        what = "has a change with rows and with events, or with a write: it has either"
    else:
        return proposal
    raise FormatError(f"{location} {what}; find out which client wrote this object")


class Inbox:
    """The inbox of one log, as one client has read it. Not safe to share between threads."""

    def __init__(self, replay: Replay[Any]) -> None:
        self._keys: Keys = replay.keys
        self._store: ObjectStore = replay.store
        self._replay = replay
        self.read: dict[str, Proposal | None] = {}
        """What was read of those: None is left alone."""

    def put(self, seen: int, first_id: str, data: bytes) -> None:
        """Put a proposal. StorageError, after which it may be there all the same."""
        put_patiently(self._store, self._keys.proposal(seen, first_id), data, self._replay.options)

    def list(self, version: int) -> list[str]:
        """Return the keys of proposals that may be applied after `version`. One LIST, mostly."""
        return [key for key in self._listed(version) if self._is_due(key, version)]

    def calls(self, version: int) -> Sequence[str]:
        """Return the keys of such proposals, and of wishes. One LIST, mostly."""
        listed = self._listed(version)
        return [key for key in listed if self._keys.is_wish(key) or self._is_due(key, version)]

    def _listed(self, version: int) -> Iterator[str]:
        folders = {self._keys.inbox_folder(max(0, version - each)) for each in (0, OLDER_FOLDER_VERSIONS)}
        for folder in sorted(folders):
            yield from islice(self._store.list_after(folder), LISTED_MAX)

    def _is_due(self, key: str, version: int) -> bool:
        named = self._keys.proposal_of(key)
        return named is not None and named[0] <= version < named[0] + WINDOW

    def collected(self, version: int) -> dict[str, Proposal | None]:
        """List, and read what is new: each proposal once, in one round. Returns what is to be `read` from then on."""
        listed = self.list(version)
        # Kept until they are gone: a client that loses its version has these still to do.
        read = {key: self.read[key] for key in listed if key in self.read}
        new = [key for key in listed if key not in read][:READ_MAX]
        for key, data in zip(new, self._store.get_many(new) if new else (), strict=True):
            read[key] = None if data is None else self._proposal(key, data)
        return read

    def collect(self, version: int) -> None:
        self.read = self.collected(version)

    def _proposal(self, key: str, data: bytes) -> Proposal | None:
        try:
            location = self._replay.at(key)
            return proposal_at(key, data, self._keys, location, tuple(self._replay.options.features))
        except FormatError:
            return None

    def delete(self, keys: Sequence[str]) -> None:
        self._store.delete(keys)
