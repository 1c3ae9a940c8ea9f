"""The changes of a version: its own, or several by many authors that share it. Pure.

A version of several changes has the events and sidecars of all, in their order. So a reader that folds the
version, or needs its effect on the state, can ignore them. This module knows what each author did, and
whether an id happened. A refused change has no events and is in no history; only its author looks for it.
"""

from collections.abc import Collection, Iterator

import msgspec

from lakelog.log.format import PROPOSALS, WINDOW, ChangeRefusal, Commit, Tombstone, id_digest
from lakelog.log.once import of_the_last, once

FORGOTTEN = ChangeRefusal(kind="conflict", message="it was refused in a version that has expired")


class _Shared:
    """A version of several changes, with cached facts, which each waiting change of a process needs."""

    def __init__(self, commit: Commit) -> None:
        self.commit = commit

    @once
    def each(self) -> tuple[Commit, ...]:
        return tuple(_each_change(self.commit))

    @once
    def refusals(self) -> dict[str, ChangeRefusal | None]:
        """All change ids, each with its refusal; None for applied changes."""
        return {change.commit_id: change.refused for change in self.commit.changes}

    @once
    def combined(self) -> frozenset[str]:
        return frozenset([change.commit_id for change in self.commit.changes if change.seen])

    @once
    def misfit(self) -> str | None:
        return _misfit(self.commit)


_shared = of_the_last(4)(_Shared)


def each_change(commit: Commit, *, newest_first: bool = False) -> tuple[Commit, ...]:
    """Return the changes that a version applied, each as a commit of its own.

    Each has the version, time, hash and sidecars of the whole. Events refer to sidecars by index.
    """
    if not commit.changes:
        return (commit,)
    changes = _shared(commit).each
    return changes[::-1] if newest_first else changes


def _each_change(commit: Commit) -> Iterator[Commit]:
    first_event = 0
    for change in commit.changes:
        if change.refused is not None:
            continue
        yield msgspec.structs.replace(
            commit,
            commit_id=change.commit_id,
            base=change.base,
            writer=change.writer,
            write=change.write,
            events=commit.events[first_event : first_event + change.events],
            changes=(),
        )
        first_event += change.events


def is_same_commit(entry: Commit | Tombstone, commit_id: str) -> bool:
    """Return whether an effective entry, expired or not, is or contains the commit of that id."""
    if isinstance(entry, Tombstone):
        if entry.applied or entry.refused:
            return id_digest(commit_id) in entry.applied
        return entry.commit_id == commit_id
    if entry.changes:
        return _shared(entry).refusals.get(commit_id, FORGOTTEN) is None
    return entry.commit_id == commit_id


def refusal_in(entry: Commit | Tombstone, commit_id: str) -> ChangeRefusal | None:
    """Return why an entry refuses that change for good; None if it does not."""
    if isinstance(entry, Tombstone):
        return FORGOTTEN if entry.refused and id_digest(commit_id) in entry.refused else None
    return _shared(entry).refusals.get(commit_id) if entry.changes else None


def decided_ids(commit: Commit) -> tuple[str, ...]:
    """Return the ids of all changes that a version applies or refuses."""
    return tuple([change.commit_id for change in commit.changes]) or (commit.commit_id,)


def combined_ids(commit: Commit) -> frozenset[str]:
    """Return the ids of a version's changes that other clients had proposed."""
    return _shared(commit).combined if commit.changes else frozenset()


def misfit(commit: Commit) -> str | None:
    """Return an error in the changes of a commit; None if there is none."""
    return _shared(commit).misfit if commit.changes else None


def _misfit(commit: Commit) -> str | None:
    if commit.intent or commit.seals or commit.reopens or commit.restores or commit.purges or commit.fence:
        return "has several changes, and seals, reopens, restores, purges or fences the log, or is an intent"
    if commit.write is not None:
        return "has several changes and a write of its own"
    if len({change.commit_id for change in commit.changes}) < len(commit.changes):
        return "has one change twice"
    if sum([change.events for change in commit.changes]) != len(commit.events):
        return "has events that are of none of its changes, or changes whose events it has not"
    for change in commit.changes:
        if change.base >= commit.version:
            return "has a change that was prepared on a later version"
        if change.refused is not None and (change.events or change.write is not None):
            return "refuses a change that has events or a write"
        if change.seen and not change.base <= change.seen < commit.version <= change.seen + WINDOW:
            return "has a change that was proposed for other versions"
    return None


def lacks_feature(commit: Commit, features: Collection[str]) -> bool:
    """Return whether a version has content that requires the feature `PROPOSALS`, but its log lacks the feature.

    `features` are those that writers need from before this version.
    """
    if not any(change.seen or change.refused is not None for change in commit.changes):
        return False
    return PROPOSALS not in features and PROPOSALS not in commit.writer_features
