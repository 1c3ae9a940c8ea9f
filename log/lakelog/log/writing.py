"""Putting one draft at one version: what may follow a view, the bytes of the commit, and its sidecars before it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from lakelog.log import snapshots
from lakelog.log.costs import attempted
from lakelog.log.errors import ConflictError, InvalidInput, LogSealed, WriteFenced
from lakelog.log.format import (
    COMMIT_SIZE_MAX,
    COMMITTED,
    FORMAT,
    PROPOSALS,
    Change,
    Commit,
    Intent,
    Json,
    Refusal,
    Settled,
    Sidecar,
    check_features,
    encode,
    hash_of,
    own_commit,
)
from lakelog.log.keys import number
from lakelog.log.replay import Replay
from lakelog.log.settling import place, put_patiently
from lakelog.log.view import Draft, S, View, commit_time_us


@dataclass(frozen=True, slots=True)
class Placed(Generic[S]):
    """A commit of ours that stands in the log after the view `before`. An intent has `after` only once committed."""

    before: View[S]
    after: View[S]
    commit: Commit
    blobs: tuple[bytes, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Decided:
    """One of several changes that are to share a version: what its author decided, and under which id.

    `seen` is the head that its author saw who proposed it. One that is `refused` has an empty draft.
    """

    commit_id: str
    base: int
    draft: Draft
    writer: dict[str, Json]
    seen: int = 0
    refused: Refusal | None = None

    def changes(self) -> Iterator[Change]:
        """Yield what the draft carries, and itself."""
        for each in self.draft.carries:
            yield Change(
                commit_id=each.commit_id,
                base=each.base,
                writer=dict(each.writer),
                write=None,
                events=len(each.events),
            )
        yield Change(
            commit_id=self.commit_id,
            base=self.base,
            writer=self.writer,
            write=self.draft.write,
            events=len(self.draft.events),
            seen=self.seen,
            refused=self.refused,
        )


class Writer(Generic[S]):
    """The writing half of a log."""

    def __init__(self, replay: Replay[S], writer: Mapping[str, Json]) -> None:
        self.replay = replay
        self.writer = writer

    def put(
        self,
        view: View[S],
        draft: Draft,
        commit_id: str,
        *,
        base: int,
        log_id: str = "",
        intent: Intent | None = None,
    ) -> Placed[S] | bytes:
        """Put the draft after `view`. Returns what was placed, or the bytes of the commit that was there first."""
        check_fence(view, draft, self.replay.location)
        assert not draft.rows, "rows are proposed, and not put"
        attempted()
        if draft.carries:
            if intent is not None or log_id:
                raise InvalidInput(
                    "a draft that carries changes of others is no part of a transaction, nor the first"
                )
            return self.put_together(view, [Decided(commit_id, base, draft, dict(self.writer))])
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
        self, view: View[S], changes: Sequence[Decided], *, marks: bool = False
    ) -> Placed[S] | bytes:
        """Put several changes after `view` as one version, each after those that it carries. One of them at most has
        blobs. One alone is put so where it was proposed, or is refused. One that `marks` the log says that there may be
        proposals."""
        draft = Draft(
            events=tuple(event for change in changes for event in change.draft.all_events),
            blobs=tuple(blob for change in changes for blob in change.draft.blobs),
            features=tuple(sorted({each for change in changes for each in change.draft.features})),
        )
        return self._put(
            view,
            marked(draft) if marks else draft,
            self.replay.options.new_id(),
            base=view.version,
            sidecars=[
                sidecar
                for change in changes
                for sidecar in self.write_sidecars(change.draft.blobs, view.version + 1, change.commit_id)
            ],
            changes=[change for decided in changes for change in decided.changes()],
        )

    def _put(
        self,
        view: View[S],
        draft: Draft,
        commit_id: str,
        *,
        base: int,
        sidecars: Sequence[Sidecar],
        log_id: str = "",
        intent: Intent | None = None,
        changes: Sequence[Change] = (),
    ) -> Placed[S] | bytes:
        replay, options, location = self.replay, self.replay.options, self.replay.location
        if draft.features:
            check_features(draft.features, options.features, location)
        attempt_id, key = options.new_id(), replay.keys.commit(view.version + 1)
        data = encode(
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
                features=draft.features,
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
            )
        )
        if len(data) > COMMIT_SIZE_MAX:
            raise InvalidInput(
                f"a commit of {len(data)} bytes to {location} is above the limit of {COMMIT_SIZE_MAX}: "
                "split it into several"
            )
        # Folded before it is put, from the bytes that readers will get: what cannot be read is never committed.
        commit = own_commit(data, location)
        assumed = None if intent is None else Settled(outcome=COMMITTED, time_us=commit.time_us)
        after = replay.advance(view, commit, draft.blobs, assumed)

        def is_mine(found: bytes) -> bool:
            return replay.entry(after.version, found).attempt_id == attempt_id

        taken = place(replay.store, key, data, is_mine, options, commit_id)
        if taken is not None:
            return taken
        return Placed(view, after, commit, draft.blobs, len(data) + sum(map(len, draft.blobs)))

    def settled(self, placed: Placed[S], settled: Settled | None = None) -> View[S]:
        """Return the view after what was placed, now that it is settled, and see to the snapshots that are due."""
        after = placed.after
        if settled is not None:
            after = self.replay.advance(placed.before, placed.commit, placed.blobs, settled)
        changes = len(placed.commit.changes)
        snapshots.write_if_due(self.replay, placed.before, after, placed.size_bytes, changes)
        return after

    def write_sidecars(self, blobs: Sequence[bytes], version: int, owner: str) -> tuple[Sidecar, ...]:
        """Write the blobs for the commit that is to be `version`, under names that no other version has.

        So a blob whose version was taken by another writer belongs to no commit, whatever its writer does next.
        """
        sidecars = []
        for blob in blobs:
            digest = hash_of(blob)
            name = f"{number(version)}-{owner}-{digest[:16]}.bin"
            put_patiently(self.replay.store, self.replay.keys.sidecar(name), blob, self.replay.options)
            sidecars.append(Sidecar(name=name, size_bytes=len(blob), hash=digest))
        return tuple(sidecars)


def marked(draft: Draft) -> Draft:
    """Return a draft that says that there may be proposals from here on."""
    return replace(draft, features=tuple(sorted({*draft.features, PROPOSALS})))


def check_may_follow(view: View[S], draft: Draft, location: str) -> None:
    """Refuse what may not follow a seal or a purge, and what may follow only them."""
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


def check_fence(view: View[S], draft: Draft, location: str) -> None:
    """Refuse a write that started before the fence: vacuum may have taken its files for abandoned ones."""
    if draft.write is not None and draft.write.version < view.fence:
        raise WriteFenced(
            f"write {draft.write.id} to {location} started at version {draft.write.version}, and writes older than "
            f"version {view.fence} were fenced off: their files may be gone; write them again",
            version=view.version,
        )
