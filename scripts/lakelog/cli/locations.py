"""Which warehouse a folder or URL belongs to, and what has it there: commands take it in place of a name.

Objects of a warehouse are at `n-<id>/…/t-<id>` below it, so a place shows where its warehouse is, whichever one
LAKELOG_WAREHOUSE names. What has the place says so in its log, and the warehouse has to agree. Rule: a guess that
cannot be confirmed, for want of rights or because of damage, is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakelog.catalog import LakelogError
from lakelog.catalog.core.logs import LogCache, NameTree, Places
from lakelog.catalog.names import WALK_DEPTH_LIMIT, Identifier
from lakelog.log import LogOptions, canonical_url

_OWN = re.compile(r"/([nt])-[a-z2-7]{26}$")


def warehouse_above(url: str, options: Mapping[str, str]) -> str | None:
    """Return the warehouse of a place that has the form of a table's or namespace's; None where that is none."""
    url = base = canonical_url(url)
    while (found := _OWN.search(base)) is not None:
        base = base[: found.start()] or "/"
    if base == url:
        return None
    try:
        is_there = next(iter(Places(base, options).store(base).list_after("_log/")), None)
    except LakelogError:
        return None
    return None if is_there is None else base


def is_warehouse(url: str, options: Mapping[str, str]) -> bool:
    """Return whether the log at a place is that of a warehouse's root."""
    try:
        found = NameTree(_logs(canonical_url(url), options)).find_namespace(())
    except LakelogError:
        return False
    return found is not None and found.view.state.link is None


def named(
    url: str, options: Mapping[str, str], warehouse: str | None
) -> tuple[str | None, Identifier | None]:
    """Return the warehouse of what is at a place, and its name there, () for the warehouse; None if it has none.

    What is in no warehouse that can be found is looked for in `warehouse`, if there is one.
    """
    url = canonical_url(url)
    if warehouse is not None and canonical_url(warehouse) == url:
        return url, ()
    home = warehouse_above(url, options)
    if home is None and is_warehouse(url, options):
        return url, ()
    home = home or warehouse
    if home is None:
        return None, None
    try:
        return home, _name(_logs(home, options), url)
    except LakelogError:
        return home, None


def _name(logs: LogCache, url: str) -> Identifier | None:
    location = logs.location(url)
    found = _OWN.search(f"/{location}")
    is_namespace = found is not None and found[1] == "n"
    link = (logs.namespace(location) if is_namespace else logs.table(location)).current().state.link
    path: list[str] = []
    while link is not None and len(path) <= WALK_DEPTH_LIMIT:  # one can be forged that leads to itself
        path.insert(0, link.name)
        link = logs.namespace(link.namespace).current().state.link if link.namespace else None
    tree, name = NameTree(logs), tuple(path)
    there: Any = (tree.find_namespace if is_namespace else tree.find_table)(name) if name else None
    return name if there is not None and there.tracked.location == location else None


def _logs(warehouse: str, options: Mapping[str, str]) -> LogCache:
    return LogCache(Places(warehouse, options), {}, LogOptions())
