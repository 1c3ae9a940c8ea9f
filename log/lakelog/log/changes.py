"""The changes of a version: one of its own, or several of many authors that share it. Pure.

A version of several changes has the events and sidecars of all, in their order, so a reader that folds it, or wants to
know what it did to the state, needs to know nothing of them. What one author did, and whether an id happened, is asked
here. A change that a version refuses has no events, and is in no history; only its author asks for it.
"""

from collections.abc import Collection, Iterator

import msgspec

from lakelog.log.format import PROPOSALS, WINDOW, Commit, Refusal, Tombstone, id_digest
from lakelog.log.once import of_the_last, once

FORGOTTEN = Refusal(kind="conflict", message="it was refused in a version that has expired")


class _Shared:
    """A version of several changes, and what was found out about these: each that waits in a process asks it anew."""

    def __init__(self, commit: Commit) -> None:
        self.commit = commit

    @once
    def each(self) -> tuple[Commit, ...]:
        return tuple(_each_change(self.commit))

    @once
    def refusals(self) -> dict[str, Refusal | None]:
        """All ids, with why it was refused; None for what was applied."""
        return {change.commit_id: change.refused for change in self.commit.changes}

    @once
    def combined(self) -> frozenset[str]:
        return frozenset([change.commit_id for change in self.commit.changes if change.seen])

    @once
    def misfit(self) -> str | None:
        return _misfit(self.commit)


_shared = of_the_last(4)(_Shared)


def each_change(commit: Commit, *, newest_first: bool = False) -> tuple[Commit, ...]:
    """Return the changes of a version that it applied, each as the commit that it would be by itself.

    Each has the version, time, hash and sidecars of the whole, which events refer to by their index.
    """
    if not commit.changes:
        return (commit,)
    each = _shared(commit).each
    return each[::-1] if newest_first else each


def _each_change(commit: Commit) -> Iterator[Commit]:
    first = 0
    for change in commit.changes:
        if change.refused is not None:
            continue
        yield msgspec.structs.replace(
            commit,
            commit_id=change.commit_id,
            base=change.base,
            writer=change.writer,
            write=change.write,
            events=commit.events[first : first + change.events],
            changes=(),
        )
        first += change.events


def is_same_commit(entry: Commit | Tombstone, commit_id: str) -> bool:
    """Return whether an entry with an effect, expired or not, is or has the commit that is being tried or retried."""
    if isinstance(entry, Tombstone):
        if entry.applied or entry.refused:
            return id_digest(commit_id) in entry.applied
        return entry.commit_id == commit_id
    if entry.changes:
        return _shared(entry).refusals.get(commit_id, FORGOTTEN) is None
    return entry.commit_id == commit_id


def refusal_in(entry: Commit | Tombstone, commit_id: str) -> Refusal | None:
    """Return why an entry refuses that change for good, None where it does not."""
    if isinstance(entry, Tombstone):
        return FORGOTTEN if entry.refused and id_digest(commit_id) in entry.refused else None
    return _shared(entry).refusals.get(commit_id) if entry.changes else None


def decided_ids(commit: Commit) -> tuple[str, ...]:
    """Return the ids of all that a version applies or refuses."""
    return tuple([change.commit_id for change in commit.changes]) or (commit.commit_id,)


def combined_ids(commit: Commit) -> frozenset[str]:
    """Return the ids of the changes of a version that others had proposed to the client that put it."""
    return _shared(commit).combined if commit.changes else frozenset()


def misfit(commit: Commit) -> str | None:
    """Return what is wrong about the changes of a commit, None where nothing is."""
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
    """Return whether a version has what only logs with the feature `PROPOSALS` may have; `features` are those of the
    log before it."""
    if not any(change.seen or change.refused is not None for change in commit.changes):
        return False
    return PROPOSALS not in features and PROPOSALS not in commit.features
