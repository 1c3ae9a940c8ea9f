"""Reading: cold and warm, older versions, history, and what broken objects do."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.log.projections import Clock, Words, WordsProjection, begin, grown, new_log, say

from lakelog.log import Draft, FormatError, Log, MemoryStore, NotFound, UnsupportedFormat, refresh_many
from lakelog.log.expiry import expire
from lakelog.log.format import decode_entry, encode, hash_of


def altered(store: MemoryStore, key: str, old: bytes, new: bytes) -> None:
    """Change an object and give it the right hash again."""
    data = store.get(key)
    assert data is not None and old in data
    plain = data[:-75].replace(old, new) + b"}"
    store.put(key, plain[:-1] + b',"hash":"' + hash_of(plain).encode() + b'"}')


def test_a_cold_reader_with_a_hint_sees_what_a_replay_sees() -> None:
    for versions in (1, 3, 4, 5, 26, 30, 100):
        store = MemoryStore()
        view = grown(new_log(store, every=4), versions)
        with_hint = new_log(store).load()
        store.delete([new_log(store).keys.latest])
        assert with_hint == new_log(store).load() == view


@pytest.mark.parametrize("damage", [b"", b"{}", b"null", b"\xff\xfe", None])
def test_a_broken_hint_costs_time_only(damage: bytes | None) -> None:
    store = MemoryStore()
    view = grown(new_log(store, every=4), 9)
    key = new_log(store).keys.latest
    store.put(key, (store.get(key) or b"")[:-9] if damage is None else damage)
    assert new_log(store).load() == view


def test_a_hint_of_a_commit_that_lost_or_of_another_log_is_not_believed() -> None:
    store, other_store = MemoryStore(), MemoryStore()
    view = grown(new_log(store, every=4), 9)
    new = new_log(other_store, every=4)
    stranger = new.create(Draft(events=({"word": "else"},)), log_id="else")
    while stranger.version < 8:
        stranger = new.commit(stranger, say("else")).view
    store.put(new.keys.latest, other_store.get(new.keys.latest) or b"")
    assert new_log(store).load() == view


def test_every_version_can_be_travelled_to() -> None:
    store = MemoryStore()
    log = new_log(store, every=10)
    words = grown(log, 70).state
    for version in (1, 2, 23, 24, 25, 30, 31, 69, 70):
        view = new_log(store).view_at(version)
        assert (view.version, view.state) == (version, words[:version])
    for version in (0, -1, 71, 1000):
        with pytest.raises(NotFound, match=f"no version {version}"):
            log.view_at(version)


def test_the_newest_version_at_a_time_is_found() -> None:
    clock = Clock()
    log = new_log(clock=clock)
    view = grown(log, 50)
    times = [commit.time_us for commit in log.commits()]
    for version in (1, 2, 7, 25, 49, 50):
        assert log.version_at_time(times[version - 1]) == version
        assert log.version_at_time(times[version - 1] + 1) == version
    assert log.version_at_time(view.time_us * 2) == 50
    with pytest.raises(NotFound, match=f"the first is of {times[0]}"):
        log.version_at_time(times[0] - 1)


def test_history_is_read_both_ways_in_any_range() -> None:
    log = new_log()
    grown(log, 150)
    assert [commit.version for commit in log.commits()] == list(range(1, 151))
    assert [commit.version for commit in log.commits(newest_first=True)] == list(range(150, 0, -1))
    assert [commit.version for commit in log.commits(60, 70)] == list(range(60, 71))
    assert [commit.version for commit in log.commits(60, 700, newest_first=True)] == list(range(150, 59, -1))
    assert list(log.commits(151)) == []


def test_after_expiry_the_log_begins_at_its_base() -> None:
    store = MemoryStore()
    log = new_log(store, every=4)
    head = grown(log, 12)
    warm = log.view_at(3)
    assert expire(log, 7) == 7
    assert log.load().is_same(log.refresh(warm)) and log.load().state == head.state
    assert log.view_at(7).state == head.state[:7]
    assert [commit.version for commit in log.commits()] == list(range(8, 13))
    assert [commit.version for commit in log.commits(newest_first=True)] == list(range(12, 7, -1))
    with pytest.raises(NotFound, match="version 6 .* has expired: versions from 7 to 12 can be read"):
        log.view_at(6)
    store.delete([log.keys.latest, *store.list_after(log.keys.snapshots)])
    assert log.load().state == head.state
    assert expire(log, 3) == 7 and expire(log, 11) == 11
    assert new_log(store).load().state == head.state


def test_many_logs_are_refreshed_in_one_round() -> None:
    store = MemoryStore()
    logs = [Log(store, f"t{i}", new_log().projection) for i in range(3)]
    views = [log.create(Draft(events=({"word": str(i)},)), log_id=str(i)) for i, log in enumerate(logs)]
    logs[1].commit(logs[1].commit(views[1], say("a")).view, say("b"))
    refreshed_views = refresh_many(list(zip(logs, views, strict=True)))
    assert refreshed_views[0] is views[0] and refreshed_views[2] is views[2]
    assert refreshed_views[1].state == ("1", "a", "b")


def key_of(log: Log[Words], what: str) -> str:
    return {"commit": log.keys.commit(3), "sidecar": next(iter(log.store.list_after("t/_log/sidecars/")))}[
        what
    ]


@pytest.mark.parametrize("what", ["commit", "sidecar"])
@pytest.mark.parametrize("damage", ["truncated", "altered", "missing"])
def test_a_damaged_object_is_named_with_the_next_step(what: str, damage: str) -> None:
    store = MemoryStore()
    log = new_log(store)
    view = begin(log)
    for word in ("two", "three", "four"):
        draft = Draft(events=({"blob": 0},), blobs=(word.encode(),)) if word == "two" else None
        view = log.commit(view, lambda view, passed, d=draft, w=word: d or Draft(events=({"word": w},))).view  # type: ignore[misc]
    key = key_of(log, what)
    data = store.get(key) or b""
    if damage == "missing":
        store.delete([key])
    else:
        store.put(key, data[:-2] if damage == "truncated" else data.replace(b"t", b"T"))
    named_text = (
        "00000000000000000002" if what == "sidecar" and damage == "missing" else key.rpartition("/")[2]
    )
    with pytest.raises(FormatError, match="restore") as error:
        log.load()
    assert named_text in str(error.value) or "version 2" in str(error.value)


def test_a_missing_head_is_noticed_where_the_hint_knows_of_it() -> None:
    store = MemoryStore()
    log = new_log(store, every=4)
    grown(log, 4)
    store.delete([log.keys.commit(4)])
    with pytest.raises(
        FormatError, match=r"00000000000000000004.json is missing although .*latest.json names it"
    ):
        log.load()


def test_an_object_of_another_log_or_version_is_refused() -> None:
    store = MemoryStore()
    log = new_log(store)
    grown(log, 3)
    good = store.get(log.keys.commit(3)) or b""
    altered(store, log.keys.commit(3), b'"log_id":"log"', b'"log_id":"gol"')
    with pytest.raises(FormatError, match="belongs to log gol, not to log"):
        log.load()
    store.put(log.keys.commit(3), store.get(log.keys.commit(2)) or b"")
    with pytest.raises(FormatError, match="holds version 2"):
        log.load()
    store.put(log.keys.commit(3), good)
    altered(store, log.keys.commit(3), b'"prev":"', b'"prev":"0')
    with pytest.raises(FormatError, match=r"Expected `str` of the form that it has - at `\$.prev`"):
        log.load()
    store.put(log.keys.commit(3), good)
    altered(store, log.keys.commit(3), decode_entry(good, "").prev.encode(), b"0" * 64)
    with pytest.raises(FormatError, match="continues another version 2"):
        log.load()


def test_a_format_from_the_future_is_refused_by_its_number() -> None:
    store = MemoryStore()
    log = new_log(store)
    grown(log, 3)
    altered(store, log.keys.commit(3), b'"format":1', b'"format":2,"new":[]')
    with pytest.raises(
        UnsupportedFormat, match=r"0003\.json has log format 2, and .* reads up to 1; upgrade"
    ):
        log.load()


def test_an_unknown_member_is_refused() -> None:
    store = MemoryStore()
    log = new_log(store)
    grown(log, 2)
    altered(store, log.keys.commit(2), b'"events":', b'"surprise":1,"events":')
    with pytest.raises(FormatError, match="surprise"):
        log.load()


def test_a_state_of_a_newer_client_is_refused_by_the_name_of_its_snapshot() -> None:
    class OlderProjection(WordsProjection):
        def load(self, root: list[str]) -> Words:
            raise UnsupportedFormat("its words have a new form: upgrade lakelog to read it")

    store = MemoryStore()
    grown(new_log(store, every=4), 5)
    older = Log(store, "t", OlderProjection())
    with pytest.raises(UnsupportedFormat, match=r"latest\.json: its words have a new form: upgrade"):
        older.load()


def test_bytes_and_commits_are_the_same_thing_twice() -> None:
    store = MemoryStore()
    log = new_log(store)
    grown(log, 2)
    data = store.get(log.keys.commit(2)) or b""
    entry = decode_entry(data, "here")
    assert encode(msgspec.structs.replace(entry, hash="")) == data
