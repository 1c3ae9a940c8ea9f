"""The policy of a table: its own properties, and those of the namespaces that its links lead up through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakelog.catalog.logs import LogCache
from lakelog.catalog.schema import Policy, policy_of
from lakelog.catalog.state import TableState
from lakelog.log import View

LEVELS_MAX = 256
"""Links can be forged so that they lead in a circle: no namespace is so deep."""


def policy_for(logs: LogCache, view: View[TableState], name: str) -> Policy:
    """Return the policy of a table. InvalidInput where its properties contradict those that it inherits.

    Costs one GET for each namespace above it.
    """
    return policy_of([(name, view.state.current.properties), *_above(logs, view)])


def _above(logs: LogCache, view: View[TableState]) -> Iterator[tuple[str, Mapping[str, str]]]:
    link = view.state.link
    for _ in range(LEVELS_MAX):
        if link is None:
            return
        state = logs.namespace(link.namespace).current().state
        link = state.link
        yield ("the warehouse" if link is None else f"the namespace {link.name}"), state.properties
