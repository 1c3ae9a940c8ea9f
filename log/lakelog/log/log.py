"""A log of opaque commits in an object store: durable, ordered, each happening entirely or not at all.

One rule carries everything: version n + 1 is created by put-if-absent, by a writer that has seen version n.
    log = Log(store, "t-1", projection)
    view = log.create(Draft(events=({"made": True},)), log_id=new_id())
    done = log.commit(view, lambda view, passed: Draft(events=({"added": 5},)))
The log does not know what events mean; a projection folds them, and `decide` judges what a lost race means.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic

from lakelog.log import history, snapshots
from lakelog.log.errors import (
    AlreadyExists,
    CommitUnknown,
    ConflictError,
    FormatError,
    InvalidInput,
    LakelogError,
    LogSealed,
    StorageError,
    WriteFenced,
)
from lakelog.log.format import (
    COMMIT_SIZE_MAX,
    FORMAT,
    Commit,
    Json,
    Sidecar,
    Tombstone,
    check_features,
    encode,
    hash_of,
    own_commit,
)
from lakelog.log.keys import Keys
from lakelog.log.options import LogOptions
from lakelog.log.replay import BATCH_MAX, Replay
from lakelog.log.settling import place, put_patiently
from lakelog.log.store import ObjectStore
from lakelog.log.view import Committed, Draft, Projection, S, View, commit_time_us, empty_view

Decide = Callable[[View[S], Sequence[Commit]], Draft]


class Log(Generic[S]):
    """See the module. Keeps no state of its own: views are values, and any number of threads may share a log."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        projection: Projection[S],
        *,
        writer: Mapping[str, Json] | None = None,
        options: LogOptions | None = None,
    ) -> None:
        self.store = store
        self.projection = projection
        self.options = options or LogOptions()
        self.writer: dict[str, Json] = dict(writer or {})
        self.keys = Keys(prefix)
        self.replay: Replay[S] = Replay(store, self.keys, projection, self.options)

    @property
    def location(self) -> str:
        """The url of the log's root."""
        return self.replay.location

    # Reading

    def load(self) -> View[S]:
        """Return the head, cold. Two round trips, no LIST. Raises NotFound where there is no log."""
        return self.replay.load()

    def refresh(self, view: View[S]) -> View[S]:
        """Return the head. One GET when nothing is newer; then it is `view` itself."""
        return self.replay.forward(view)

    def view_at(self, version: int) -> View[S]:
        """Return the log as of `version`. Raises NotFound, naming the retained range."""
        return history.view_at(self.replay, version)

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version committed at or before `time_us`. O(log n) GETs. Raises NotFound."""
        return history.version_at_time(self.replay, time_us)

    def commits(
        self, first: int = 1, last: int | None = None, *, newest_first: bool = False
    ) -> Iterator[Commit]:
        """Yield the retained commits from `first` to `last` (the head). Reads ahead in parallel batches."""
        return history.commits(self.replay, first, last, newest_first=newest_first)

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        """Return which of the versions from `first` to `last`, all of which exist, is that commit; expired ones too."""
        for entry in self._entries(first, last):
            if is_same_commit(entry, commit_id):
                return entry.version
        return None

    def read_blobs(self, names: Sequence[str]) -> list[bytes]:
        """Return the blobs of a dump by their names, in one round. Raises NotFound where one has expired."""
        return snapshots.read_blobs(self.replay, names)

    def snapshot(self, view: View[S]) -> None:
        """Write a snapshot and the hint now. The log does so by itself, after acknowledging."""
        snapshots.write(self.replay, view)

    # Writing

    def create(self, draft: Draft, *, log_id: str, commit_id: str | None = None) -> View[S]:
        """Create the log by its version 1, or anew after its seal. Asking again is success; else AlreadyExists.

        `log_id` is new for every creation: it tells whether this one has happened.
        """
        commit_id = commit_id or self.options.new_id()
        view = empty_view(self.projection)
        found = self._try(view, draft, commit_id, base=0, log_id=log_id)
        if isinstance(found, View):
            return found
        entry = self.replay.entry(1, found)
        with self._or_unknown(commit_id):
            if is_same_commit(entry, commit_id):
                return self._view_with(view, entry)
            view = self.load()
            # Ours may be any later log of this place, sealed by now and perhaps followed by others.
            if (view.sealed or view.log_id == log_id) and self.find(commit_id, 2, view.version):
                return view
        while view.sealed and view.log_id != log_id:
            found = self._try(view, draft, commit_id, base=view.version, log_id=log_id)
            if isinstance(found, View):
                return found
            with self._or_unknown(commit_id):
                view = self.replay.forward(view)
        if view.log_id != log_id or entry.log_id == log_id:
            raise AlreadyExists(
                f"there is a log at {self.location} already; load it, or use another location"
            )
        return view

    def commit(
        self, view: View[S], decide: Decide[S], *, commit_id: str | None = None, base: int | None = None
    ) -> Committed[S]:
        """Commit what `decide(view, passed)` drafts, on top of whatever was committed meanwhile.

        `passed` are all commits after `base`; decide judges every precondition on the view it is given and
        raises to give up. To ask again, pass the same commit_id and the *original* base (default:
        view.version): a commit with that id since then is ours, and nothing is written. One PUT; one GET and
        one PUT more for each lost race. Raises LogSealed, WriteFenced, ConflictError, CommitUnknown,
        StorageError (nothing happened) and what `decide` raises.
        """
        commit_id = commit_id or self.options.new_id()
        base = view.version if base is None else base
        assert 0 <= base <= view.version, (base, view.version)
        passed: list[Commit] = []
        if base < view.version:
            with self._or_unknown(commit_id):
                found_before = self._look_up(commit_id, base + 1, view, passed)
            if found_before is not None:
                return found_before
        for lost in range(1, self.options.rebases_max + 1):
            try:
                draft = decide(view, tuple(passed))
                check_may_follow(view, draft, self.location)
            except LakelogError:
                # Judged on a view that may be old. It is final only where nothing is newer, our own commit least.
                newer = list(self._read_on(view.version + 1, None, batch=1))
                if not newer:
                    raise
                entries = iter(newer)
            else:
                found = self._try(view, draft, commit_id, base=base)
                if isinstance(found, View):
                    return Committed(found, found.version)
                entries = self._read_on(view.version + 1, found, batch=2 if lost > 1 else 0)
            for entry in entries:
                if is_same_commit(entry, commit_id):
                    with self._or_unknown(commit_id):
                        return Committed(self._view_with(view, entry), entry.version)
                after = self._view_with(view, entry)
                if isinstance(entry, Tombstone) or after.version != entry.version:
                    return self._past_expiry(after, entry, commit_id)
                view = after
                passed.append(entry)
                check_goes_on(entry, self.location)
            if lost > 2:
                self.options.sleep_s(min(0.001 * lost, 0.1) * self.options.random())
        raise ConflictError(
            f"commit {commit_id} lost {self.options.rebases_max} races at {self.location}; try again when fewer write",
            version=view.version,
            by=passed[-1].commit_id,
        )

    def _try(
        self, view: View[S], draft: Draft, commit_id: str, *, base: int, log_id: str = ""
    ) -> View[S] | bytes:
        """Put the draft after `view`. Returns the view after it, or the bytes of who was there first."""
        check_fence(view, draft, self.location)
        if draft.features:
            check_features(draft.features, self.options.features, self.location)
        attempt_id = self.options.new_id()
        data = encode(
            Commit(
                format=FORMAT,
                log_id=log_id or view.log_id,
                version=view.version + 1,
                commit_id=commit_id,
                attempt_id=attempt_id,
                base=base,
                prev=view.hash,
                time_us=commit_time_us(view.time_us, self.options.clock_us(), self.store.now_us()),
                writer=self.writer,
                write=draft.write,
                features=draft.features,
                fence=draft.fence,
                seals=draft.seals,
                restores=draft.restores,
                purges=draft.purges,
                settles=view.settles,
                reopens=bool(log_id and view.version),
                sidecars=self._write_sidecars(draft.blobs, commit_id),
                events=draft.events,
            )
        )
        if len(data) > COMMIT_SIZE_MAX:
            raise InvalidInput(
                f"a commit of {len(data)} bytes to {self.location} is above the limit of {COMMIT_SIZE_MAX}: "
                "split it into several"
            )
        # Folded before it is put, from the bytes that readers will get: what cannot be read is never committed.
        after = self.replay.advance(view, own_commit(data), draft.blobs)

        def is_mine(found: bytes) -> bool:
            return self.replay.entry(after.version, found).attempt_id == attempt_id

        taken = place(self.store, self.keys.commit(after.version), data, is_mine, self.options, commit_id)
        if taken is not None:
            return taken
        snapshots.write_if_due(self.replay, after, len(data) + sum(map(len, draft.blobs)))
        return after

    def _write_sidecars(self, blobs: Sequence[bytes], commit_id: str) -> tuple[Sidecar, ...]:
        sidecars = []
        for blob in blobs:
            digest = hash_of(blob)
            name = f"{commit_id}-{digest[:16]}.bin"
            put_patiently(self.store, self.keys.sidecar(name), blob, self.options)
            sidecars.append(Sidecar(name=name, size_bytes=len(blob), hash=digest))
        return tuple(sidecars)

    @contextmanager
    def _or_unknown(self, commit_id: str) -> Iterator[None]:
        """Turn a failed read into CommitUnknown where the commit may have happened already."""
        try:
            yield
        except StorageError as error:
            raise CommitUnknown(
                f"commit {commit_id} to {self.location} may have happened, but reading the log failed: {error}; "
                "ask again with the same commit id",
                commit_id=commit_id,
                location=self.location,
            ) from error

    def _entries(self, first: int, last: int) -> Iterator[Commit | Tombstone]:
        """Yield the versions from `first` to `last`, all of which exist."""
        for start in range(first, last + 1, BATCH_MAX):
            versions = range(start, min(start + BATCH_MAX, last + 1))
            for version, data in zip(versions, self.replay.get_versions(versions), strict=True):
                if data is None:
                    raise FormatError(
                        f"{self.replay.at(self.keys.commit(version))} is missing; restore it from a backup"
                    )
                yield self.replay.entry(version, data)

    def _read_on(self, version: int, found: bytes | None, *, batch: int) -> Iterator[Commit | Tombstone]:
        """Yield `found`, which is at `version`, and then all that is there, if `batch` says how many to read first."""
        if found is not None:
            yield self.replay.entry(version, found)
            version += 1
        while batch:
            versions = range(version, version + batch)
            for version, data in zip(versions, self.replay.get_versions(versions), strict=True):
                if data is None:
                    return
                yield self.replay.entry(version, data)
            version += 1
            batch = min(batch * 2, BATCH_MAX)

    def _view_with(self, view: View[S], entry: Commit | Tombstone) -> View[S]:
        """Return the view after `entry`, which follows `view`; a later one where expiry has been there."""
        if isinstance(entry, Commit):
            blobs = self.replay.sidecars([entry])[entry.version]
            if blobs is not None:
                return self.replay.advance(view, entry, blobs)
        return self.replay.forward(self.replay.last_base(view.base + 1, at_least=entry.version))

    def _past_expiry(self, head: View[S], expired: Commit | Tombstone, commit_id: str) -> Committed[S]:
        """Find our own commit among what follows an expired version, or raise: what passed is not known any more."""
        with self._or_unknown(commit_id):
            found = self._look_up(commit_id, expired.version + 1, head, [])
        if found is None:
            raise log_sealed(expired.version, self.location) if expired.seals else self._expired(expired)
        return found

    def _look_up(
        self, commit_id: str, first: int, view: View[S], passed: list[Commit]
    ) -> Committed[S] | None:
        """Find our own commit from version `first` to that of `view`; else add what is there to `passed`.

        Raises LogSealed for a seal and ConflictError for an expired version there, but only once all ids up to the
        head were compared: the view may be older than our commit.
        """
        expired: Tombstone | None = None
        sealed_at = 0
        for entry in self._entries(first, view.version):
            if is_same_commit(entry, commit_id):
                return Committed(view, entry.version)
            if entry.seals or entry.reopens:
                sealed_at = entry.version
            if isinstance(entry, Commit):
                passed.append(entry)
            else:
                expired = expired or entry
        if not sealed_at and expired is None:
            return None
        head = self.replay.forward(view)
        for entry in self._entries(view.version + 1, head.version):
            if is_same_commit(entry, commit_id):
                return Committed(head, entry.version)
        if sealed_at or expired is None:
            raise log_sealed(sealed_at, self.location)
        raise self._expired(expired)

    def _expired(self, entry: Commit | Tombstone) -> ConflictError:
        return ConflictError(
            f"version {entry.version} of {self.location} has expired since this change began, so that it cannot be "
            "checked against it; start again from the current version",
            version=entry.version,
            by=entry.commit_id,
        )


def check_goes_on(passed: Commit, location: str) -> None:
    """Refuse a change that was prepared before a seal or a reopening: what follows is no longer what it was about."""
    if passed.seals or passed.reopens:
        raise log_sealed(passed.version, location)


def check_may_follow(view: View[S], draft: Draft, location: str) -> None:
    """Refuse what may not follow a seal or a purge, and what only may."""
    after_seal = draft.restores or draft.purges
    if view.purged or (view.sealed and not after_seal):
        raise log_sealed(view.version, location)
    if after_seal and not view.sealed:
        raise ConflictError(
            f"{location} is not sealed at version {view.version}, so that there is nothing to restore or purge: "
            "somebody else restored it or created it anew; look at it again",
            version=view.version,
        )
    if draft.restores and draft.purges or draft.seals and after_seal:
        raise InvalidInput(f"a commit to {location} can either seal, restore or purge the log: make several")


def log_sealed(version: int, location: str) -> LogSealed:
    return LogSealed(f"{location} was sealed at version {version}: it was dropped; look its name up again")


def check_fence(view: View[S], draft: Draft, location: str) -> None:
    """Refuse a write that started before the fence: vacuum may have taken its files for abandoned ones."""
    if draft.write is not None and draft.write.version < view.fence:
        raise WriteFenced(
            f"write {draft.write.id} to {location} started at version {draft.write.version}, and writes older than "
            f"version {view.fence} were fenced off: their files may be gone; write them again",
            version=view.version,
        )


def is_same_commit(entry: Commit | Tombstone, commit_id: str) -> bool:
    """Return whether an entry, expired or not, is the commit that is being asked for (again)."""
    return entry.commit_id == commit_id


def refresh_many(pairs: Sequence[tuple["Log[S]", View[S]]]) -> list[View[S]]:
    """Return the heads of several logs: one parallel round over all of them when nothing is newer."""
    by_store: dict[int, list[int]] = {}
    for i, (log, _) in enumerate(pairs):
        by_store.setdefault(id(log.store), []).append(i)
    views = [view for _, view in pairs]
    for indexes in by_store.values():
        keys = [pairs[i][0].keys.commit(views[i].version + 1) for i in indexes]
        for i, data in zip(indexes, pairs[indexes[0]][0].store.get_many(keys), strict=True):
            if data is not None:
                views[i] = pairs[i][0].replay.forward(views[i], found=[data])
    return views
