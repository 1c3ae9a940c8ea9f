"""A try of a commit that fails, while an earlier try may be in the log."""

from __future__ import annotations

import os

import pytest
from tests.unit.log.projections import Words, begin, new_log, say

from lakelog.log import (
    CommitUnknown,
    ConflictError,
    Draft,
    Log,
    LogView,
    MemoryStore,
    PermissionDenied,
    StorageError,
)
from lakelog.log.ids import OWN_IDS_MAX, own_id, trying
from lakelog.log.keys import LogKeys

KEYS = LogKeys("t")


class DownStore(MemoryStore):
    """A store that is down for one version: PUTs certainly have no effect, and reads fail."""

    down_version = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if key == KEYS.commit(self.down_version):
            raise StorageError("down", location=key, without_effect=True)
        return super().put_if_absent(key, data)

    def get(self, key: str) -> bytes | None:
        if key == KEYS.commit(self.down_version):
            raise StorageError("down", location=key)
        return super().get(key)


def down_log() -> tuple[DownStore, Log[Words], LogView[Words]]:
    store = DownStore()
    log = new_log(store)
    return store, log, begin(log)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_retry_whose_put_and_read_fail_is_unknown(is_there: bool, shared: bool) -> None:
    """The failed PUT had no effect, but the PUT of an earlier try may have had one."""
    store, log, view = down_log()
    if is_there:
        new_log(store).commit(view, say("mine"), commit_id="mine")
    store.down_version = 2
    with pytest.raises(CommitUnknown, match="down") as error:
        log.commit(view, say("mine"), commit_id="mine", shared=shared)
    assert error.value.commit_id == "mine" and error.value.location == log.location
    store.down_version = 0
    assert log.commit(view, say("mine"), commit_id="mine", shared=shared).version == 2


@pytest.mark.parametrize("shared", [False, True])
def test_a_first_try_with_a_failing_store_is_a_storage_error(shared: bool) -> None:
    store, log, view = down_log()
    store.down_version = 2
    with pytest.raises(StorageError, match="down"):
        log.commit(view, say("mine"), shared=shared)
    commit_id = own_id(log.options.new_id())
    with pytest.raises(StorageError, match="down"):
        log.commit(view, say("mine"), commit_id=commit_id, shared=shared)
    # Another process may have tried it since.
    with pytest.raises(CommitUnknown, match="in an earlier try"):
        log.commit(view, say("mine"), commit_id=commit_id, shared=shared)


def test_a_try_after_an_unknown_one_is_unknown() -> None:
    store, log, view = down_log()
    commit_id = own_id(log.options.new_id())

    def is_lost(key: str, data: bytes) -> bool:
        raise StorageError("timeout", location=key)

    store.put_if_absent = is_lost  # type: ignore[method-assign]
    with pytest.raises(CommitUnknown, match="timeout"):
        log.commit(view, say("mine"), commit_id=commit_id)
    del store.put_if_absent
    store.down_version = 2
    with pytest.raises(CommitUnknown, match="in an earlier try"):
        log.commit(view, say("mine"), commit_id=commit_id)


def test_a_refusal_of_a_retry_stays_what_it_is() -> None:
    _, log, view = down_log()

    def refused_draft(view: LogView[Words], passed: object) -> Draft:
        raise ConflictError("no")

    with pytest.raises(ConflictError, match="no"):
        log.commit(view, refused_draft, commit_id="mine")


@pytest.mark.parametrize("is_retry", [False, True])
def test_a_creation_that_is_retried_is_unknown(is_retry: bool) -> None:
    store = DownStore()
    log = new_log(store)
    if is_retry:
        new_log(store).create(Draft(), log_id="log", commit_id="mine")
    store.down_version = 1
    with pytest.raises(CommitUnknown if is_retry else StorageError, match="down"):
        log.create(Draft(), log_id="log", commit_id="mine" if is_retry else None)
    store.down_version = 0
    if is_retry:
        assert log.create(Draft(), log_id="log", commit_id="mine").version == 1


def test_an_id_is_tried_once_in_each_log() -> None:
    failure = StorageError("down", location="here")
    own_id("mine")
    for location in ("a", "b"):
        with trying("mine", location):
            pass
    for location, expected in (("a", CommitUnknown), ("b", CommitUnknown), ("c", StorageError)):
        with pytest.raises(expected), trying("mine", location):
            raise failure


def test_an_interrupted_try_counts() -> None:
    own_id("mine")
    with pytest.raises(KeyboardInterrupt), trying("mine", "a"):
        raise KeyboardInterrupt
    with pytest.raises(CommitUnknown), trying("mine", "a"):
        raise PermissionDenied("403", location="a")


def test_old_ids_are_forgotten_which_only_makes_errors_careful() -> None:
    own_id("old")
    for i in range(OWN_IDS_MAX):
        own_id(f"id-{i}")
    with pytest.raises(CommitUnknown), trying("old", "a"):
        raise StorageError("down", location="a")
    with pytest.raises(StorageError), trying("id-0", "a"):
        raise StorageError("down", location="a")


def test_another_process_does_not_believe_that_its_try_is_the_first() -> None:
    own_id("mine")
    child = os.fork()
    if child == 0:
        try:
            with trying("mine", "a"):
                raise StorageError("down", location="a")
        except CommitUnknown:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
