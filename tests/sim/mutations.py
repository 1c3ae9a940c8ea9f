"""The log with one protection removed: each must make some seed fail, or the checkers are asleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from msgspec import structs
from tests.sim import stores

from lakelog.log import (
    ConflictError,
    StorageError,
    expiry,
    format,
    log,
    placing,
    replay,
    snapshots,
    writing,
)
from lakelog.log.burial import bury_versions, tombstones, unfinished
from lakelog.log.format import Commit, Sidecar, Tombstone, hash_of
from lakelog.log.grammar import is_blob
from lakelog.log.keys import blob_version
from lakelog.log.rounds import commit_round, judging

Mutation = Callable[[], AbstractContextManager[None]]
MUTATIONS: dict[str, Mutation] = {}


def removing(mutations: dict[str, Mutation]) -> Callable[[Any, str], Callable[..., Any]]:
    """Return a decorator which registers a function there as what stands in for `target.name`; it gets the real one
    first."""

    def removes(target: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(stand_in: Callable[..., Any]) -> Callable[..., Any]:
            @contextmanager
            def mutation() -> Iterator[None]:
                real = getattr(target, name)

                def replacement(*args: Any, **kwargs: Any) -> Any:
                    return stand_in(real, *args, **kwargs)

                with patch.object(target, name, replacement):
                    yield

            mutations[stand_in.__name__.replace("_", "-")] = mutation
            return stand_in

        return register

    return removes


removes = removing(MUTATIONS)


@removes(stores.TrueStore, "put_if_absent")
def put_without_a_condition(real: Any, store: stores.TrueStore, key: str, data: bytes) -> bool:
    store.put(key, data)
    if key in store.created and store.created[key] != data:
        store.freed.append(key)
    store.created.setdefault(key, data)
    store.created_at_us.setdefault(key, store.now_us() or 0)
    return True


@removes(writing, "place")
def lost_answer_is_failure(
    real: Any, store: Any, key: str, data: bytes, is_mine: Any, options: Any, commit_id: str
) -> bytes | None:
    return None if store.put_if_absent(key, data) else store.get(key)


@removes(writing, "place")
def taken_is_conflict(
    real: Any, store: Any, key: str, data: bytes, is_mine: Any, options: Any, commit_id: str
) -> bytes | None:
    if not store.put_if_absent(key, data):
        raise ConflictError("the key is taken")
    return None


@removes(writing, "place")
def absence_proves_failure(
    real: Any, store: Any, key: str, data: bytes, is_mine: Any, options: Any, commit_id: str
) -> bytes | None:
    try:
        if store.put_if_absent(key, data):
            return None
    except StorageError as error:
        found = store.get(key)
        if found is None:
            raise StorageError("not there, so it failed", location=key, without_effect=True) from error
    else:
        found = store.get(key)
    return None if is_mine(found) else found


@removes(writing, "place")
def whatever_stands_there_is_ours(
    real: Any, store: Any, key: str, data: bytes, is_mine: Any, options: Any, commit_id: str
) -> bytes | None:
    return real(store, key, data, lambda found: True, options, commit_id)


@removes(placing, "is_same_commit")
def commit_ids_are_not_compared(real: Any, entry: Any, commit_id: str) -> bool:
    return False


@removes(placing, "is_same_commit")
def a_version_is_compared_by_its_own_id(real: Any, entry: Any, commit_id: str) -> bool:
    return bool(entry.commit_id == commit_id)


@removes(tombstones, "tombstone_of")
def tombstones_forget_the_changes_of_a_version(real: Any, *args: Any) -> Tombstone:
    tombstone: Tombstone = structs.replace(real(*args), applied=())
    return tombstone


@removes(judging.JudgedVersion, "add")
def changes_of_a_version_do_not_see_one_another(real: Any, self: Any, *args: Any) -> None:
    real(self, *args)
    self._state = self.before.state


@removes(commit_round.ThreadRound, "_judge")
def a_refusal_is_final_before_what_it_was_judged_on_is_put(real: Any, self: Any) -> Any:
    judged = real(self)
    for each, error in judged.refused:
        self.end(each, error)
    judged.refused.clear()
    return judged


@removes(replay.LogReplay, "effects")
def retried_with_a_fresh_base(real: Any, self: Any, first: int, last: int) -> Iterator[Any]:
    return iter(())


@removes(replay.LogReplay, "effects")
def the_search_ends_where_versions_expired(real: Any, self: Any, first: int, last: int) -> Iterator[Any]:
    for entry in real(self, first, last):
        yield entry
        if isinstance(entry, Tombstone):
            return


@removes(log, "trying")
def a_failed_retry_is_taken_for_a_first_try(
    real: Any, commit_id: str, location: str
) -> AbstractContextManager[None]:
    return nullcontext()


@removes(log.Log, "commit")
def preconditions_are_judged_once(real: Any, self: Any, view: Any, decide: Any, **kwargs: Any) -> Any:
    drafts: list[Any] = []

    def once(view: Any, passed: Sequence[Commit]) -> Any:
        if not drafts:
            drafts.append(decide(view, passed))
        return drafts[0]

    return real(self, view, once, **kwargs)


@removes(log.Log, "commit")
def a_refusal_on_an_old_view_is_final(real: Any, self: Any, view: Any, decide: Any, **kwargs: Any) -> Any:
    class Refused(BaseException):
        pass

    def final(view: Any, passed: Sequence[Commit]) -> Any:
        try:
            return decide(view, passed)
        except ConflictError as error:
            raise Refused from error

    try:
        return real(self, view, final, **kwargs)
    except Refused as refused:
        raise refused.__cause__ or refused from None


@contextmanager
def _fence_is_ignored() -> Iterator[None]:
    def check(view: Any, draft: Any, location: str) -> None:
        return

    with patch.object(writing, "check_fence", check), patch.object(commit_round, "check_fence", check):
        yield


MUTATIONS["fence-is-ignored"] = _fence_is_ignored


@removes(placing, "check_may_follow")
def seal_is_ignored(real: Any, view: Any, draft: Any, location: str) -> None:
    return


@removes(placing.ChangeCursor, "check_goes_on")
def what_began_before_a_seal_goes_on_after_it(real: Any, self: Any, passed: Any) -> None:
    return


@removes(writing.LogWriter, "write_sidecars")
def sidecars_are_written_after_the_commit(
    real: Any, self: Any, blobs: Any, version: int, commit_id: str
) -> tuple[Sidecar, ...]:
    sidecars = []
    for blob in blobs:
        name = f"{version:020d}-{commit_id}-{hash_of(blob)[:16]}.bin"
        sidecar = Sidecar(name=name, size_bytes=len(blob), hash=hash_of(blob))
        key = self.replay.keys.sidecar(sidecar.name)
        store = self.replay.store
        truth = store._truth
        truth.created_sidecars[sidecar.name] = blob
        store._scheduler.land_later(partial(truth.put, key, blob))
        sidecars.append(sidecar)
    return tuple(sidecars)


@removes(writing, "commit_time_us")
def time_is_the_writers_clock(real: Any, previous_us: int, own_us: int, store_us: int | None) -> int:
    return own_us


@removes(stores.UnreliableStore, "now_us")
def the_stores_time_is_known_only_after_a_write(
    real: Any, store: stores.UnreliableStore, near: str = ""
) -> int | None:
    now_us: int | None = real(store, near) if store.has_written else None
    return now_us


@removes(writing, "commit_time_us")
def a_clock_ahead_carries_the_time_away(
    real: Any, previous_us: int, own_us: int, store_us: int | None
) -> int:
    return max(previous_us + 1, own_us)


@removes(replay, "prefix")
def readers_jump_over_holes(real: Any, found: Sequence[bytes | None]) -> list[bytes]:
    return [data for data in found if data is not None]


@removes(replay.LogReplay, "names_this")
def hints_are_believed(real: Any, self: Any, root: Any, entry: Any) -> bool:
    return True


@removes(format, "content_matches")
def content_is_not_hashed(real: Any, data: bytes) -> bool:
    return data.endswith(b'"}')


@removes(replay, "is_outdated")
def snapshots_of_older_bases_are_read(real: Any, newer_base: bytes | None) -> bool:
    return False


@removes(replay, "given_up_by")
def snapshots_that_a_newer_base_gave_up_are_read(real: Any, base: Any, names: Any) -> set[str]:
    return set()


@removes(expiry, "blank")
def the_last_base_is_emptied_too(real: Any, log: Any) -> int:
    last = expiry.last_base(log)
    if last is not None:
        root = structs.replace(last.root, state=None, hash="")
        emptied = structs.replace(last, root=root, hash="")
        log.store.put(log.keys.base(last.number), format.encode(emptied))
    return int(real(log))


@contextmanager
def _older_bases() -> Iterator[None]:
    """A base made from a state that an earlier base gave up, without the check of what it uses."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(replay, "is_outdated", lambda newer_base: False))
        stack.enter_context(patch.object(expiry, "lost_manifests", lambda log, uses, before: set()))
        yield


MUTATIONS["bases-use-what-was-given-up"] = _older_bases


@removes(expiry, "bury_versions")
def expired_keys_are_freed(real: Any, log: Any, versions: range, *more: Any) -> None:
    log.store.delete([log.keys.commit(number) for number in versions])


@removes(expiry, "add_base")
def tombstones_come_before_the_base(real: Any, log: Any, before: Any, view: Any) -> Any:
    bury_versions(log, range(1, view.version + 1))
    return real(log, before, view)


@removes(expiry, "bury_versions")
def windows_end_before_they_are_done(real: Any, log: Any, versions: range, *more: Any) -> None:
    real(log, versions[-1:], *more)
    real(log, versions, *more)


@removes(expiry, "unfinished")
def windows_have_no_order(real: Any, replay: Any, base: Any) -> list[range]:
    windows: list[range] = real(replay, base)
    return windows[1:-1] + windows[:1] + windows[-1:] if len(windows) > 2 else windows


@contextmanager
def _bases_before_tombstones() -> Iterator[None]:
    """A base is made though versions of the one before are no tombstones yet, which are left to the next expiry."""

    def expiring(log: Any, version: int) -> Any:
        last = expiry.last_base(log)
        if last is None or last.root.version < version:
            last = expiry.add_base(log, last, log.view_at(version))
        yield from unfinished(log.replay, last)
        expiry.sweep(log, last)
        return last.root.version

    with patch.object(expiry, "expiring", expiring):
        yield


MUTATIONS["bases-follow-bases-that-are-not-buried"] = _bases_before_tombstones


@contextmanager
def _late_manifests() -> Iterator[None]:
    """Bases before the manifests that they use. Patched once, not by each expiry: two at once would leave each other's
    patches behind."""
    late: dict[tuple[int, int], dict[str, bytes]] = {}
    real = expiry.add_base

    def store_blobs(replay: Any, view: Any) -> Any:
        dump = replay.projection.dump(view.state, view.version)
        late[id(replay), view.version] = dict(dump.blobs)
        return replace(dump, blobs={})

    def add_base(log: Any, before: Any, view: Any) -> Any:
        base = real(log, before, view)
        for name, blob in late.pop((id(log.replay), view.version), {}).items():
            log.store.put(log.keys.manifest(name), blob)
        return base

    with (
        patch.object(expiry, "store_blobs", store_blobs),
        patch.object(expiry, "lost_manifests", lambda log, uses, before: set()),
        patch.object(expiry, "add_base", add_base),
    ):
        yield


MUTATIONS["manifests-come-after-the-base"] = _late_manifests


_manifests_late = MUTATIONS["manifests-come-after-the-base"]


@contextmanager
def _restored_after_all_threads() -> Iterator[None]:
    """Each thread that adds a base patches these two, and puts back what it found there: that of another, perhaps."""
    with (
        patch.object(expiry, "store_blobs", snapshots.store_blobs),
        patch.object(expiry, "lost_manifests", expiry.lost_manifests),
        _manifests_late(),
    ):
        yield


MUTATIONS["manifests-come-after-the-base"] = _restored_after_all_threads


@removes(expiry, "given_up_by")
def sweeping_takes_all_that_is_old(real: Any, base: Any, names: Any) -> set[str]:
    return {name for name in names if is_blob(name) and blob_version(name) <= base.root.version}
