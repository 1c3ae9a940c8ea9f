"""The policy of a table: its own properties, and those of the namespaces that its links lead up through."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import chain

from lakelog.catalog.core.logs import LogCache
from lakelog.catalog.core.schema import AUTO, KEEP_FOR, MAINTENANCE, OFF, Policy, policy_of
from lakelog.catalog.core.state import NamespaceState, TableState
from lakelog.catalog.times import age_of
from lakelog.log import View

LEVELS_MAX = 256
"""Links can be forged so that they lead in a circle: no namespace is so deep."""


def policy_for(logs: LogCache, view: View[TableState], name: str) -> Policy:
    """Return the policy of a table. InvalidInput where its properties contradict those that it inherits.

    Costs one GET for each namespace above it.
    """
    return policy_of([(name, view.state.current.properties), *_above(logs, view.state)])


def kept_for(logs: LogCache, state: TableState | NamespaceState) -> str | None:
    """Return how long old versions of a table or a namespace are kept by its own property or the nearest namespace's
    above it that has one, such as 30d or never; None where no property says.

    Costs one GET for each namespace above it, up to that one.
    """
    said = _nearest(logs, state, KEEP_FOR.name)
    if said is not None:
        KEEP_FOR.check(said)
    return said


def namespace_keeps_for(logs: LogCache, state: NamespaceState) -> dt.timedelta | None:
    """Return how long upkeep keeps old versions of a namespace's own log; None for ever, as where it is off."""
    said = kept_for(logs, state)
    if said is None or _nearest(logs, state, MAINTENANCE.name) == OFF:
        return None
    return age_of(said)


def is_auto(logs: LogCache, state: TableState, default: str) -> bool:
    """Return whether a table's policy is `auto`, as far as is known without a request: of namespaces that this process
    has not read, nothing. Where none says, `default` holds."""
    return (_nearest(logs, state, MAINTENANCE.name, known_only=True) or default) == AUTO


def _nearest(
    logs: LogCache, state: TableState | NamespaceState, name: str, *, known_only: bool = False
) -> str | None:
    own = state.current.properties if isinstance(state, TableState) else state.properties
    above = (properties for _, properties in _above(logs, state, known_only=known_only))
    return next((each[name] for each in chain([own], above) if name in each), None)


def _above(
    logs: LogCache, state: TableState | NamespaceState, *, known_only: bool = False
) -> Iterator[tuple[str, Mapping[str, str]]]:
    link = state.link
    for _ in range(LEVELS_MAX):
        if link is None:
            return
        namespace = logs.namespace(link.namespace)
        view = namespace.known if known_only else namespace.current()
        if view is None:
            return
        link = view.state.link
        yield ("the warehouse" if link is None else f"the namespace {link.name}"), view.state.properties
