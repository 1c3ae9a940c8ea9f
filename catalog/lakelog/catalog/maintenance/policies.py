"""The policy of a table: its own properties, and those of the namespaces that its links lead up through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from lakelog.catalog.logs import LogCache
from lakelog.catalog.schema import KEEP_FOR, Policy, policy_of
from lakelog.catalog.state import NamespaceState, TableState
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
    own = state.current.properties if isinstance(state, TableState) else state.properties
    for _, properties in chain([("", own)], _above(logs, state)):
        if KEEP_FOR.name in properties:
            said = properties[KEEP_FOR.name]
            KEEP_FOR.check(said)
            return said
    return None


def _above(logs: LogCache, state: TableState | NamespaceState) -> Iterator[tuple[str, Mapping[str, str]]]:
    link = state.link
    for _ in range(LEVELS_MAX):
        if link is None:
            return
        above = logs.namespace(link.namespace).current().state
        link = above.link
        yield ("the warehouse" if link is None else f"the namespace {link.name}"), above.properties
