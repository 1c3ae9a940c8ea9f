"""Judges the names that clients saw, by the order of requests and the times of commits."""

from __future__ import annotations

from functools import partial

from tests.sim_catalog import definitions, linearizability
from tests.sim_catalog.linearizability import Request
from tests.sim_catalog.model import MISSING, Asked
from tests.sim_catalog.names import SPACES, TABLES, Names, answered, full

from lakelog.catalog.core.schema.definition import FUNCTION, VIEW


def judge(names: Names) -> list[str]:
    """Return what was seen at no moment, and the beginning of the history that fits into no order."""
    return [*misfit(names), *never_so(names)]


def misfit(names: Names) -> list[str]:
    look_at_the_end(names)
    try:
        beginning_first_misfit = linearizability.first_misfit(names.history, names.initial)
    except linearizability.TooLong:
        names.world.count("histories with too many orders to judge")
        return []
    if not beginning_first_misfit:
        names.world.count("histories that fit")
        return []
    return [
        "no order of these fits:\n" + "\n".join(f"        {request}" for request in beginning_first_misfit)
    ]


def look_at_the_end(names: Names) -> None:
    """Add to the history what everything is in the end."""
    calm = names.world.calm()
    for path in [(name, table) for name in SPACES for table in TABLES]:
        begun_at = names.world.tick()
        answer = answered(calm, lambda catalog: catalog.load_table(full(path)).id)  # noqa: B023
        names.history.append(
            Request(Asked("resolve", (path,)), "at the end", begun_at, names.world.tick(), answer)
        )
        for kind in (VIEW, FUNCTION):
            begun_at = names.world.tick()
            means = answered(calm, partial(definitions.meaning, kind, path))
            request = Asked("meaning", (kind, path))
            names.history.append(Request(request, "at the end", begun_at, names.world.tick(), means))
        if answer != MISSING:
            mark = calm.load_table(full(path)).properties["mark"]
            begun_at = names.world.tick()
            names.history.append(
                Request(Asked("look", (answer,)), "at the end", begun_at, names.world.tick(), mark)
            )


def never_so(names: Names) -> list[str]:
    """Return what does not show the names as they were, by the times of all that was committed, at some moment."""
    truth = names.world.truth
    return [
        f"{one.by}, who had seen {one.seen_us}, saw what never was: {one.names}"
        for one in names.shown
        if not any(
            state == one.names and until_us > one.seen_us
            for created_number in range(one.first, one.last + 1)
            for state, until_us in truth.moments(created_number)
        )
    ]
