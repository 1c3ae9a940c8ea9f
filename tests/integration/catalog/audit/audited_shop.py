"""A small shop to audit, and hands that damage its objects behind the catalog's back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.looking.audit.audit import AuditEntry
from lakelog.log import Draft, Log, MemoryStore, wait_for_background
from lakelog.log.format import decode_entry, encode
from lakelog.log.keys import LogKeys


def filled(catalog: Catalog) -> Catalog:
    catalog.create_namespace("shop")
    catalog.create_namespace("shop.eu")
    catalog.create_table("shop.orders", SCHEMA).append(rows(1)).append(rows(2))
    catalog.create_table("shop.eu.orders", SCHEMA).append(rows(3))
    return catalog


def brief(entries: Iterable[AuditEntry]) -> list[str]:
    return [
        f"{'.'.join(entry.name or ())} {entry.version} {', '.join(entry.operations) or entry.note}"
        for entry in entries
    ]


def damage(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    return [entry for entry in entries if entry.what == "damage"]


def alter(catalog: Catalog, name: str, times: int) -> None:
    """Make so many small commits, faster than a table's own methods do."""
    tracked_log = catalog._tree.table(tuple(name.split("."))).tracked
    view = tracked_log.current()
    for number in range(times):
        event = {"event": "table-altered", "set": {"n": str(number)}, "removed": []}
        draft = Draft(events=(event,))
        view = tracked_log.log.commit(view, lambda _view, _passed, draft=draft: draft).view  # type: ignore[misc]
    tracked_log.offer(view)


class Objects:
    """The objects of one table's log, to damage them behind the catalog's back."""

    def __init__(self, catalog: Catalog, name: str) -> None:
        wait_for_background()
        self.store = MemoryStore.named(catalog.warehouse)
        table = catalog._tree.find_table(tuple(name.split("."))) or catalog._tree.namespace(
            tuple(name.split("."))
        )
        self.log: Log[Any] = table.tracked.log
        self.keys = LogKeys(table.tracked.prefix)

    def commit(self, version: int) -> Any:
        data = self.store.get(self.keys.commit(version))
        assert data is not None
        return decode_entry(data, "here", KNOWN)

    def put(self, version: int, data: bytes) -> None:
        self.store.put(self.keys.commit(version), data)

    def forge(self, version: int, **changes: Any) -> str:
        """Replace a commit by another that is sound by itself, and return the hash of the new one."""
        self.put(version, encode(msgspec.structs.replace(self.commit(version), hash="", **changes)))
        return str(self.commit(version).hash)
