"""Features by name: what a client has to know to read a log, to write to it, and to read a stored state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from tests.unit.log.projections import Words, WordsProjection, begin, grown, new_log, say
from tests.unit.log.transactions import Stopping, log_in, logs_in, stopped, together

from lakelog.log import Commit, Draft, Json, Log, MemoryStore, NoFeatures, StateDump, UnsupportedFormat
from lakelog.log.checks.findings import Findings
from lakelog.log.checks.repair import repair
from lakelog.log.checks.verify import verify
from lakelog.log.expiry import bases, expire
from lakelog.log.format import decode_root
from lakelog.log.leftovers import unreferenced

KNOWN = ("colours", "rules")


def using(word: str, *needs: str, of_writers: Sequence[str] = ()) -> Callable[..., Draft]:
    event = {"word": word, "needs": list(needs), "needs_of_writers": list(of_writers)}
    return lambda view, passed: Draft(events=(event,))


def commit_at(log: Log[Words], version: int) -> Commit:
    entry = log.entry_at(version)
    assert isinstance(entry, Commit)
    return entry


def life(store: MemoryStore, every: int = 0) -> Log[Words]:
    """Return a log that uses `colours` for readers from version 3 on, and `rules` for writers from version 5 on."""
    log = new_log(store, known=KNOWN, every=every)
    view = log.commit(begin(log), say("two")).view
    view = log.commit(view, using("three", "colours")).view
    view = log.commit(view, using("four", "colours")).view
    view = log.commit(view, using("five", of_writers=["rules"])).view
    log.commit(view, using("six", "colours", of_writers=["rules"]))
    return log


def test_the_commit_that_first_uses_a_feature_names_it_and_no_other() -> None:
    log = life(MemoryStore())
    features = [(commit_at(log, v).features, commit_at(log, v).writer_features) for v in range(1, 7)]
    assert features == [((), ()), ((), ()), (("colours",), ()), ((), ()), ((), ("rules",)), ((), ())]
    view = log.load()
    assert (view.features, view.writer_features) == (("colours",), ("rules",))
    assert (log.view_at(4).features, log.view_at(4).writer_features) == (("colours",), ())


@pytest.mark.parametrize("every", [0, 1, 2])
def test_reads_stop_at_the_version_that_uses_what_readers_do_not_know(every: int) -> None:
    store = MemoryStore()
    life(store, every)
    log = new_log(store, known=("rules",))
    assert [log.view_at(version).state for version in (1, 2)] == [("one",), ("one", "two")]
    for read in (log.load, lambda: log.view_at(3), lambda: log.view_at(6), lambda: list(log.commits())):
        with pytest.raises(
            UnsupportedFormat, match="feature `colours`, which .* does not know: upgrade lakelog to read it"
        ):
            read()


@pytest.mark.parametrize("every", [0, 1, 2])
def test_who_lacks_a_feature_of_writers_reads_everything_and_writes_nothing(every: int) -> None:
    store = MemoryStore()
    other_log = life(store, every)
    log = new_log(store, known=("colours",), every=1)
    view = log.load()
    assert view.state == other_log.load().state
    assert [log.view_at(version).state for version in range(1, 7)] == [
        other_log.view_at(v).state for v in range(1, 7)
    ]
    sizes_before = dict(store.list_sizes(""))
    for write in (
        lambda: log.commit(view, say("x")),
        lambda: log.commit(log.view_at(4), say("x")),  # it meets the feature on its way to the head
        lambda: log.commit(view, say("x"), shared=True),
        lambda: log.commit(view, lambda view, passed: Draft(seals=True)),
        lambda: log.commit(view, lambda view, passed: Draft(events=({"blob": 0},), blobs=(b"x",))),
        lambda: log.snapshot(view),
        lambda: expire(log, 2),
        lambda: unreferenced(log, view, None),
    ):
        with pytest.raises(
            UnsupportedFormat, match=r"`rules`, which this lakelog .*upgrade lakelog to write to it"
        ):
            write()
    assert dict(store.list_sizes("")) == sizes_before


def test_a_transaction_with_a_log_that_uses_an_unknown_feature_has_no_effect() -> None:
    store = MemoryStore()
    a, b = logs_in(store, "a", "b")
    log_in(store, "b", known=KNOWN).commit(b.load(), using("two", of_writers=["rules"]))
    with pytest.raises(UnsupportedFormat, match="`rules`"):
        together([a, b], "both")
    assert a.load().state == ("one",) and a.commit(a.load(), say("on")).view.state == ("one", "on")
    assert b.load().state == ("one", "two")


def test_a_feature_that_a_lost_race_brings_stops_the_write() -> None:
    store = MemoryStore()
    log, older = new_log(store, known=KNOWN), new_log(store)
    view = begin(log)
    log.commit(view, using("two", of_writers=["rules"]))
    with pytest.raises(UnsupportedFormat, match="`rules`"):
        older.commit(view, say("x"))
    assert log.load().version == 2
    log, older = new_log(store := MemoryStore(), known=KNOWN), new_log(store)
    view = begin(log)
    log.commit(view, using("two", "colours"))
    with pytest.raises(UnsupportedFormat, match="`colours`"):
        older.commit(view, say("x"))
    assert log.load().version == 2


def test_an_expired_log_names_what_its_tombstones_used() -> None:
    store = MemoryStore()
    log = life(store)
    expire(log, 5)
    [(base, _)] = bases(log)
    assert (base.root.features, base.root.writer_features) == (("colours",), ("rules",))
    assert new_log(store, known=("colours",)).load().state == log.load().state
    with pytest.raises(UnsupportedFormat, match="`colours`"):
        new_log(store, known=("rules",)).load()


def test_another_log_at_the_same_place_begins_without_features() -> None:
    store = MemoryStore()
    log = life(store)
    log.commit(log.load(), lambda view, passed: Draft(seals=True))
    view = log.create(Draft(events=({"word": "anew"},)), log_id="another")
    assert (view.state, view.features, view.writer_features) == (("anew",), (), ())
    log.commit(view, using("again", "colours"))
    assert commit_at(log, 9).features == ("colours",)


def test_a_log_that_is_restored_has_its_features() -> None:
    log = life(MemoryStore())
    view = log.commit(log.load(), lambda view, passed: Draft(seals=True)).view
    view = log.commit(view, lambda view, passed: Draft(restores=True)).view
    assert (view.features, view.writer_features) == (("colours",), ("rules",))


def test_what_only_an_aborted_transaction_used_is_not_named() -> None:
    store = Stopping()
    a, b = (log_in(store, name, known=KNOWN) for name in "ab")
    for log in (a, b):
        begin(log)
    stopped(store, [a, b], "_txn", decides=[using("lost", "colours", of_writers=["rules"]), say("lost")])
    view = a.commit(a.load(), say("next")).view
    assert commit_at(a, 2).features == ("colours",) and view.state == ("one", "next")
    assert (view.features, view.writer_features) == ((), ())
    a.commit(view, using("again", "colours"))
    assert commit_at(a, 4).features == ("colours",)


class PackedWords(WordsProjection):
    """Its states have a form that not every client knows."""

    def dump(self, state: Words, version: int, for_base: bool = False) -> StateDump:
        return replace(super().dump(state, version, for_base), features=("packed",))


def test_a_feature_of_a_state_is_named_with_the_state_alone() -> None:
    store = MemoryStore()
    log = Log(store, "t", PackedWords(["packed"]), options=new_log(every=2).options)
    view = grown(log, 6)
    assert view.features == () and log.load().features == ()
    data = store.get(log.keys.latest)
    assert data is not None and decode_root(data, "here", ["packed"]).state_features == ("packed",)
    # A client that does not know it reads the commits instead.
    other_log = new_log(store)
    assert other_log.load().state == view.state and other_log.view_at(5).state == view.state[:5]
    expire(log, 4)
    with pytest.raises(UnsupportedFormat, match="`packed`.*to read it"):
        other_log.load()


class ForgetfulWords(NoFeatures, WordsProjection):
    """A client that uses features and names none."""


class WordsJudge:
    """Judges words, which need nothing else."""

    def manifests(self, state: Json) -> Mapping[str, str]:
        return {}

    def difference(self, replayed: Words, stored: Words) -> str | None:
        return None if replayed == stored else "other words"

    def passed(self, commit: Commit, blobs: Sequence[bytes] | None) -> None:
        return

    def expired(self) -> None:
        return

    def begins(self, state: Words) -> None:
        return

    def reads(self, state: Words, fetch: Callable[[Sequence[str]], list[bytes]]) -> str:
        return " ".join(state)


def test_a_check_finds_a_use_that_no_commit_names() -> None:
    store = MemoryStore()
    checked_findings = Findings()
    verify(life(store), WordsJudge(), checked_findings)
    assert not checked_findings.found
    store = MemoryStore()
    log: Log[Words] = Log(store, "t", ForgetfulWords(), options=new_log().options)
    view = log.commit(begin(log), using("two", "colours")).view
    log.commit(view, using("three", "colours", of_writers=["rules"]))
    verify(new_log(store, known=KNOWN), WordsJudge(), checked_findings)
    assert [
        (finding.severity, finding.kind, finding.where[-6:], finding.what.split(", and")[0])
        for finding in checked_findings.found
    ] == [
        ("damage", "feature-unnamed", "2.json", "uses colours"),
        ("damage", "feature-unnamed", "3.json", "uses colours, rules"),
    ]


def test_a_repair_writes_nothing_to_a_log_with_an_unknown_feature() -> None:
    store = MemoryStore()
    life(store, every=2)
    log = new_log(store, known=("colours",))
    store.put(log.keys.latest, b"broken")
    sizes_before = dict(store.list_sizes(""))
    verified_log = verify(log, WordsJudge(), Findings())
    with pytest.raises(UnsupportedFormat, match="`rules`"):
        repair(log, verified_log, WordsJudge())
    assert dict(store.list_sizes("")) == sizes_before
