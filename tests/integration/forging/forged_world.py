"""A small warehouse with every kind of object. An object can be replaced by a forged object that fits all others.

Whatever refers to an object by its hash (the next commit, snapshots, bases, a commit that names a sidecar, a root that
names a manifest, a saved cut) is forged with it, so that nothing but the members themselves can give it away.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import msgspec
import pyarrow as pa
from tests.integration.forging.forge import hashed

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.logs import commits
from lakelog.catalog.core.schema import ViewColumn, ViewDefinition
from lakelog.log import LogOptions, MemoryStore
from lakelog.log.expiry import expire
from lakelog.log.format import hash_of

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64())])


def one_by_one(works: Any) -> None:
    for work in works:
        work()


_numbers = itertools.count()


def next_id() -> str:
    """Return an id that is the same in every run: a seed then means the same cases."""
    return f"{next(_numbers):026d}".translate(str.maketrans("0123456789", "abcdefghij"))


OPTIONS = LogOptions(
    new_id=next_id,
    snapshot_every_versions=4,
    in_background=lambda name, work: work(),
    in_parallel=one_by_one,
    patience_s=0.0,
    patience_each_s=0.0,
    sleep_s=lambda seconds: None,
)


def rows(*ids: int, part: str = "x") -> pa.Table:
    columns = {"id": list(ids), "part": [part] * len(ids), "value": [id / 3 for id in ids]}
    return pa.table(columns, schema=SCHEMA)


@dataclass
class World:
    url: str
    store: MemoryStore
    objects: dict[str, bytes] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def catalog(self, as_of: str | None = None, namespace: str = "") -> Catalog:
        return Catalog(self.url, log_options=OPTIONS, as_of=as_of, as_of_namespace=namespace)

    def keep(self) -> None:
        self.objects = {key: self.store.get(key) or b"" for key in self.store.list_after("")}

    def restore(self) -> None:
        self.store._objects.clear()
        self.store._objects.update(self.objects)

    def plain(self, key: str) -> Any:
        return msgspec.json.decode(self.store.get(key) or b"null")

    def keys(self, kind: str) -> list[str]:
        return sorted(key for key in self.objects if kind_of(key) == kind)

    # Forging

    def put(self, key: str, data: bytes) -> None:
        """Put an object in the place of another, and make all that names it fit."""
        data_before = self.store.get(key) or b""
        self.store.put(key, data)
        if kind_of(key) == "commit":
            self._relink(key, data_before, data)
        elif kind_of(key) in ("sidecar", "manifest", "cut"):
            self._rename(key, data_before, data)

    def alter(self, key: str, change: Callable[[Any], Any]) -> None:
        plain = self.plain(key)
        changed = change(plain)
        self.put(key, hashed(plain if changed is None else changed))

    def _relink(self, key: str, before: bytes, data: bytes) -> None:
        """Make the commits after one continue it, and what was derived from it name it."""
        old, new = hash_in(before), hash_in(data)
        if not old or not new or old == new:
            return
        log = key[: key.index("_log/")]
        for other_key in list(self.store.list_after(f"{log}_log/")):
            text = self.store.get(other_key) or b""
            if other_key == key or old not in text or not other_key.endswith(".json"):
                continue
            try:
                plain = msgspec.json.decode(text.replace(old, new))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if "root" in plain:
                plain["root"].pop("hash", None)
            forged_data = hashed(plain)
            self.store.put(other_key, forged_data)
            if kind_of(other_key) == "commit":
                self._relink(other_key, text, forged_data)

    def _rename(self, key: str, before: bytes, data: bytes) -> None:
        """Have all objects that name one by its hash and size name the other."""
        old, new = hash_of(before), hash_of(data)
        log = key[: key.index("_log/")] if "_log/" in key else ""
        for other_key in list(self.store.list_after(f"{log}_log/")):
            text = self.store.get(other_key) or b""
            if other_key.endswith(".json") and old.encode() in text:
                changed_data = text.replace(old.encode(), new.encode()).replace(
                    b'"size_bytes":%d,"hash":"%s"' % (len(before), new.encode()),
                    b'"size_bytes":%d,"hash":"%s"' % (len(data), new.encode()),
                )
                forged_data = hashed(msgspec.json.decode(changed_data))
                self.store.put(other_key, forged_data)
                if kind_of(other_key) == "commit":
                    self._relink(other_key, text, forged_data)

    def add_commit(self, location: str, *events: dict[str, Any], **members: Any) -> str:
        """Put a commit of these events after the last one of a log."""
        log = f"{location}/_log/" if location else "_log/"
        last = max(key for key in self.store.list_after(f"{log}0") if key.endswith(".json"))
        head = self.plain(last)
        commit = {
            "kind": "commit", "format": 1, "log_id": head["log_id"], "version": head["version"] + 1,
            "commit_id": "c" * 26, "attempt_id": "d" * 26, "base": head["version"], "prev": head["hash"],
            "time_us": head["time_us"] + 1, "events": list(events),
        }  # fmt: skip
        key = f"{log}{head['version'] + 1:020d}.json"
        self.store.put(key, hashed(commit | members))
        return key


def hash_in(data: bytes) -> bytes:
    return data[-66:-2] if data[-75:-66] == b',"hash":"' else b""


def kind_of(key: str) -> str:
    name = re.sub(r"^(.*/)?_log/", "", key)
    if name.endswith("_txn/_rights"):
        return "rights"
    for folder, kind in (("_txn/", "decision"), ("_cut/", "cut")):
        if folder in key and key.endswith(".json"):
            return kind
    if "/data/" in key:
        return "vectors" if key.endswith(".puffin") else "data file"
    if name == "latest.json":
        return "hint"
    for kind in ("snapshot", "manifest", "sidecar", "base"):
        if name.startswith(f"{kind}s/"):
            return kind
    return "commit"


def build() -> World:
    url = f"memory://{uuid.uuid4().hex}"
    world = World(url, MemoryStore.named(url))
    catalog = world.catalog()
    catalog.create_namespace("a", {"owner": "ada"})
    catalog.create_namespace("a.b")
    catalog.create_namespace("z")
    column = ViewColumn(name="id", type="long")
    engine.create_view(catalog, "a.v", ViewDefinition(text="SELECT 1 AS id", columns=(column,)))
    with (
        mock.patch.object(commits, "SIDECAR_FROM_FILES", 1),
        mock.patch.object(deletion_vectors, "INLINE_MAX_BYTES", 0),
    ):
        table = catalog.create_table("a.t", SCHEMA, partition_by=["part"])
        for n in range(2):
            table = table.append(rows(2 * n, 2 * n + 1))
        table = table.append(pa.concat_tables([rows(20, 22), rows(21, part="y"), rows(25, part="z")]))
        table = table.delete(col("id").is_in([1, 20]))
        table = table.append(pa.concat_tables([rows(30), rows(31, part="y")]))
    old = catalog.create_table("a.old", SCHEMA)
    for n in range(5):
        old = old.append(rows(200 + n))
    catalog.create_table("a.gone", SCHEMA).append(rows(1))
    catalog.drop_table("a.gone")
    catalog.create_table("z.rest", SCHEMA).append(rows(7, 8))
    catalog.rename_table("z.rest", "a.b.rest")
    catalog.rename_table("a.b.rest", "z.rest")
    table.create_tag("first")
    table.create_branch("line")
    logs = catalog._logs
    world.places = {
        name: logs.location(catalog.load_table(name).location) for name in ("a.t", "a.old", "z.rest")
    }
    expire(logs.table(world.places["a.old"]).log, 5)
    for name in ("a", "a.b", "z"):
        namespace = catalog._tree.namespace(tuple(name.split(".")))
        world.places[name] = namespace.tracked.location
        namespace.tracked.log.snapshot(namespace.view)
    logs.table(world.places["a.t"]).log.snapshot(logs.table(world.places["a.t"]).current())
    world.catalog().save_cut("monday")
    world.catalog().save_cut("monday", namespace="a")
    world.keep()
    return world
