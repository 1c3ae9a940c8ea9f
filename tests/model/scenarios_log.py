"""Scenarios of one log: appending, retrying, snapshots, expiry, vacuum."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.model import expiry, reading, setting_back, writing
from tests.model.machine import Program
from tests.model.search import Actor, Scenario
from tests.model.world import Commit, Event, Request, Root, View, applied

Setup = partial[Program]


def first(place: str, *events: Event, parent: str = "") -> Commit:
    """The commit that a place's log begins with."""
    about: tuple[Event, ...] = (("moved", parent),) if parent else ()
    return Commit(place, 1, "c0", ("c0", 0, place, 1), None, 1, (*about, *events))


def put(key: Any, value: Any) -> Program:
    yield ("put", key, value)


def begun(place: str, *events: Event, parent: str = "") -> Setup:
    return partial(put, ("log", place, 1), first(place, *events, parent=parent))


def opened(place: str, *events: Event, parent: str = "") -> View:
    """The view after a log's first commit."""
    view = applied(View(place), first(place, *events, parent=parent), "committed", 1)
    assert view is not None
    return view._replace(tail=())


def append(cid: str, place: str = "A", **more: Any) -> Request:
    return Request(cid, place, place, (("applied", cid),), **more)


def writer(name: str, cid: str, place: str = "A", **more: Any) -> Setup:
    return partial(writing.commit, name, opened(place), append(cid, place), **more)


def appending(full: bool) -> Scenario:
    actors = [
        Actor("writer 1", writer("w1", "one")),
        Actor("writer 2", writer("w2", "two"), like="writer 1"),
        Actor("reader", partial(reading.reader, "A")),
    ]
    if full:
        actors.insert(2, Actor("writer 3", writer("w3", "three"), like="writer 2"))
    return Scenario("append", tuple(actors), (begun("A"),), faults=3 if full else 1)


def retrying(full: bool) -> Scenario:
    """The first process has crashed or does not know. Some other commit needs to be the only one."""
    only = append("one", needs=(("unapplied", "two"),))
    actors = (
        Actor("writer 1", partial(writing.commit, "w1", opened("A"), only, tries=2)),
        Actor("writer 1 again", partial(writing.retry, "w1b", only, 1), after="writer 1", unless="one"),
        Actor("writer 2", writer("w2", "two")),
        Actor("writer 3", writer("w3", "three")),
    )
    return Scenario("retry", actors[: 4 if full else 3], (begun("A"),), faults=2 if full else 1)


def retrying_with_an_old_view(full: bool) -> Scenario:
    """What is asked could not be done at first; the retry still has the view from before."""
    request = append("one", needs=(("after", "two"),))
    actors = (
        Actor("writer 1", partial(writing.begin_and_commit, "w1", request)),
        Actor(
            "writer 1 again",
            partial(writing.commit, "w1b", opened("A"), request),
            after="writer 1",
            unless="one",
        ),
        Actor("writer 2", writer("w2", "two")),
        Actor("writer 3", writer("w3", "three")),
    )
    return Scenario(
        "retry with an old view", actors[: 4 if full else 3], (begun("A"),), faults=2 if full else 1
    )


def retrying_meanwhile(full: bool) -> Scenario:
    """A request is retried although the first attempt goes on."""
    actors = (
        Actor("writer 1", writer("w1", "one")),
        Actor("writer 1 again", partial(writing.retry, "w1b", append("one"), 1)),
        Actor("writer 2", writer("w2", "two")),
        Actor("writer 3", writer("w3", "three"), like="writer 2"),
    )
    kept_actors = actors[: 4 if full else 3]
    return Scenario("retry meanwhile", kept_actors, (begun("A"),), faults=2 if full else 1, overlapping=True)


def retrying_after_expiry(full: bool) -> Scenario:
    """A request is retried, or goes on, if expiry has been."""
    actors = (
        Actor("writer 1", writer("w1", "one", tries=2)),
        Actor(
            "writer 1 again",
            partial(writing.commit, "w1b", opened("A"), append("one")),
            after="writer 1",
            unless="one",
        ),
        Actor("writer 2", writer("w2", "two")),
        Actor("cleaner", partial(expiry.expire, "e1", "A", 2)),
        Actor("cleaner 2", partial(expiry.expire, "e2", "A", 3)),
    )
    return Scenario("retry, expired", actors[: 5 if full else 4], (begun("A"),), faults=1)


def snapshots(full: bool) -> Scenario:
    committer = partial(expiry.hasty_committer, "w1", opened("A"), append("one"))
    actors = (
        Actor("writer 1", committer),
        Actor("writer 2", writer("w2", "two")),
        Actor("reader", partial(reading.reader, "A")),
        Actor("snapshotter", partial(expiry.snapshot, "s1", "A")),
    )
    setup = (begun("A"), partial(expiry.snapshot, "s0", "A"))
    return Scenario("snapshot and hint", actors[: 4 if full else 3], setup, faults=1 if full else 0)


LIE = Root(opened("A")._replace(version=2, hash="lie", uses=((2, "lie"),)), 0)
HALF_A_LIE = LIE._replace(view=LIE.view._replace(version=1))


def vandalism(full: bool) -> Scenario:
    """Vandals put nonsense over the hint, and remove it."""
    actors = (
        Actor("writer", writer("w1", "one")),
        Actor("snapshotter", partial(expiry.snapshot, "s1", "A")),
        Actor("vandal 1", partial(expiry.vandal, "A", "broken")),
        Actor("vandal 2", partial(expiry.vandal, "A", HALF_A_LIE)),
        Actor("vandal 3", partial(expiry.vandal, "A", None)),
        Actor("reader", partial(reading.reader, "A")),
    )
    setup = (begun("A"), partial(put, ("manifest", "A", (2, "lie")), (("applied", "lie"),)))
    return Scenario("vandalized hint", actors, setup, faults=1 if full else 0)


def three_versions() -> tuple[Setup, ...]:
    """A log at version 3, its first base at version 1 with a manifest."""
    return (
        begun("A", ("applied", "zero")),
        partial(expiry.expire, "e0", "A", 1),
        partial(writing.begin_and_commit, "w0", append("x")),
        partial(writing.begin_and_commit, "w0'", append("y")),
    )


def expiring(full: bool) -> Scenario:
    """Two cleaners, a stalled writer, a reader with an old view and one without."""
    old = opened("A", ("applied", "zero"))
    actors = (
        Actor("cleaner 1", partial(expiry.expire, "e1", "A", 2)),
        Actor("cleaner 2", partial(expiry.expire, "e2", "A", 3, merges=True)),
        Actor("stalled writer", partial(writing.commit, "w1", old, append("one"))),
        Actor("reader", partial(reading.reader, "A")),
        Actor("warm reader", partial(reading.warm_reader, old)),
    )
    return Scenario("expiry", actors[: 5 if full else 4], three_versions(), faults=0 if full else 1)


def burying(full: bool) -> Scenario:
    """Versions of three windows, the last of one version. Cleaners stop anywhere, and others take over; puts of
    tombstones fail, land late or twice."""
    actors = (
        Actor("cleaner 1", partial(expiry.expire, "e1", "A", 5)),
        Actor("cleaner 2", partial(expiry.expire, "e2", "A", 6)),
        Actor("reader", partial(reading.reader, "A")),
    )
    more = (partial(writing.begin_and_commit, f"w{name}", append(name)) for name in "uvwxy")
    return Scenario("windows", actors[: 3 if full else 2], (begun("A"), *more), faults=1)


def expiring_with_snapshots(full: bool) -> Scenario:
    actors = (
        Actor("cleaner 1", partial(expiry.expire, "e1", "A", 2, merges=True)),
        Actor("snapshotter", partial(expiry.snapshot, "s1", "A")),
        Actor("reader", partial(reading.reader, "A")),
        Actor("cleaner 2", partial(expiry.expire, "e2", "A", 3)),
        Actor("writer", writer("w1", "one")),
    )
    return Scenario("expiry and hint", actors[: 4 if full else 3], three_versions(), faults=1)


def erasing(full: bool) -> Scenario:
    """A cleaner that takes the states out of older bases, beside another cleaner and readers."""
    old = opened("A", ("applied", "zero"))
    actors = (
        Actor("warm reader", partial(reading.warm_reader, old)),
        Actor("reader", partial(reading.reader, "A")),
    )
    return _erasing("erasure", *actors[: 2 if full else 1])


def erasing_beside_a_writer(full: bool) -> Scenario:
    """The same beside a writer that stalled before, and a reader."""
    old = opened("A", ("applied", "zero"))
    actors = (
        Actor("stalled writer", partial(writing.commit, "w1", old, append("one"))),
        Actor("reader", partial(reading.reader, "A")),
    )
    return _erasing("erasure and writer", *actors[: 2 if full else 1])


def _erasing(name: str, *others: Actor) -> Scenario:
    actors = (
        Actor("eraser", partial(expiry.expire, "e1", "A", 3, merges=True, blanks=True)),
        Actor("cleaner", partial(expiry.expire, "e2", "A", 2)),
        *others,
    )
    setup = (*three_versions(), partial(expiry.snapshot, "s0", "A"))
    return Scenario(name, actors, setup, faults=1)


def file_write(cid: str, *events: Event) -> Setup:
    view = opened("A", ("add", "f0", 0))
    return partial(expiry.write_files, cid, view, Request(cid, "A", "A", (("applied", cid), *events)))


def vacuuming(full: bool) -> Scenario:
    """One write adds a file, one replaces a file, while files that no commit names are deleted."""
    actors = (
        Actor("writer", file_write("one")),
        Actor("rewriter", file_write("two", ("remove", "f0", 0))),
        Actor("vacuum", partial(expiry.vacuum, "v1", "A")),
        Actor("vacuum 2", partial(expiry.vacuum, "v2", "A")),
    )
    setup = (begun("A", ("add", "f0", 0)), partial(put, ("file", "A", "f0", 0), "data"))
    return Scenario("vacuum", actors[: 4 if full else 3], setup, faults=1)


def was_there(view: View, cid: str) -> View:
    """The view after one more commit, of which the store has nothing any more."""
    version = view.version + 1
    removed_commit = Commit(
        "A", version, cid, ("then", 0, "A", version), view.hash, version, (("applied", cid),)
    )
    newer = applied(view, removed_commit, "committed", version)
    assert newer is not None
    return newer._replace(tail=())


def set_back(full: bool) -> Scenario:
    """The store is at version 1 again. A client and a stream have known version 3, others begin anew."""
    then = was_there(was_there(opened("A"), "gone 2"), "gone 3")
    actors = (
        Actor("client", partial(setting_back.client, "w1", then, append("one"))),
        Actor("writer 2", partial(writing.begin_and_commit, "w2", append("two"))),
        Actor("stream", partial(setting_back.stream, "A", then.version, then.hash)),
        Actor("reader", partial(reading.reader, "A")),
        Actor("writer 3", partial(writing.begin_and_commit, "w3", append("three")), like="writer 2"),
    )
    return Scenario("set back", actors[: 5 if full else 4], (begun("A"),), faults=1 if full else 0)


def sink_set_back(full: bool) -> Scenario:
    """The store is at version 1 again. The last batch of one stream was in version 2, that of another one is still in
    version 1; others write."""
    then = was_there(opened("A"), "batch 7")
    now = opened("A")
    actors = (
        Actor("sink", partial(setting_back.sink, "w1", append("batch 8"), then.version, then.hash)),
        Actor("sink that goes on", partial(setting_back.sink, "w2", append("other"), now.version, now.hash)),
        Actor("reader", partial(reading.reader, "A")),
        Actor("writer 3", partial(writing.begin_and_commit, "w3", append("three"))),
    )
    return Scenario("sink set back", actors[: 4 if full else 3], (begun("A"),), faults=1 if full else 0)
