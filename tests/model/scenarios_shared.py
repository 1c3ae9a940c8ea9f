"""Scenarios in which changes share a version: threads of a process, proposers and combiners."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.model import expiry, sharing, together, writing
from tests.model.proposals import BROKEN
from tests.model.scenarios_log import Setup, append, begun, opened, put, writer
from tests.model.search import Actor, Scenario
from tests.model.world import Event, Request, View

FILE: Event = ("add", "f", 0)
WITH_FILE = (begun("A", FILE), partial(put, ("file", "A", "f", 0), "data"))


def removal(cid: str, **more: Any) -> Request:
    """A change that is refused if the file f is gone."""
    return Request(cid, "A", "A", (("applied", cid), ("remove", "f", 0)), **more)


def addition(cid: str, **more: Any) -> Request:
    return Request(cid, "A", "A", (("applied", cid), ("add", cid, 1)), write=1, **more)


def group(*requests: Request, view: View | None = None) -> Setup:
    return partial(sharing.group, "g", view or opened("A", FILE), requests)


def proposer(name: str, request: Request, width: int, view: View | None = None, **more: bool) -> Setup:
    return partial(sharing.propose, name, view or opened("A"), request, width, **more)


def combiner(name: str, view: View | None = None, rounds: int = 1, **more: Any) -> Setup:
    return partial(sharing.combine, name, view or opened("A"), rounds, **more)


def threads(full: bool) -> Scenario:
    """Two of the threads remove one file, and another process may remove it first."""
    actors = (
        Actor("threads", group(removal("one", needs=(("unapplied", "three"),)), removal("two"))),
        Actor("writer", partial(writing.commit, "w3", opened("A", FILE), append("three"))),
        Actor("writer 2", partial(writing.commit, "w4", opened("A", FILE), removal("four"))),
    )
    return Scenario("threads", actors[: 3 if full else 2], WITH_FILE, faults=2 if full else 1)


def threads_again(full: bool) -> Scenario:
    """The process dies, and one of its changes is retried, perhaps once the version has expired."""
    actors = (
        Actor("threads", group(append("one"), append("two"), view=opened("A"))),
        Actor(
            "thread 2 again", partial(writing.retry, "w2", append("two"), 1), after="threads", unless="two"
        ),
        Actor("cleaner", partial(expiry.expire, "e1", "A", 2)),
        Actor("writer", writer("w3", "three")),
    )
    return Scenario("threads again", actors[: 4 if full else 3], (begun("A"),), faults=2 if full else 1)


def threads_and_vacuum(full: bool) -> Scenario:
    """One thread adds a file that another one removes."""
    removed_request = Request(
        "two", "A", "A", (("applied", "two"), ("remove", "one", 1)), needs=(("after", "one"),)
    )
    actors = (
        Actor("threads", group(addition("one"), removed_request)),
        Actor("vacuum", partial(expiry.vacuum, "v1", "A")),
        Actor("vacuum 2", partial(expiry.vacuum, "v2", "A")),
    )
    setup = (*WITH_FILE, partial(put, ("file", "A", "one", 1), "data"))
    return Scenario("threads and vacuum", actors[: 3 if full else 2], setup, faults=1 if full else 0)


def proposing(full: bool) -> Scenario:
    """Two combiners have one proposal, beside a writer and a proposal that cannot be read."""
    actors = (
        Actor("proposer", proposer("p1", append("one"), 2, impatient=True)),
        Actor("combiner 1", combiner("k1", tidies=True)),
        Actor("combiner 2", combiner("k2")),
        Actor("writer", writer("w3", "three")),
    )
    setup = (begun("A"), partial(put, ("inbox", "A", 1, "bad"), BROKEN))
    return Scenario("propose", actors[: 4 if full else 3], setup, faults=1)


def racing(full: bool) -> Scenario:
    """Writers try a put first, and propose even if they do not know what became of it."""
    actors = (
        Actor("writer 1", partial(sharing.race_and_propose, "w1", opened("A"), append("one"), 3)),
        Actor(
            "writer 2",
            partial(sharing.race_and_propose, "w2", opened("A"), append("two"), 3),
            like="writer 1",
        ),
        Actor("combiner 1", combiner("k1", rounds=2, tidies=full)),
        Actor("combiner 2", combiner("k2")),
    )
    return Scenario("race and propose", actors[: 4 if full else 3], (begun("A"),), faults=1)


def proposing_two(full: bool) -> Scenario:
    """Of two proposals one is refused, and both are in one version, or in two."""
    view = opened("A", FILE)
    actors = (
        Actor("proposer 1", proposer("p1", removal("one"), 2, view)),
        Actor("proposer 2", proposer("p2", removal("two"), 2, view)),
        Actor("combiner 1", combiner("k1", view, rounds=2 if full else 1)),
        Actor("combiner 2", combiner("k2", view), like="combiner 1"),
    )
    return Scenario("two proposals", actors[: 4 if full else 3], WITH_FILE, faults=2 if full else 1)


def proposing_cold(full: bool) -> Scenario:
    """A combiner that knows nothing of the past meets a proposal that was applied, or a copy of it."""
    source, target = ("inbox", "A", 1, "one"), ("inbox", "A", 2, "one")
    actors = (
        Actor("proposer", proposer("p1", append("one"), 3, impatient=full)),
        Actor("combiner 1", combiner("k1")),
        Actor("combiner 2", partial(sharing.combine_cold, "k2", "A")),
        Actor("copier", partial(sharing.copier, source, target)),
        Actor("writer", writer("w3", "three")),
    )
    return Scenario("cold combiners", actors[: 5 if full else 4], (begun("A"),), faults=1 if full else 0)


def proposing_late(full: bool) -> Scenario:
    """A proposal lands late, or twice, when its window is over and its proposer has gone on or given up."""
    actors = (
        Actor("proposer", proposer("p1", append("one"), 1, again=full)),
        Actor("writer", writer("w3", "three")),
        Actor("combiner 1", combiner("k1", tidies=True)),
        Actor("combiner 2", partial(sharing.combine_cold, "k2", "A")),
    )
    kinds = frozenset({"lost", "late", "double"})
    return Scenario("late proposals", actors, (begun("A"),), faults=2 if full else 1, kinds=kinds)


def proposing_again(full: bool) -> Scenario:
    """A proposer dies, and another process proposes the same change."""
    actors = (
        Actor("proposer", proposer("p1", append("one"), 3)),
        Actor(
            "proposer again",
            partial(sharing.propose_again, "p2", append("one"), 1, 3),
            after="proposer",
            unless="one",
        ),
        Actor("writer", writer("w3", "three")),
        Actor("combiner 1", combiner("k1", rounds=2)),
        Actor("combiner 2", partial(sharing.combine_cold, "k2", "A")),
    )
    return Scenario("proposed again", actors, (begun("A"),), faults=1 if full else 0)


def toggling_actors(*others: Actor) -> tuple[Actor, ...]:
    """A client makes the change impossible, and then possible again."""
    removed_request = Request("away", "A", "A", (("remove", "f", 0),))
    back = Request("back", "A", "A", (FILE,))
    return (
        Actor("toggler", partial(sharing.in_turn, "w3", opened("A", FILE), removed_request, back)),
        *others,
    )


def refusing(full: bool) -> Scenario:
    """A proposal is refused, and would be possible a version later."""
    view = opened("A", FILE)
    actors = toggling_actors(
        Actor("proposer", proposer("p1", removal("one"), 5, view, impatient=full)),
        Actor("combiner 1", combiner("k1", view)),
        Actor("combiner 2", combiner("k2", view), like="combiner 1"),
    )
    return Scenario("refusals", actors, WITH_FILE, faults=1 if full else 0)


def retrying_a_proposal(full: bool) -> Scenario:
    """A proposer dies, and a retry is refused while its proposal lies there."""
    view = opened("A", FILE)
    actors = toggling_actors(
        Actor("proposer", proposer("p1", removal("one"), 5, view)),
        Actor(
            "proposer again",
            partial(writing.retry, "p2", removal("one"), 1),
            after="proposer",
            unless="one",
        ),
        Actor("combiner", combiner("k1", view)),
    )
    return Scenario("a proposal is retried", actors, WITH_FILE, faults=1 if full else 0)


def proposing_to_dropped(full: bool) -> Scenario:
    """A log is sealed, and restored, while a proposal lies there."""
    seal = Request("seal", "A", "A", (), "seals")
    restore = Request("restore", "A", "A", (), "restores")
    actors = (
        Actor("proposer", proposer("p1", append("one"), 4)),
        Actor("dropper", partial(sharing.in_turn, "d1", opened("A"), seal, restore)),
        Actor("combiner 1", combiner("k1")),
        Actor("combiner 2", partial(sharing.combine_cold, "k2", "A")),
    )
    return Scenario("drop and proposals", actors[: 4 if full else 3], (begun("A"),), faults=2 if full else 1)


def proposing_files(full: bool) -> Scenario:
    """A proposal of a file, one of rows, and a vacuum."""
    actors = (
        Actor("proposer 1", proposer("p1", addition("one"), 3)),
        Actor("proposer 2", proposer("p2", append("two", rows=True), 3)),
        Actor("vacuum", partial(expiry.vacuum, "v1", "A")),
        Actor("combiner 1", combiner("k1")),
        Actor("combiner 2", combiner("k2"), like="combiner 1"),
    )
    kept_actors = actors if full else (actors[0], *actors[2:4])
    return Scenario("propose files", kept_actors, (begun("A"),), faults=0)


def proposing_rows(full: bool) -> Scenario:
    """Rows of two proposals, two combiners, and a vacuum."""
    actors = (
        Actor("proposer 1", proposer("p1", append("one", rows=True), 3)),
        Actor("proposer 2", proposer("p2", append("two", rows=True), 3), like="proposer 1"),
        Actor("combiner 1", combiner("k1")),
        Actor("combiner 2", combiner("k2"), like="combiner 1"),
    )
    return Scenario("propose rows", actors, (begun("A"),), faults=2 if full else 0)


def proposing_rows_and_vacuum(full: bool) -> Scenario:
    """The file of a combiner that loses its version to a vacuum."""
    actors = (
        Actor("proposer", proposer("p1", append("one", rows=True), 3)),
        Actor("vacuum", partial(expiry.vacuum, "v1", "A")),
        Actor("combiner 1", combiner("k1")),
        Actor("combiner 2", combiner("k2"), like="combiner 1"),
    )
    return Scenario("rows and vacuum", actors[: 4 if full else 3], (begun("A"),), faults=1 if full else 0)


def proposing_beside_a_transaction(full: bool) -> Scenario:
    """A combiner meets the intent of a transaction over two logs."""
    views = (opened("A"), opened("B"))
    requests = (append("both", "A"), append("both", "B"))
    actors = (
        Actor("transaction", partial(together.together, "t1", views, requests)),
        Actor("proposer", proposer("p1", append("one"), 3)),
        Actor("combiner 1", combiner("k1")),
        Actor("combiner 2", combiner("k2"), like="combiner 1"),
    )
    setup = (begun("A"), begun("B"))
    return Scenario("transaction and proposals", actors[: 4 if full else 3], setup, faults=1 if full else 0)


def proposing_beside_expiry(full: bool) -> Scenario:
    """Versions of a window expire while a proposal lies there, and its proposer sleeps."""
    actors = (
        Actor("proposer", proposer("p1", append("one"), 3)),
        Actor("combiner 1", combiner("k1")),
        Actor("cleaner", partial(expiry.expire, "e1", "A", 2)),
        Actor("combiner 2", combiner("k2"), like="combiner 1"),
    )
    return Scenario("expiry and proposals", actors, (begun("A"),), faults=1 if full else 0)
