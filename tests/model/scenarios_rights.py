"""Scenarios of rights: logs lie in folders, and an actor may write in some of them only.

The forger may write below `a` and nothing else, but there whatever the format allows. What it forges is met by a writer
that has all rights.
"""

from __future__ import annotations

from functools import partial

from tests.model import cuts
from tests.model.machine import Program
from tests.model.rules import Rule, on
from tests.model.scenarios_log import Setup, begun, opened, writer
from tests.model.scenarios_txn import cutting, transaction
from tests.model.search import Actor, Scenario
from tests.model.together import key_of
from tests.model.world import Commit, Decision, Intent, log_key, new_intents, tree

FORGED = "a/1"


def forger(intent: Intent) -> Setup:
    return partial(forge, intent)


def forge(intent: Intent) -> Program:
    """Put an intent into the forger's own log, as a valid commit of it."""
    before = opened(FORGED)
    attempt = ("forger", intent.txn, FORGED, 2)
    forged_commit = Commit(FORGED, 2, "forged", attempt, before.hash, before.time + 1, intent=intent)
    yield ("create", log_key(FORGED, 2), forged_commit)


def decide_foreign(intent: Intent, outcome: str) -> Program:
    """Put a decision of another's transaction where the forger may: in its own folder, and where all clients may."""
    folder = "a" if on(Rule.DEEPEST_FOLDER) else intent.folder
    yield ("create", ("txn", folder, intent.txn), Decision(outcome, via="forger"))


def foreign_in_a_folder(full: bool) -> Scenario:
    """A transaction in a folder beside the forger's."""
    places = ("b/1", "b/2")
    intents = new_intents("t1", 0, places)
    honest = intents[0]
    [own] = new_intents("forger", 0, (FORGED,))
    actors = (
        Actor("transaction", transaction("t1", "both", places)),
        Actor("forger that copies", forger(honest)),
        Actor("forger that leads elsewhere", forger(own._replace(named=key_of(honest)))),
        Actor("forger that aborts", partial(decide_foreign, honest, "aborted")),
        Actor("forger that commits", partial(decide_foreign, honest, "committed")),
        Actor("writer", writer("w1", "one", FORGED)),
        Actor("reader", cutting(places)),
    )
    setup = tuple(begun(place) for place in (FORGED, *places))
    return Scenario(
        "foreign, in a folder", actors if full else actors[:6], setup, 1 if full else 0, honest=(intents,)
    )


def foreign_in_the_root(full: bool) -> Scenario:
    """A transaction that is decided where some of the forger's would be, too."""
    places = ("b/1", "c/1")
    intents = new_intents("t1", 0, places)
    honest = intents[0]
    own = new_intents("forger", 0, (FORGED, "b/1"))[0]
    foreign = own._replace(txn=honest.txn, named=key_of(honest))
    actors = (
        Actor("transaction", transaction("t1", "both", places)),
        Actor("forger with a list of its own", forger(foreign)),
        Actor("forger of a transaction", forger(own)),
        Actor("forger that aborts", partial(decide_foreign, honest, "aborted")),
        Actor("writer", writer("w1", "one", FORGED)),
        Actor("reader", cutting(places)),
        Actor("writer 2", writer("w2", "two", "b/1")),
    )
    setup = tuple(begun(place) for place in (FORGED, *places))
    return Scenario(
        "foreign, in the root", actors if full else actors[:5], setup, 1 if full else 0, honest=(intents,)
    )


def foreign_by_proofs(full: bool) -> Scenario:
    """A transaction whose hashes a forger has read, and makes proofs of."""
    places = ("b/1", "c/1")
    intents = new_intents("t1", 0, places)
    beside = intents[0]._replace(log=FORGED)
    longer = beside._replace(at=2, logs=3, proof=(tree(places),))
    actors = (
        Actor("transaction", transaction("t1", "both", places)),
        Actor("forger beside a proof", forger(beside)),
        Actor("forger of a longer list", forger(longer)),
        Actor("forger of a list of one", forger(beside._replace(at=0, logs=1, proof=()))),
        Actor("writer", writer("w1", "one", FORGED)),
        Actor("reader", cutting(places)),
    )
    setup = tuple(begun(place) for place in (FORGED, *places))
    return Scenario(
        "foreign, by proofs", actors if full else actors[:5], setup, 1 if full else 0, honest=(intents,)
    )


def foreign_among_its_logs(full: bool) -> Scenario:
    """A transaction of which one log is the forger's: it can hold that up, and harm no other log."""
    places = ("b/1", FORGED)
    honest = new_intents("t1", 0, places)
    actors = (
        Actor("transaction", transaction("t1", "both", places)),
        Actor("forger of another commit", forger(honest[1])),
        Actor("writer", writer("w1", "one", FORGED)),
        Actor("reader", cutting(("b/1",))),
        Actor("writer 2", writer("w2", "two", "b/1")),
    )
    setup = tuple(begun(place) for place in places)
    return Scenario(
        "foreign, among its logs", actors if full else actors[:4], setup, 1 if full else 0, honest=(honest,)
    )


def without_rights(full: bool) -> Scenario:
    """Transactions of a client that may write its logs, and not the decision about all of them."""
    may = ("a", "b")
    actors = (
        Actor("transaction", transaction("t1", "both", ("a/1", "b/1"), may=may)),
        Actor("transaction in a folder", transaction("t2", "two", ("a/1", "a/2"), may=may)),
        Actor("writer", writer("w1", "one", "a/2", may=may)),
        Actor("reader", cutting(("a/1", "a/2"))),
    )
    setup = tuple(begun(place) for place in ("a/1", "a/2", "b/1"))
    return Scenario("without rights", actors if full else actors[:3], setup, 1 if full else 0, may=may)


def read_without_rights(full: bool) -> Scenario:
    """A reader of two logs that may not read the decision of a transaction in both."""
    places = ("a/1", "b/1")
    actors = (
        Actor("transaction", transaction("t1", "both", places)),
        Actor("writer", writer("w1", "one", "a/1")),
        Actor("reader", cutting(places, may=("a", "b"))),
        Actor("writer 2", writer("w2", "two", "b/1")),
    )
    setup = tuple(begun(place) for place in places)
    return Scenario("read without rights", actors if full else actors[:3], setup, 1 if full else 0)


def saved_cuts(full: bool) -> Scenario:
    """Cuts that namespaces save of their own logs, while these expire; and of a log that was moved into another one."""
    save_own = partial(cuts.save, "s1", "own", opened("a"), (opened("a"), opened("a/1")))
    save_foreign = partial(cuts.save, "s2", "foreign", opened("b"), (opened("b"), opened("a/1")))
    actors = (
        Actor("saver", save_own),
        Actor("saver of a foreign log", save_foreign),
        Actor("cleaner", partial(cuts.expire_unless_needed, "e1", opened("a/1"), 2)),
        Actor("cleaner of the namespace", partial(cuts.expire_unless_needed, "e2", opened("a"), 2)),
    )
    setup = tuple(begun(place) for place in ("a", "b", "a/1"))
    return Scenario("saved cuts", actors if full else actors[:3], setup, 1)
