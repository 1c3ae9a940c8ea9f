"""An engine in this process: it does what executors would, in any order, some of it twice, and late."""

from __future__ import annotations

import random
from collections.abc import Sequence

from lakelog.catalog.core.logs import places
from lakelog.catalog.keeping.maintenance import Engine, VersionsBuried, VersionsToBury
from lakelog.log import ObjectStore
from lakelog.log.burial import tombstone_of
from lakelog.log.format import Tombstone, decode_entry, encode


def executors(warehouse: str, chance: random.Random, options: dict[str, str] | None = None) -> Engine:
    late: list[tuple[str, bytes]] = []

    def opened_store() -> ObjectStore:
        # Tests have a store there that dies.
        store: ObjectStore = vars(places)["open_store"](warehouse, options or {})
        return store

    def bury(asked: VersionsToBury) -> VersionsBuried:
        store = opened_store()
        log = asked.log.removeprefix(f"{store.url}/")
        commits = size_bytes = 0
        left = []
        versions = range(asked.first, asked.until)
        for version in chance.sample(versions, len(versions)):
            key = f"{log}/{version:020d}.json"
            data = store.get(key) or b""
            entry = decode_entry(data, key, asked.features)
            if isinstance(entry, Tombstone):
                continue
            if entry.intent is not None or entry.settles is not None:
                left.append(version)
                continue
            store.delete([f"{log}/sidecars/{sidecar.name}" for sidecar in entry.sidecars])
            stone = encode(tombstone_of(entry))
            store.put(key, stone)
            if chance.random() < 0.2:
                late.append((key, stone))
            commits, size_bytes = commits + 1, size_bytes + len(data)
        if late:
            store.put(*late.pop(chance.randrange(len(late))))
        return VersionsBuried(commits=commits, size_bytes=size_bytes, left=sorted(left))

    def delete(urls: Sequence[str]) -> None:
        store = opened_store()
        store.delete([url.removeprefix(f"{store.url}/") for url in urls])

    return Engine(bury=bury, delete=delete)
