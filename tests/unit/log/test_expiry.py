"""Expiry side by side: cleaners that die anywhere, and several at once, tombstones in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from tests.unit.log.projections import Words, grown, new_log, say
from tests.unit.log.transactions import logs_in, together, with_options

from lakelog.log import Log, MemoryStore, NotFound
from lakelog.log.burial import bury_versions, is_buried, newest_tombstone, tombstone_of, tombstones, windows
from lakelog.log.changes import is_same_commit
from lakelog.log.expiry import clean_up, expire, expiring, last_base
from lakelog.log.format import CHANGES_MAX, FORMAT, Commit, LogBase, SharedChange, Tombstone, encode
from lakelog.log.ids import new_id

HEAD, FIRST_BASE, SECOND_BASE = 215, 200, 207
WINDOW = 50


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "BURIED_TOGETHER", WINDOW)
    monkeypatch.setattr(tombstones, "BURIED_AT_ONCE", 16)


class Death(BaseException):
    """No handler catches it."""


class Dying(MemoryStore):
    """Dies at a write of a commit's key, once `left` of them were made."""

    left = 1_000_000

    def put(self, key: str, data: bytes) -> None:
        if "/_log/0" in key:
            self.left -= 1
            if self.left < 0:
                raise Death
        super().put(key, data)


def in_any_order(chance: random.Random) -> Callable[[Sequence[Callable[[], None]]], None]:
    def run(works: Sequence[Callable[[], None]]) -> None:
        for work in chance.sample(works, len(works)):
            work()

    return run


def cleaner(store: MemoryStore, chance: random.Random) -> Log[Words]:
    return with_options(new_log(store), in_parallel=in_any_order(chance))


def expired_numbers(log: Log[Words]) -> list[int]:
    """Return the versions that are tombstones."""
    found_versions = log.replay.get_versions(range(1, HEAD + 1))
    return [
        version
        for version, data in enumerate(found_versions, 1)
        if data is not None and isinstance(log.replay.entry(version, data), Tombstone)
    ]


def base_of(log: Log[Words]) -> LogBase:
    last = last_base(log)
    assert last is not None
    return last


def check(store: MemoryStore, kept: int) -> None:
    """Read all that a new client can read, once `kept` is the first version that it has to find."""
    log = new_log(store)
    words = log.load().state
    removed_numbers = expired_numbers(log)
    if removed_numbers:
        first_alive = next(version for version in range(1, HEAD + 1) if version not in removed_numbers)
        assert removed_numbers[-1] - first_alive < WINDOW
    for version in (
        1,
        2,
        *removed_numbers[:2],
        *removed_numbers[-2:],
        removed_numbers[-1] + 1 if removed_numbers else 3,
        kept,
        kept + 1,
        HEAD,
    ):
        try:
            assert log.view_at(version).state == words[:version]
        except NotFound as error:
            assert version < kept and f"versions from {last_base(log).root.version} " in str(error)
    newest_first = [commit.version for commit in log.commits(newest_first=True)]
    assert newest_first == list(range(HEAD, HEAD - len(newest_first), -1))
    oldest_first = [commit.version for commit in log.commits()]
    assert oldest_first == list(range(HEAD - len(oldest_first) + 1, HEAD + 1))
    assert min(newest_first[-1], oldest_first[0]) <= kept + 1
    if removed_numbers:
        assert oldest_first[0] == kept + 1


@pytest.mark.parametrize("seed", range(12))
def test_cleaners_that_die_among_tombstones_leave_all_readable_and_the_next_finishes(seed: int) -> None:
    chance = random.Random(seed)
    store = Dying()
    log = cleaner(store, chance)
    grown(log, HEAD)
    kept_number = 1
    for base in (FIRST_BASE, FIRST_BASE, SECOND_BASE):
        store.left = chance.randrange(130)
        try:
            expire(cleaner(store, chance), base)
        except Death:
            last = last_base(log)
            assert last is not None and not is_buried(log.replay, last)
        last = last_base(log)
        kept_number = 1 if last is None else last.root.version
        check(store, kept_number)
    store.left = 1_000_000
    assert expire(cleaner(store, chance), SECOND_BASE) == SECOND_BASE
    assert expired_numbers(log) == list(range(1, SECOND_BASE + 1))
    check(store, SECOND_BASE)


@pytest.mark.parametrize("seed", range(12))
def test_a_cleaner_finishes_what_workers_have_left_anywhere_in_a_window(seed: int) -> None:
    """Workers of a job make tombstones in any order, and die with it; a plain cleaner goes on."""
    chance = random.Random(seed)
    store = MemoryStore()
    log = cleaner(store, chance)
    grown(log, HEAD)
    for base in (FIRST_BASE, SECOND_BASE):
        steps = expiring(log, base)
        for _ in range(chance.randrange(4)):
            bury_versions(log, next(steps))
        window = next(steps, range(0))
        for version in chance.sample(window[:-1], chance.randrange(max(1, len(window)))):
            bury_versions(log, range(version, version + 1))
        steps.close()
        check(store, base_of(log).root.version)
        removed_numbers = expired_numbers(log)
        assert newest_tombstone(log.replay, base_of(log)) == (removed_numbers[-1] if removed_numbers else 0)
    assert expire(cleaner(store, chance), SECOND_BASE) == SECOND_BASE
    assert expired_numbers(log) == list(range(1, SECOND_BASE + 1))
    check(store, SECOND_BASE)


def test_a_copy_that_was_made_while_versions_expired_is_looked_at_anew() -> None:
    """It may have the tombstone that ends a window, and not those before."""
    store, other_store = MemoryStore(), MemoryStore()
    log = new_log(store)
    grown(log, HEAD)
    data_before = {key: store.get(key) for key in store.list_after("")}
    expire(log, FIRST_BASE)
    for key in store.list_after(""):
        old, data = data_before.get(key), store.get(key)
        assert data is not None
        other_store.put(key, old if old is not None and key.endswith(f"{70:020d}.json") else data)
    copy = new_log(other_store)
    clean_up(copy, base_of(copy))
    assert 70 not in expired_numbers(copy)
    clean_up(copy, base_of(copy), all_anew=True)
    assert expired_numbers(copy) == expired_numbers(log)


def test_two_cleaners_at_once_leave_what_one_leaves() -> None:
    """Each time that one has put a few tombstones, the other one does all of its own work for an older base."""
    chance = random.Random(7)
    store = Dying()
    log = cleaner(store, chance)
    grown(log, HEAD)
    store.left = 0
    with pytest.raises(Death):
        expire(log, FIRST_BASE)
    store.left = 1_000_000
    other_log = cleaner(store, chance)
    calls = 0

    def interrupted(works: Sequence[Callable[[], None]]) -> None:
        nonlocal calls
        for number, work in enumerate(chance.sample(works, len(works))):
            if number == len(works) // 2 and (calls := calls + 1) == 2:
                clean_up(other_log, base_of(other_log))
                check(store, FIRST_BASE)
            work()

    slow = with_options(new_log(store), in_parallel=interrupted)
    assert expire(slow, SECOND_BASE) == SECOND_BASE and calls > 2
    assert expired_numbers(log) == list(range(1, SECOND_BASE + 1))
    check(store, SECOND_BASE)


def test_a_state_without_manifests_expires_from_a_snapshot_of_before_the_last_base() -> None:
    log = new_log(MemoryStore(), every=20)
    words = grown(log, 60).state
    assert expire(log, 10) == 10
    assert expire(log, 50) == 50
    last = last_base(log)
    assert last is not None and (last.number, last.root.base) == (2, 2)
    assert log.view_at(50).state == words[:50] and log.load().state == words
    assert expire(log, 55) == 55


def test_what_a_tombstone_keeps_of_many_changes_is_bounded() -> None:
    ids = [new_id() for _ in range(CHANGES_MAX)]
    commit = Commit(
        format=FORMAT, log_id=new_id(), version=2, commit_id=new_id(), attempt_id=new_id(), base=1, prev="0" * 64,
        time_us=1, changes=tuple(SharedChange(commit_id=id, base=1) for id in ids), hash="1" * 64,
    )  # fmt: skip
    stone = tombstone_of(commit)
    assert len(encode(stone)) < 20 * 1024
    assert all(is_same_commit(stone, id) for id in ids) and not is_same_commit(stone, new_id())


def test_what_was_finished_is_not_read_again() -> None:
    store = MemoryStore()
    log = new_log(store)
    grown(log, HEAD)
    expire(log, FIRST_BASE)
    asked_numbers: list[int] = []
    real = log.replay.get_versions
    log.replay.get_versions = lambda versions: (asked_numbers.extend(versions), real(versions))[1]  # type: ignore[method-assign]
    clean_up(log, base_of(log))
    assert asked_numbers == []


def test_an_intent_is_buried_before_the_version_that_says_what_became_of_it() -> None:
    store = MemoryStore()
    a, b = logs_in(store, "a", "b")
    for number in range(3):
        together([a, b], f"x{number}")
        together([a, b], f"z{number}")
        a.commit(a.load(), say(f"y{number}"))
    order: list[int] = []
    log = with_options(a, in_parallel=in_any_order(random.Random(1)))
    real = store.put

    def put(key: str, data: bytes) -> None:
        if "/_log/0" in key:
            order.append(int(key[-25:-5]))
        real(key, data)

    store.put = put  # type: ignore[method-assign]
    expire(log, 10)
    assert sorted(order) == list(range(1, 11)) and order[-1] == 10
    assert all(order.index(version) < order.index(version + 1) for version in (2, 3, 5, 6, 8, 9))
