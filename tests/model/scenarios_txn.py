"""Scenarios of several logs: transactions, readers of several logs, time, expiry of logs with intents."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from tests.model import expiry, reading, together
from tests.model.scenarios_log import Setup, append, begun, opened, writer
from tests.model.search import Actor, Scenario
from tests.model.world import new_intents


def transaction(name: str, cid: str, places: Iterable[str], **more: Any) -> Setup:
    views = tuple(opened(place) for place in places)
    requests = tuple(append(cid, place) for place in places)
    return partial(together.together, name, views, requests, **more)


def cutting(places: Iterable[str], **more: Any) -> Setup:
    return partial(reading.cut, tuple(opened(place) for place in places), **more)


def one_transaction(full: bool) -> Scenario:
    actors = (
        Actor("transaction", transaction("t1", "both", "AB", rounds=2)),
        Actor("writer", writer("w1", "one", "B")),
        Actor("reader", partial(reading.reader, "B")),
        Actor("writer 2", writer("w2", "two", "A")),
    )
    return Scenario(
        "transaction", actors[: 4 if full else 3], (begun("A"), begun("B")), faults=2 if full else 1
    )


def conditional(cid: str, places: str, without: str) -> Setup:
    """A transaction that must not follow another commit."""
    views = tuple(opened(place) for place in places)
    requests = tuple(append(cid, place, needs=(("unapplied", without),)) for place in places)
    return partial(together.together, cid, views, requests, rounds=2)


def preconditions(full: bool) -> Scenario:
    actors = (
        Actor("transaction", conditional("both", "AB", "one")),
        Actor("writer", writer("w1", "one", "B")),
        Actor("reader", cutting("AB")),
    )
    return Scenario(
        "transaction with a precondition", actors, (begun("A"), begun("B")), faults=3 if full else 0
    )


def two_transactions(full: bool) -> Scenario:
    actors = (
        Actor("transaction 1", transaction("t1", "ab", "AB", rounds=2)),
        Actor("transaction 2", transaction("t2", "ba", "BA", rounds=2)),
    )
    return Scenario("two transactions", actors, (begun("A"), begun("B")), faults=2 if full else 1)


def three_logs(full: bool) -> Scenario:
    actors = (
        Actor("transaction 1", transaction("t1", "abc", "ABC")),
        Actor("transaction 2", transaction("t2", "cb", "CB")),
        Actor("writer", writer("w1", "one", "B")),
    )
    setup = (begun("A"), begun("B"), begun("C"))
    return Scenario("three logs", actors[: 3 if full else 2], setup, faults=3 if full else 1)


def retrying_a_transaction(full: bool) -> Scenario:
    requests = tuple(append("both", place) for place in "AB")
    again = partial(together.together_again, "t1b", requests, (1, 1), txn_of="both")
    actors = (
        Actor("transaction", transaction("t1", "both", "AB", tries=2, txn_of="both")),
        Actor("transaction again", again, after="transaction", unless="both"),
        Actor("writer", writer("w1", "one", "B")),
    )
    alone = partial(together.together_again, "t1c", requests, (1, 1), txn_of="both")
    setup = (begun("A"), begun("B"))
    faults = 3 if full else 1
    return Scenario("transaction retried", actors, setup, faults, undisturbed=(("both", alone),))


def retrying_a_transaction_meanwhile(full: bool) -> Scenario:
    """A transaction is retried although the first attempt goes on."""
    requests = tuple(append("both", place) for place in "AB")
    actors = (
        Actor("transaction", transaction("t1", "both", "AB", rounds=2)),
        Actor("transaction again", partial(together.together_again, "t1b", requests, (1, 1))),
        Actor("writer", writer("w1", "one", "B")),
    )
    kept_actors, setup = actors[: 3 if full else 2], (begun("A"), begun("B"))
    return Scenario("transaction retried meanwhile", kept_actors, setup, faults=1, overlapping=True)


def read_in_one_round(full: bool) -> Scenario:
    """Several logs are read side by side while transactions over overlapping logs commit."""
    actors = (
        Actor("transaction 1", transaction("t1", "ab", "AB", clock=5)),
        Actor("reader", partial(reading.in_one_round, "ABC")),
        Actor("transaction 2", transaction("t2", "bc", "BC", clock=2)),
        Actor("writer", writer("w1", "one", "C", clock=7)),
    )
    setup = (begun("A"), begun("B"), begun("C"))
    return Scenario("read in one round", actors[: 4 if full else 3], setup, faults=1 if full else 0)


def cuts_by_time(full: bool) -> Scenario:
    """Cuts that are taken in one log after another, by time, under transactions over overlapping logs."""
    actors = (
        Actor("transaction 1", transaction("t1", "ab", "AB", clock=5)),
        Actor("transaction 2", transaction("t2", "bc", "BC", clock=2)),
        Actor("reader of a cut", partial(reading.by_interval, "ABC")),
        Actor("writer", writer("w1", "one", "C", clock=7)),
    )
    kept_actors = actors[: 4 if full else 3]
    return Scenario(
        "cuts by time", kept_actors, (begun("A"), begun("B"), begun("C")), faults=1 if full else 0
    )


def expired_cuts(full: bool) -> Scenario:
    """A reader of several logs jumps over intents by a base."""
    actors = (
        Actor("transaction", transaction("t1", "both", "AB")),
        Actor("cleaner", partial(expiry.expire, "e1", "B", 2)),
        Actor("reader", cutting("AB")),
        Actor("cleaner 2", partial(expiry.expire, "e2", "A", 2)),
    )
    return Scenario(
        "cuts and expiry", actors[: 4 if full else 3], (begun("A"), begun("B")), faults=1 if full else 0
    )


def several_logs_read(full: bool) -> Scenario:
    actors = (
        Actor("transaction", transaction("t1", "both", "AB")),
        Actor("reader", cutting("AB")),
        Actor("writer", writer("w1", "one", "B")),
        Actor("transaction 2", transaction("t2", "two", "AB")),
    )
    return Scenario("reader of several logs", actors[: 4 if full else 3], (begun("A"), begun("B")))


def later_logs(full: bool) -> Scenario:
    """Two transactions one after another over overlapping logs: the second must not be seen without the first."""
    actors = (
        Actor("transaction 1", transaction("t1", "ab", "AB")),
        Actor("transaction 2", transaction("t2", "bc", "BC"), after="transaction 1"),
        Actor("reader", cutting("ABC")),
    )
    return Scenario(
        "reader of three logs", actors, (begun("A"), begun("B"), begun("C")), faults=3 if full else 0
    )


def skewed(full: bool) -> Scenario:
    """Each transaction reads the log that the other writes."""
    requests = (append("skew-1", "A"), append("skew-2", "B"))
    views = (opened("A"), opened("B"))
    actors = (
        Actor("transaction 1", partial(together.together, "t1", views[:1], requests[:1], views[1:])),
        Actor("transaction 2", partial(together.together, "t2", views[1:], requests[1:], views[:1])),
        Actor("writer", writer("w1", "one", "B")),
    )
    return Scenario(
        "write skew", actors[: 3 if full else 2], (begun("A"), begun("B")), faults=3 if full else 1
    )


def times(full: bool) -> Scenario:
    """Clocks that are far apart; readers of what was at a time."""
    actors = (
        Actor("transaction", transaction("t1", "both", "AB", clock=2)),
        Actor("writer", writer("w1", "one", "B", clock=6)),
        Actor("writer 2", writer("w2", "two", "A", clock=3)),
        Actor("reader at 4", partial(reading.at_time, "AB", 4)),
        Actor("reader of a cut", partial(reading.by_interval, "AB")),
    )
    return Scenario("times", actors if full else (*actors[:3], *actors[4:]), (begun("A"), begun("B")))


def expiry_and_intents(full: bool) -> Scenario:
    """Expiry of a log that has an intent at its head or below it."""
    actors = (
        Actor("transaction", transaction("t1", "both", "AB")),
        Actor("cleaner", partial(expiry.expire, "e1", "B", 2)),
        Actor("writer", writer("w1", "one", "B")),
        Actor("snapshotter", partial(expiry.snapshot, "s1", "B")),
        Actor("reader", partial(reading.reader, "B")),
    )
    return Scenario(
        "expiry and intents",
        actors if full else actors[:4],
        (begun("A"), begun("B")),
        faults=1 if full else 0,
    )


def retrying_an_expired_transaction(full: bool) -> Scenario:
    """The first attempt was aborted, or was not, and expiry has been there before it is retried."""
    requests = tuple(append("both", place) for place in "AB")
    actors = (
        Actor("transaction", transaction("t1", "both", "AB", tries=2)),
        Actor(
            "transaction again",
            partial(together.together_again, "t1b", requests, (1, 1)),
            after="transaction",
            unless="both",
        ),
        Actor("cleaner", partial(expiry.expire, "e1", "A", 2)),
        Actor("impatient writer", writer("w1", "one", "A")),
    )
    setup = (begun("A"), begun("B"))
    return Scenario("transaction retried, expired", actors, setup, faults=1 if full else 0)


def vacuum_and_transaction(full: bool) -> Scenario:
    """A transaction adds a file to one of its logs while that is vacuumed."""
    actors = (
        Actor("transaction", partial(expiry.write_files_together, "t1", opened("A"), opened("B"), "both")),
        Actor("vacuum", partial(expiry.vacuum, "v1", "A")),
        Actor("cleaner", partial(expiry.expire, "e1", "A", 2)),
        Actor("writer", writer("w1", "one", "B")),
    )
    return Scenario("vacuum and transaction", actors[: 4 if full else 3], (begun("A"), begun("B")), faults=1)


def deleted_decisions(full: bool) -> Scenario:
    actors = (
        Actor("transaction", transaction("t1", "both", "AB")),
        Actor("impatient writer", writer("w1", "one", "A")),
        Actor(
            "cleaner", partial(expiry.cleans_decisions, together.key_of(new_intents("t1", 0, ("A", "B"))[0]))
        ),
    )
    return Scenario("decisions", actors, (begun("A"), begun("B")), faults=3 if full else 0)
