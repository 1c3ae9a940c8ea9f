"""The policy of a table: its own properties, and those of the namespaces above it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import chain

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.schema.properties.known import AUTO, KEEP_FOR, MAINTENANCE, OFF
from lakelog.catalog.core.schema.properties.policy import MaintenancePolicy, policy_of
from lakelog.catalog.core.state.namespace_state import NamespaceState
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.times import age_of
from lakelog.log import LogView

FAN_IN = 8
"""The number of files that become a single file.

The writer of a version that this divides checks if upkeep is due.
"""

LEVELS_MAX = 256
"""The limit of nested namespaces, because links can be forged so that they lead in a circle."""


def policy_for(logs: LogCache, view: LogView[TableState], name: str) -> MaintenancePolicy:
    """Return the policy of a table.

    Costs a GET for each namespace above it. Raises InvalidInput if its properties contradict inherited
    properties.
    """
    return policy_of([(name, view.state.current.properties), *_above(logs, view.state)])


def kept_for(logs: LogCache, state: TableState | NamespaceState) -> str | None:
    """Return how long old versions of a table or a namespace are kept, such as 30d or never.

    Its own property counts first, then the property of the nearest namespace above it. None if none of them
    has it. Costs a GET for each namespace above it, up to the namespace that has the property.
    """
    keep_for = _nearest(logs, state, KEEP_FOR.name)
    if keep_for is not None:
        KEEP_FOR.check(keep_for)
    return keep_for


def namespace_keeps_for(logs: LogCache, state: NamespaceState) -> dt.timedelta | None:
    """Return how long upkeep keeps old versions of a namespace's own log.

    None if it keeps them for ever, as it does if maintenance is off.
    """
    keep_for = kept_for(logs, state)
    if keep_for is None or _nearest(logs, state, MAINTENANCE.name) == OFF:
        return None
    return age_of(keep_for)


def is_auto(logs: LogCache, state: TableState, default: str) -> bool:
    """Return whether a table's policy is `auto`, as far as is known without a request.

    Ignores namespaces that this process has not read. `default` holds if no property is set.
    """
    return (_nearest(logs, state, MAINTENANCE.name, known_only=True) or default) == AUTO


def _nearest(
    logs: LogCache, state: TableState | NamespaceState, name: str, *, known_only: bool = False
) -> str | None:
    own = state.current.properties if isinstance(state, TableState) else state.properties
    above = (properties for _, properties in _above(logs, state, known_only=known_only))
    return next((level[name] for level in chain([own], above) if name in level), None)


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
