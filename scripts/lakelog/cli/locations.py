"""The warehouse and the name of a folder or URL: commands take it in place of a name.

Objects of a warehouse are at `n-<id>/…/t-<id>` below it. So a place shows its warehouse, whichever warehouse
LAKELOG_WAREHOUSE names. The log at the place has its name, and the warehouse has to agree. Rule: if a guess cannot be
confirmed, for want of rights or because of damage, it does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakelog.catalog import LakelogError
from lakelog.catalog.engine import LogCache, NameTree, WarehouseStores
from lakelog.catalog.names import WALK_DEPTH_LIMIT, Identifier
from lakelog.log import LogOptions, canonical_url

_OWN = re.compile(r"/([nt])-[a-z2-7]{26}$")


def warehouse_above(url: str, options: Mapping[str, str]) -> str | None:
    """Return the warehouse of a place with the form of a table's or namespace's, or None if there is no warehouse."""
    url = base = canonical_url(url)
    while (match := _OWN.search(base)) is not None:
        base = base[: match.start()] or "/"
    if base == url:
        return None
    try:
        is_there = next(iter(WarehouseStores(base, options).store(base).list_after("_log/")), None)
    except LakelogError:
        return None
    return None if is_there is None else base


def is_warehouse(url: str, options: Mapping[str, str]) -> bool:
    """Return whether the log at a place is that of a warehouse's root."""
    try:
        namespace = NameTree(_logs(canonical_url(url), options)).find_namespace(())
    except LakelogError:
        return False
    return namespace is not None and namespace.view.state.link is None


def named(
    url: str, options: Mapping[str, str], warehouse: str | None
) -> tuple[str | None, Identifier | None]:
    """Return the warehouse of a place, and the name that the place has in it; None if it has none.

    The name of the warehouse itself is (). If the place shows no warehouse, it is looked for in `warehouse`, if that
    is given.
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
    match = _OWN.search(f"/{location}")
    is_namespace = match is not None and match[1] == "n"
    link = (logs.namespace(location) if is_namespace else logs.table(location)).current().state.link
    path: list[str] = []
    while link is not None and len(path) <= WALK_DEPTH_LIMIT:  # one can be forged that leads to itself
        path.insert(0, link.name)
        link = logs.namespace(link.namespace).current().state.link if link.namespace else None
    tree, name = NameTree(logs), tuple(path)
    target: Any = (tree.find_namespace if is_namespace else tree.find_table)(name) if name else None
    return name if target is not None and target.tracked.location == location else None


def _logs(warehouse: str, options: Mapping[str, str]) -> LogCache:
    return LogCache(WarehouseStores(warehouse, options), {}, LogOptions())
