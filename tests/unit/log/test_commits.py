"""Creating and committing: order, idempotence, lost races, fences and seals."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from tests.unit.log.projections import Clock, Words, begin, grown, new_log, say

from lakelog.log import (
    COMMIT_SIZE_MAX,
    AlreadyExists,
    CarriedChange,
    Commit,
    CommitUnknown,
    ConflictError,
    Draft,
    FormatError,
    InvalidInput,
    LogSealed,
    LogView,
    MemoryStore,
    NotFound,
    PermissionDenied,
    StorageError,
    WriteFenced,
    WriteRef,
)
from lakelog.log.expiry import expire

YEAR_US = 365 * 86_400_000_000


class SpoiltStore(MemoryStore):
    """Spoils the answers of coming put_if_absent calls, one fault each: before or after their effect."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "denied":
            raise PermissionDenied("403", location=key)
        if fault == "before":
            raise StorageError("503", location=key)
        is_created = super().put_if_absent(key, data)
        if fault == "after":
            raise StorageError("timeout", location=key)
        return is_created and fault != "echo"


def test_a_commit_is_the_next_version_and_its_writer_and_readers_see_the_same() -> None:
    log = new_log()
    change = log.commit(begin(log), say("two"))
    assert change.version == change.view.version == 2
    assert log.load() == change.view
    assert change.view.state == ("one", "two")


def test_creating_a_log_twice_fails_unless_it_is_the_same_commit() -> None:
    log = new_log()
    first = log.create(Draft(events=({"word": "one"},)), log_id="log", commit_id="c")
    assert log.create(Draft(events=({"word": "one"},)), log_id="other", commit_id="c") == first
    with pytest.raises(AlreadyExists, match=r"memory://private/t already"):
        log.create(Draft(), log_id="log")


def test_there_is_no_log_before_it_was_created() -> None:
    with pytest.raises(NotFound, match="no log at memory://private/t"):
        new_log().load()


def test_a_lost_race_is_decided_again_on_the_winner() -> None:
    log = new_log()
    view = begin(log)
    for word in ("a", "b", "c"):
        log.commit(log.load(), say(word))
    seen: list[tuple[int, list[int], Words]] = []

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        seen.append((view.version, [commit.version for commit in passed], view.state))
        return Draft(events=({"word": "mine"},))

    change = log.commit(view, decide)
    assert change.version == 5 and change.view.state == ("one", "a", "b", "c", "mine")
    assert seen == [(1, [], ("one",)), (2, [2], ("one", "a")), (4, [2, 3, 4], ("one", "a", "b", "c"))]


def test_whatever_decide_raises_ends_the_commit_and_nothing_is_written() -> None:
    log = new_log()
    view = begin(log)

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        raise ConflictError("no", version=1, by="another writer")

    with pytest.raises(ConflictError):
        log.commit(view, decide)
    assert log.refresh(view) is view


@pytest.mark.parametrize("faults", [["after"], ["echo"], ["before"], ["before", "after"], ["after"] * 3])
def test_a_commit_is_acknowledged_once_however_its_answers_were_lost(faults: list[str]) -> None:
    store = SpoiltStore()
    log = new_log(store)
    view = begin(log)
    store.faults = list(faults)
    assert log.commit(view, say("two")).version == 2
    assert log.load().state == ("one", "two")


def test_a_commit_whose_outcome_cannot_be_learned_says_so_and_can_be_retried() -> None:
    store = SpoiltStore()
    log = new_log(store)
    view = begin(log)
    store.faults = ["before"] * 100
    with pytest.raises(CommitUnknown, match="commit mine happened") as error:
        log.commit(view, say("two"), commit_id="mine")
    assert error.value.commit_id == "mine" and "00000000000000000002.json" in error.value.location
    store.faults = []
    assert log.commit(view, say("two"), commit_id="mine").version == 2


def test_an_unknown_outcome_of_what_carries_others_names_the_change_and_not_its_version() -> None:
    store = SpoiltStore()
    log = new_log(store)
    view = begin(log)
    draft = Draft(
        events=({"word": "mine"},), carries=(CarriedChange("theirs", 1, {}, ({"word": "theirs"},)),)
    )
    store.faults = ["before"] * 100
    with pytest.raises(CommitUnknown, match="commit mine happened") as error:
        log.commit(view, lambda view, passed: draft, commit_id="mine")
    assert error.value.commit_id == "mine"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("error", [ConflictError("no"), ValueError("no")])
def test_what_a_refused_change_held_is_free_at_once(error: Exception, shared: bool) -> None:
    class Held:
        pass

    held_refs: list[weakref.ref[Held]] = []

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        rows = Held()
        held_refs.append(weakref.ref(rows))
        raise type(error)("no")

    def refused() -> None:
        with suppress(ConflictError, ValueError):
            log.commit(view, decide, shared=shared)

    log = new_log()
    view = begin(log)
    gc.disable()
    try:
        refused()
        assert [ref() for ref in held_refs] == [None] * len(held_refs)
    finally:
        gc.enable()


def test_a_refusal_is_no_unknown_outcome_unless_an_earlier_try_was() -> None:
    store = SpoiltStore()
    log = new_log(store)
    view = begin(log)
    store.faults = ["denied"]
    with pytest.raises(PermissionDenied):
        log.commit(view, say("two"))
    store.faults = ["before"] + ["denied"] * 100
    with pytest.raises(CommitUnknown):
        log.commit(view, say("two"))


def test_a_retry_with_the_same_id_and_base_gives_the_first_commit() -> None:
    log = new_log()
    view = begin(log)
    first = log.commit(view, say("mine"), commit_id="c")
    log.commit(first.view, say("other"))
    for start in (view, log.load()):
        again = log.commit(start, say("mine"), commit_id="c", base=view.version)
        assert again.version == 2
    assert log.load().state == ("one", "mine", "other")


def test_a_retry_finds_the_first_commit_after_it_expired() -> None:
    log = new_log()
    view = begin(log)
    log.commit(view, say("mine"), commit_id="c")
    for word in "abcd":
        log.commit(log.load(), say(word))
    expire(log, 5)
    for start in (view, log.load()):
        assert log.commit(start, say("mine"), commit_id="c", base=view.version).version == 2


def test_a_retry_with_an_old_view_finds_the_first_commit_beyond_it_although_versions_expired() -> None:
    log = new_log()
    view = begin(log)
    old = log.commit(view, say("a")).view
    log.commit(log.commit(old, say("b")).view, say("mine"), commit_id="c", base=1)
    expire(log, 2)
    assert log.commit(old, say("mine"), commit_id="c", base=1).version == 4


def test_a_retry_meets_a_base_at_the_very_version_that_it_rebases_over() -> None:
    log = new_log()
    view = begin(log)
    log.commit(log.commit(view, say("a")).view, say("mine"), commit_id="c", base=1)
    expire(log, 2)
    assert log.commit(view, say("mine"), commit_id="c", base=1).version == 3


def test_a_refusal_on_an_old_view_is_reconsidered_on_the_newest() -> None:
    log = new_log()
    view = begin(log)
    log.commit(view, say("permission"))

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        if "permission" not in view.state:
            raise ConflictError("not permitted")
        return Draft(events=({"word": "done"},))

    assert log.commit(view, decide).view.state == ("one", "permission", "done")


def test_a_refusal_of_what_was_committed_before_is_not_believed() -> None:
    log = new_log()
    view = begin(log)
    log.commit(view, say("mine"), commit_id="c")

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        raise ConflictError("no")

    assert log.commit(view, decide, commit_id="c").version == 2


def test_a_change_that_slept_through_expiry_is_a_conflict() -> None:
    log = new_log()
    view = begin(log)
    grown_to = log.commit(log.commit(view, say("a")).view, say("b")).view
    expire(log, 3)
    with pytest.raises(ConflictError, match=r"version \d of .* has expired since this change began"):
        log.commit(view, say("late"))
    assert log.load() == log.refresh(log.view_at(3))
    assert log.load().state == grown_to.state


def test_a_late_writer_never_creates_an_expired_version_again() -> None:
    store = MemoryStore()
    log = new_log(store)
    grown(log, 6)
    expire(log, 4)
    for version in range(1, 7):
        assert not store.put_if_absent(log.keys.commit(version), b"late")


def test_a_write_that_started_before_the_fence_is_refused() -> None:
    log = new_log()
    view = grown(log, 3)
    fenced_view = log.commit(view, lambda view, passed: Draft(fence=3)).view
    assert fenced_view.fence == 3 and log.load().fence == 3
    with pytest.raises(WriteFenced, match="write w .* started at version 2"):
        log.commit(view, lambda view, passed: Draft(write=WriteRef(id="w", version=2)))
    assert log.commit(view, lambda view, passed: Draft(write=WriteRef(id="v", version=3))).version == 5


def test_nothing_follows_a_seal() -> None:
    log = new_log()
    view = begin(log)
    sealed_change = log.commit(view, lambda view, passed: Draft(seals=True), commit_id="seal")
    assert sealed_change.view.sealed and log.load().sealed
    for start in (view, sealed_change.view):
        with pytest.raises(LogSealed, match="was sealed at version"):
            log.commit(start, say("late"))
    again = log.commit(
        log.load(), lambda view, passed: Draft(seals=True), commit_id="seal", base=view.version
    )
    assert again.version == 2
    expire(log, 2)
    assert log.load().sealed
    with pytest.raises(LogSealed):
        log.commit(log.load(), say("late"))


def test_a_sealed_log_can_be_created_anew_and_nothing_of_before_gets_into_it() -> None:
    log = new_log()
    view_before = begin(log)
    sealed_view = log.commit(view_before, lambda view, passed: Draft(seals=True), commit_id="seal").view
    anew = log.create(Draft(events=({"word": "anew"},)), log_id="second", commit_id="c")
    assert (anew.version, anew.log_id, anew.state, anew.sealed) == (3, "second", ("anew",), False)
    assert log.create(Draft(events=({"word": "anew"},)), log_id="second", commit_id="c") == anew == log.load()
    with pytest.raises(AlreadyExists):
        log.create(Draft(), log_id="third")
    for start, base in ((view_before, 1), (sealed_view, 2), (anew, 1), (anew, 2)):
        with pytest.raises(LogSealed, match="was sealed at version"):
            log.commit(start, say("late"), base=base)
    assert log.commit(anew, say("on")).view.state == ("anew", "on")
    assert log.view_at(1).state == ("one",)


def seal(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
    return Draft(seals=True)


def restore(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
    return Draft(events=({"word": "restored"},), restores=True)


def purge(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
    return Draft(purges=True)


def test_a_creation_that_is_retried_while_its_first_put_is_late_happens_once() -> None:
    """The place is sealed; until the first put arrives, the retry creates, others drop, create and drop again."""

    class Late(SpoiltStore):
        meanwhile: Callable[[], None] | None = None

        def put_if_absent(self, key: str, data: bytes) -> bool:
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            return super().put_if_absent(key, data)

    store = Late()
    log, draft = new_log(store), Draft(events=({"word": "anew"},))
    log.commit(begin(log), seal)

    def meanwhile() -> None:
        store.meanwhile = at_its_version

    def at_its_version() -> None:
        for log_id, commit_id in (("second", "c"), ("third", "other")):
            log.commit(log.create(draft, log_id=log_id, commit_id=commit_id), seal)

    store.meanwhile = meanwhile  # the first put is of version 1, which is taken
    view = log.create(draft, log_id="second", commit_id="c")
    assert view.sealed and view == log.load()
    assert [commit.commit_id for commit in log.commits() if commit.reopens] == ["c", "other"]


def test_a_sealed_log_can_be_restored_and_goes_on_as_it_was() -> None:
    log = new_log()
    view_before = begin(log)
    sealed_view = log.commit(view_before, seal).view
    change = log.commit(sealed_view, restore, commit_id="c")
    assert (change.version, change.view.state, change.view.sealed) == (3, ("one", "restored"), False)
    assert change.view.log_id == view_before.log_id and log.load() == change.view
    assert log.commit(sealed_view, restore, commit_id="c").version == 3
    with pytest.raises(ConflictError, match="is not sealed at version 3"):
        log.commit(sealed_view, restore)
    for start in (view_before, change.view):
        with pytest.raises(ConflictError, match="was dropped at version 2 and restored since"):
            log.commit(start, say("prepared before the seal"), base=view_before.version)
    again = log.commit(log.commit(change.view, say("on")).view, seal).view
    expire(log, again.version)
    assert log.commit(log.load(), restore).view.state == ("one", "restored", "on", "restored")


def test_of_a_restoring_and_a_purge_one_wins() -> None:
    log = new_log()
    sealed_view = log.commit(begin(log), seal).view
    purged_view = log.commit(sealed_view, purge).view
    assert purged_view.sealed and purged_view.purged and log.load() == purged_view
    for start in (sealed_view, purged_view):
        for decide in (restore, purge, say("late")):
            with pytest.raises(LogSealed, match="was purged at version 3"):
                log.commit(start, decide)
    expire(log, purged_view.version)
    assert log.load().purged
    anew = log.create(Draft(events=({"word": "anew"},)), log_id="second")
    assert (anew.state, anew.sealed, anew.purged) == (("anew",), False, False)
    for decide in (restore, purge):
        with pytest.raises(ConflictError, match="not sealed"):
            log.commit(anew, decide)
    with pytest.raises(InvalidInput, match="only one of"):
        log.commit(log.commit(anew, seal).view, lambda view, passed: Draft(restores=True, seals=True))


def test_a_commit_that_its_projection_cannot_apply_is_not_written() -> None:
    log = new_log()
    view = begin(log)
    with pytest.raises(FormatError, match="cannot be applied"):
        log.commit(view, lambda view, passed: Draft(events=({"unheard": 1},)))
    assert log.refresh(view) is view


def test_sidecars_are_read_back_and_bulk_is_refused_in_the_commit_itself() -> None:
    log = new_log()
    view = begin(log)
    change = log.commit(
        view, lambda view, passed: Draft(events=({"blob": 0}, {"blob": 1}), blobs=(b"x", b"y"))
    )
    assert log.load().state == change.view.state == ("one", "x", "y")
    with pytest.raises(InvalidInput, match="above the limit"):
        log.commit(view, say("x" * COMMIT_SIZE_MAX))


def test_time_increases_when_the_clock_jumps_back() -> None:
    clock = Clock()
    log = new_log(clock=clock)
    view = begin(log)
    clock.now_us -= YEAR_US
    assert log.commit(view, say("two")).view.time_us == view.time_us + 1


def test_a_writer_whose_clock_is_far_ahead_does_not_carry_the_time_away() -> None:
    right, ahead = Clock(), Clock()
    store = MemoryStore(clock_us=lambda: right.now_us)
    view = begin(new_log(store, clock=right))
    ahead.now_us += 10 * YEAR_US
    view = new_log(store, clock=ahead).commit(view, say("two")).view
    view_after = new_log(store, clock=right).commit(view, say("three")).view
    assert view.time_us < view_after.time_us <= right.now_us
    log = new_log(store, clock=right)
    assert [log.version_at_time(view_after.time_us + shift) for shift in (-1, 0, YEAR_US)] == [2, 3, 3]


def test_time_goes_on_by_microseconds_after_the_stores_own_clock_was_ahead() -> None:
    clock = Clock()
    log = new_log(clock=clock)
    begin(log)
    clock.now_us += YEAR_US
    view = log.commit(log.load(), say("two")).view
    clock.now_us -= YEAR_US
    assert log.commit(view, say("three")).view.time_us == view.time_us + 1
