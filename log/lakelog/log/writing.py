"""Putting a draft at a version: the rules for following a view, the commit's bytes, and the sidecars before it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import msgspec

from lakelog.log import snapshots
from lakelog.log.costs import attempted
from lakelog.log.errors import ConflictError, InvalidInput, LogSealed, WriteFenced
from lakelog.log.format import (
    COMMIT_SIZE_MAX,
    COMMITTED,
    FORMAT,
    PROPOSALS,
    ChangeRefusal,
    Commit,
    Intent,
    Json,
    SettledIntent,
    SharedChange,
    Sidecar,
    encode,
    hash_of,
    own_commit,
)
from lakelog.log.keys import number
from lakelog.log.replay import LogReplay
from lakelog.log.settling import place, put_patiently
from lakelog.log.view import Draft, LogView, S, commit_time_us


@dataclass(frozen=True, slots=True)
class PlacedCommit(Generic[S]):
    """A commit of ours in the log after the view `before`. For an intent, `after` holds only once it is committed."""

    before: LogView[S]
    after: LogView[S]
    commit: Commit
    blobs: tuple[bytes, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A change that is to share a version with others: its author's decision, under its commit id.

    `seen` is the head that its author saw when proposing it. A `refused` change has an empty draft.
    """

    commit_id: str
    base: int
    draft: Draft
    writer: dict[str, Json]
    seen: int = 0
    refused: ChangeRefusal | None = None

    def changes(self) -> Iterator[SharedChange]:
        """Yield the changes that the draft carries, then the change itself."""
        for carried_change in self.draft.carries:
            yield SharedChange(
                commit_id=carried_change.commit_id,
                base=carried_change.base,
                writer=dict(carried_change.writer),
                write=None,
                events=len(carried_change.events),
            )
        yield SharedChange(
            commit_id=self.commit_id,
            base=self.base,
            writer=self.writer,
            write=self.draft.write,
            events=len(self.draft.events),
            seen=self.seen,
            refused=self.refused,
        )


class LogWriter(Generic[S]):
    """The writing half of a log."""

    def __init__(self, replay: LogReplay[S], writer: Mapping[str, Json]) -> None:
        self.replay = replay
        self.writer = writer

    def put(
        self,
        view: LogView[S],
        draft: Draft,
        commit_id: str,
        *,
        base: int,
        log_id: str = "",
        intent: Intent | None = None,
    ) -> PlacedCommit[S] | bytes:
        """Put the draft after `view`. Returns the placed commit, or the bytes of the commit that was there first."""
        check_fence(view, draft, self.replay.location)
        self.replay.check_writable(view)
        assert not draft.rows, "rows are proposed, and not put"
        attempted()
        if draft.carries:
            if intent is not None or log_id:
                raise InvalidInput(
                    "a draft that carries changes of others is no part of a transaction, nor the first"
                )
            return self.put_together(view, [DecidedChange(commit_id, base, draft, dict(self.writer))])
        owner = commit_id if intent is None else intent.txn
        return self._put(
            view,
            draft,
            commit_id,
            base=base,
            log_id=log_id,
            intent=intent,
            sidecars=self.write_sidecars(draft.blobs, view.version + 1, owner),
        )

    def put_together(
        self, view: LogView[S], changes: Sequence[DecidedChange], *, marks: bool = False
    ) -> PlacedCommit[S] | bytes:
        """Put several changes after `view` as a single version, each after the changes that it carries.

        At most one of them has blobs. A single change is put this way if it was proposed or is refused. If
        `marks` is set, the version marks the log for proposals.
        """
        self.replay.check_writable(view)
        draft = Draft(
            events=tuple(event for change in changes for event in change.draft.all_events),
            blobs=tuple(blob for change in changes for blob in change.draft.blobs),
            proposals=marks or any(change.draft.proposals for change in changes),
        )
        return self._put(
            view,
            draft,
            self.replay.options.new_id(),
            base=view.version,
            sidecars=[
                sidecar
                for change in changes
                for sidecar in self.write_sidecars(change.draft.blobs, view.version + 1, change.commit_id)
            ],
            changes=[change for decided_change in changes for change in decided_change.changes()],
        )

    def _put(
        self,
        view: LogView[S],
        draft: Draft,
        commit_id: str,
        *,
        base: int,
        sidecars: Sequence[Sidecar],
        log_id: str = "",
        intent: Intent | None = None,
        changes: Sequence[SharedChange] = (),
    ) -> PlacedCommit[S] | bytes:
        replay, options = self.replay, self.replay.options
        attempt_id, key = options.new_id(), replay.keys.commit(view.version + 1)
        data, commit, next_view = self._folded(
            view,
            Commit(
                format=FORMAT,
                log_id=log_id or view.log_id,
                version=view.version + 1,
                commit_id=commit_id,
                attempt_id=attempt_id,
                base=base,
                prev=view.hash,
                time_us=commit_time_us(view.time_us, options.clock_us(), replay.store.now_us(key)),
                writer=dict(self.writer),
                write=draft.write,
                writer_features=(PROPOSALS,) if draft.proposals else (),
                fence=draft.fence,
                seals=draft.seals,
                reopens=bool(log_id and view.version),
                restores=draft.restores,
                purges=draft.purges,
                intent=intent,
                settles=view.settles,
                sidecars=tuple(sidecars),
                events=draft.events,
                changes=tuple(changes),
            ),
            draft.blobs,
        )

        def is_mine(data: bytes) -> bool:
            return replay.entry(next_view.version, data).attempt_id == attempt_id

        existing_data = place(replay.store, key, data, is_mine, options, commit_id)
        if existing_data is not None:
            return existing_data
        return PlacedCommit(view, next_view, commit, draft.blobs, len(data) + sum(map(len, draft.blobs)))

    def _folded(
        self, view: LogView[S], stored_commit: Commit, blobs: tuple[bytes, ...]
    ) -> tuple[bytes, Commit, LogView[S]]:
        """Return the bytes of a commit that names the features that it uses first, and the view after it.

        The commit is folded from these bytes before it is put. So unreadable commits never happen.
        """
        replay, location = self.replay, self.replay.location
        data = encode(stored_commit)
        if len(data) > COMMIT_SIZE_MAX:
            raise InvalidInput(
                f"a commit of {len(data)} bytes to {location} is above the limit of {COMMIT_SIZE_MAX}: "
                "split it into several"
            )
        commit = own_commit(data, location)
        assumed_outcome = (
            None if commit.intent is None else SettledIntent(outcome=COMMITTED, time_us=commit.time_us)
        )
        next_view = replay.advance(view, commit, blobs, assumed_outcome)
        used_features = replay.projection.uses(commit, blobs)
        new_features = used_features.readers.difference(next_view.features)
        new_writer_features = used_features.writers.difference(next_view.writer_features)
        if not new_features and not new_writer_features:
            return data, commit, next_view
        return self._folded(
            view,
            msgspec.structs.replace(
                stored_commit,
                features=tuple(sorted(new_features)),
                writer_features=tuple(sorted({*new_writer_features, *stored_commit.writer_features})),
            ),
            blobs,
        )

    def settled(
        self, placed_commit: PlacedCommit[S], settled_intent: SettledIntent | None = None
    ) -> LogView[S]:
        """Return the view after the placed commit, now that it is settled. Also writes the snapshots that are due."""
        next_view = placed_commit.after
        if settled_intent is not None:
            next_view = self.replay.advance(
                placed_commit.before, placed_commit.commit, placed_commit.blobs, settled_intent
            )
        changes = len(placed_commit.commit.changes)
        snapshots.write_if_due(
            self.replay, placed_commit.before, next_view, placed_commit.size_bytes, changes
        )
        return next_view

    def write_sidecars(self, blobs: Sequence[bytes], version: int, owner: str) -> tuple[Sidecar, ...]:
        """Write the blobs for the commit that is to be `version`, under names that no other version has.

        So if another writer takes the version, the blobs belong to no commit, whatever their writer does
        next.
        """
        sidecars = []
        for blob in blobs:
            digest = hash_of(blob)
            name = f"{number(version)}-{owner}-{digest[:16]}.bin"
            put_patiently(self.replay.store, self.replay.keys.sidecar(name), blob, self.replay.options)
            sidecars.append(Sidecar(name=name, size_bytes=len(blob), hash=digest))
        return tuple(sidecars)


def check_may_follow(view: LogView[S], draft: Draft, location: str) -> None:
    """Refuse a draft that may not follow a seal or a purge, or that may follow only them."""
    after_seal = draft.restores or draft.purges
    if view.purged or (view.sealed and not after_seal):
        raise log_sealed(view.version, location, purged=view.purged)
    if after_seal and not view.sealed:
        raise ConflictError(
            f"{location} is not sealed at version {view.version}, so that there is nothing to restore or purge: "
            "another client restored it or created it anew; look at it again",
            version=view.version,
        )
    if (draft.restores and draft.purges) or (draft.seals and after_seal):
        raise InvalidInput(
            f"a commit to {location} can do only one of sealing, restoring and purging the log: make several"
        )


def log_sealed(version: int, location: str, *, purged: bool = False) -> LogSealed:
    if purged:
        return LogSealed(
            f"{location} was purged at version {version}: it was dropped and can no longer be restored"
        )
    return LogSealed(f"{location} was sealed at version {version}: it was dropped; look its name up again")


def check_fence(view: LogView[S], draft: Draft, location: str) -> None:
    """Refuse a write that started before the fence, because vacuum may have judged its files abandoned."""
    if draft.write is not None and draft.write.version < view.fence:
        raise WriteFenced(
            f"write {draft.write.id} to {location} started at version {draft.write.version}, and writes older than "
            f"version {view.fence} were fenced off: their files may be gone; write them again",
            version=view.version,
        )
