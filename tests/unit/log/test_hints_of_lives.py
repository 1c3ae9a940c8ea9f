"""Cold loads by any hint that a log ever had show what a replay of all its commits shows: through transactions that
were committed, aborted or left undecided, seals, restorations, purges, reopenings, and expiry."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.log.projections import START_US, Clock, Words, say
from tests.unit.log.transactions import Crash, Stopping, log_in, logs_in, together

from lakelog.log import Draft, LakelogError, Log, LogView, MemoryStore
from lakelog.log.expiry import expire
from lakelog.log.snapshots import write_hint


def hint_now(store: Stopping) -> bytes:
    """Return the hint that is due now; another client, whose put of it is late, has it."""
    log = log_in(store, "a")
    write_hint(log.replay, log.replay.load_without_hint())
    data = store.get(log.keys.latest) or b""
    store.delete([log.keys.latest])
    return data


def change(chance: random.Random, store: Stopping, logs: list[Log[Words]], turn: int) -> None:
    log = logs[0]
    view = log.refresh_settled(log.load()) if chance.random() < 0.7 else log.load()
    if view.sealed:
        drafts = [Draft(restores=True), Draft(purges=True), None]
        draft = None if view.purged else chance.choice(drafts)
        if draft is None:
            log.create(Draft(events=({"word": "one"},)), log_id=f"again{turn}")
        else:
            log.commit(view, lambda view, passed: draft)
        return
    dying_pairs: dict[str, tuple[str, bool]] = {
        "before its decision": ("_txn/", False),
        "after its decision": ("_txn/", True),
        "between its intents": ("b/_log/", False),
    }
    plain: dict[str, Callable[[], object]] = {
        "word": lambda: log.commit(view, say(f"w{turn}")),
        "sidecar": lambda: log.commit(
            view, lambda view, passed: Draft(events=({"blob": 0},), blobs=(b"bulk%d" % turn,))
        ),
        "seal": lambda: log.commit(view, lambda view, passed: Draft(seals=True)),
        "together": lambda: together(logs, f"t{turn}"),
    }
    kind = chance.choice([*dying_pairs, *plain])
    if kind in plain:
        plain[kind]()
        return
    store.at, store.after = dying_pairs[kind]
    try:
        together(logs, f"d{turn}")
    except Crash:
        pass
    finally:
        store.at = ""


def copy_of(store: MemoryStore) -> MemoryStore:
    copy = MemoryStore(clock_us=lambda: START_US)
    for key in store.list_after(""):
        copy.put(key, store.get(key) or b"")
    return copy


def loaded_view(store: MemoryStore) -> LogView[Words]:
    return replace(log_in(store, "a").load(), base=0)


@pytest.mark.parametrize("seed", range(40))
def test_any_hint_of_a_life_leads_to_the_head(seed: int) -> None:
    chance, clock = random.Random(seed), Clock()
    store, hints = Stopping(clock), []
    logs = logs_in(store, "a", "b", clock=clock)
    for turn in range(chance.randrange(1, 40)):
        hints.append(hint_now(store))
        try:
            change(chance, store, logs, turn)
        except LakelogError:
            continue  # refused: its turn is over
    hints.append(hint_now(store))
    truth = log_in(store, "a").replay.load_without_hint()
    for expired_number in {0, chance.randrange(truth.version + 1), truth.version}:
        copy = copy_of(store)
        if expired_number:
            expire(log_in(copy, "a"), expired_number)
        assert loaded_view(copy) == truth
        for hint in hints:
            copy.put(logs[0].keys.latest, hint)
            assert loaded_view(copy) == truth
