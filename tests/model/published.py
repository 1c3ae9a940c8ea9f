"""What went wrong in designs that others have published, each as a scenario in which their way is a rule taken away.

Rows of a table are ("file", name, keys) and ("dv", name of its file, deleted keys): a file, and a deletion vector.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tests.model import scenarios_log as log
from tests.model import writing
from tests.model.rules import Rule
from tests.model.scenarios_log import Setup, begun, opened
from tests.model.search import Actor, Scenario
from tests.model.world import Event, Request


class Published(NamedTuple):
    what: str
    scenario: Callable[[bool], Scenario]
    rule: Rule


def file(name: str, *keys: str) -> Any:
    return ("file", name, frozenset(keys))


def vector(name: str, *keys: str) -> Any:
    return ("dv", name, frozenset(keys))


def change(cid: str, view: Any, removed: tuple[Any, ...], added: tuple[Any, ...], *needs: Event) -> Actor:
    event = ("rows", frozenset(removed), frozenset(added))
    return Actor(cid, partial(writing.commit, cid, view, Request(cid, "A", "A", (event,), needs=needs)))


def table(*rows: Any) -> tuple[tuple[Setup, ...], Any]:
    event: Event = ("rows", frozenset(), frozenset(rows))
    return (begun("A", event),), opened("A", event)


def update_and_delete(full: bool) -> Scenario:
    """UPDATE makes row 1 into 1' while DELETE removes row 1, both with deletion vectors."""
    setup, view = table(file("f1", "1", "2"))
    actors = (
        change("update-1", view, (), (vector("f1", "1"), file("f2", "1'")), ("undeleted", "f1")),
        change("delete-1", view, (), (vector("f1", "1"),), ("undeleted", "f1")),
    )
    return Scenario("update and delete of a row", actors, setup, faults=2 if full else 1)


def two_compactions(full: bool) -> Scenario:
    """One compaction rewrites a file with its deletion vector, another one rewrites the deletion vector."""
    setup, view = table(file("f1", "1", "2"), vector("f1", "1"))
    actors = (
        change("rewrite", view, (file("f1", "1", "2"), vector("f1", "1")), (file("f3", "2"),)),
        change("merge", view, (vector("f1", "1"),), (vector("f1", "1", "gone"),)),
    )
    return Scenario("two compactions", actors, setup, faults=2 if full else 1)


def compaction_and_delete(full: bool) -> Scenario:
    """A compaction rewrites a file while DELETE gives it a deletion vector."""
    setup, view = table(file("f1", "1", "2"))
    f1 = file("f1", "1", "2")
    actors = (
        change("rewrite", view, (f1,), (file("f3", "1", "2"),), ("unseen", "f1")),
        change("delete-1", view, (f1,), (f1, vector("f1", "1")), ("undeleted", "f1")),
    )
    return Scenario("compaction and delete", actors, setup, faults=2 if full else 1)


PUBLISHED = (
    Published(
        "A row is resurrected by UPDATE and DELETE at once", update_and_delete, Rule.DELETION_VECTOR_REPLACES
    ),
    Published(
        "Two compactions leave a dangling deletion vector", two_compactions, Rule.DELETION_VECTOR_REPLACES
    ),
    Published("A compaction loses a DELETE", compaction_and_delete, Rule.REWRITE_SEES_DELETES),
    Published("A stalled writer creates an expired version again", log.expiring, Rule.TOMBSTONES),
    Published("A client's own retry is taken for a conflict", log.appending, Rule.TAKEN_IS_READ),
)
