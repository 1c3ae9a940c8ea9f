"""The proposals of a log: putting, listing and reading them. Their fate is not decided here.

Nothing depends on a listing, or on an object's presence. A missing object costs its author time. Any client
may have put anything there, so objects that cannot be decoded, or do not match their key, are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
from lakelog.log.keys import LogKeys
from lakelog.log.replay import LogReplay
from lakelog.log.settling import put_patiently
from lakelog.log.stores import ObjectStore
from lakelog.log.view import FeatureNames

LISTED_MAX = 4096
"""Keys that are looked at in a folder: more than clients put there in a window, and a limit for floods."""
READ_MAX = 512
"""Proposals that are read at a time."""
OLDER_FOLDER_VERSIONS = 16
"""Versions for which the previous folder is also looked at, after a new folder has begun."""


def proposals_of(
    log_id: str, seen: int, features: FeatureNames, changes: Sequence[ProposedChange]
) -> Iterator[tuple[bytes | None, Sequence[ProposedChange]]]:
    """Yield the bytes of as many proposals as these changes need; None for a change that is too big."""
    parts = [changes[start : start + PROPOSED_MAX] for start in range(0, len(changes), PROPOSED_MAX)]
    while parts:
        part = parts.pop(0)
        data = encode(
            Proposal(
                format=FORMAT,
                log_id=log_id,
                seen=seen,
                until=seen + WINDOW,
                features=tuple(sorted(features.readers)),
                writer_features=tuple(sorted(features.writers)),
                changes=tuple(part),
            )
        )
        if len(data) <= PROPOSAL_SIZE_MAX:
            yield data, part
        elif len(part) == 1:
            yield None, part
        else:
            parts = [part[: len(part) // 2], part[len(part) // 2 :], *parts]


def proposal_at(
    key: str, data: bytes, keys: LogKeys, location: str, features: Collection[str] = ()
) -> Proposal:
    """Return the proposal at a key. Raises FormatError if there is none, or another key's."""
    proposal = decode_proposal(data, location, features)
    ids = [change.commit_id for change in proposal.changes]
    if keys.proposal_of(key) != (proposal.seen, ids[0]):
        problem = f"says that it is of version {proposal.seen} and change {ids[0]}: it was copied or moved"
    elif not 0 < proposal.seen < proposal.until <= proposal.seen + WINDOW:
        problem = f"may be applied up to version {proposal.until}, and saw version {proposal.seen}"
    elif len(set(ids)) < len(ids):
        problem = "has one change twice"
    elif any(change.base > proposal.seen for change in proposal.changes):
        problem = "has a change that was prepared on a later version than it saw"
    elif any(change.rows and (change.events or change.write) for change in proposal.changes):
        problem = "has a change with rows and with events, or with a write: it has either"
    else:
        return proposal
    raise FormatError(f"{location} {problem}; find out which client wrote this object")


class ProposalInbox:
    """A log's inbox as a client has read it. Threads may not share it."""

    def __init__(self, replay: LogReplay[Any]) -> None:
        self._keys: LogKeys = replay.keys
        self._store: ObjectStore = replay.store
        self._replay = replay
        self.read: dict[str, Proposal | None] = {}
        """The proposals by key; None is ignored."""

    def put(self, seen: int, first_id: str, data: bytes) -> None:
        """Put a proposal. After a StorageError it may still be there."""
        put_patiently(self._store, self._keys.proposal(seen, first_id), data, self._replay.options)

    def list(self, version: int) -> list[str]:
        """Return the keys of proposals that may be applied after `version`. Usually makes a LIST."""
        return [key for key in self._listed(version) if self._is_due(key, version)]

    def calls(self, version: int) -> Sequence[str]:
        """Return the keys of such proposals, and of wishes. Usually makes a LIST."""
        listed_keys = self._listed(version)
        return [key for key in listed_keys if self._keys.is_wish(key) or self._is_due(key, version)]

    def _listed(self, version: int) -> Iterator[str]:
        folders = {
            self._keys.inbox_folder(max(0, version - versions_back))
            for versions_back in (0, OLDER_FOLDER_VERSIONS)
        }
        for folder in sorted(folders):
            yield from islice(self._store.list_after(folder), LISTED_MAX)

    def _is_due(self, key: str, version: int) -> bool:
        proposal = self._keys.proposal_of(key)
        return proposal is not None and proposal[0] <= version < proposal[0] + WINDOW

    def collected(self, version: int) -> dict[str, Proposal | None]:
        """List the inbox, and read new proposals once each, in a single round. Returns the next value of `read`."""
        listed_keys = self.list(version)
        # Proposals stay until they are gone: a client whose version loses a race still needs them.
        proposals = {key: self.read[key] for key in listed_keys if key in self.read}
        new_keys = [key for key in listed_keys if key not in proposals][:READ_MAX]
        for key, data in zip(new_keys, self._store.get_many(new_keys) if new_keys else (), strict=True):
            proposals[key] = None if data is None else self._proposal(key, data)
        return proposals

    def collect(self, version: int) -> None:
        self.read = self.collected(version)

    def _proposal(self, key: str, data: bytes) -> Proposal | None:
        try:
            location = self._replay.at(key)
            return proposal_at(key, data, self._keys, location, self._replay.features)
        except FormatError:
            return None

    def delete(self, keys: Sequence[str]) -> None:
        self._store.delete(keys)
