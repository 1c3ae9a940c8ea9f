"""Objects as any client can forge them that may write a folder: any members, with a valid hash. And stores that note
requests."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log import LogOptions, MemoryStore
from lakelog.log.participants import folder_of, intents_of

SCHEMA = pa.schema([("id", pa.int64())])
OPTIONS = LogOptions(
    snapshot_every_versions=0,
    in_background=lambda name, work: work(),
    patience_s=0.0,
    patience_each_s=0.0,
    sleep_s=lambda seconds: None,
)


class Noting(MemoryStore):
    """Notes which keys it was asked for, read, written or deleted, and which prefixes were listed."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.touched: set[str] = set()
        MemoryStore._named[url] = self

    def get(self, key: str) -> bytes | None:
        self.touched.add(key)
        return super().get(key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.touched.add(key)
        return super().put_if_absent(key, data)

    def put(self, key: str, data: bytes) -> None:
        self.touched.add(key)
        super().put(key, data)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        self.touched.add(prefix)
        return super().list_after(prefix, after)

    def delete(self, keys: Sequence[str]) -> None:
        self.touched.update(keys)
        super().delete(keys)

    def open_input(self, key: str) -> BinaryIO:
        self.touched.add(key)
        return super().open_input(key)


@dataclass
class Place:
    """A warehouse with a table of the forger's and one of another user's, and a place outside of it."""

    url: str
    store: Noting
    outside: Noting
    own: str
    victim: str
    good: dict[str, bytes] = field(default_factory=dict)
    theirs: str = ""
    """A transaction of other logs, to whose decision nothing in the forger's log may lead."""

    def catalog(self) -> Catalog:
        return Catalog(self.url, log_options=OPTIONS)

    @property
    def head(self) -> int:
        return self.last(self.own)

    def last(self, location: str) -> int:
        return max(int(key[-25:-5]) for key in self.store.list_after(f"{location}/_log/0"))

    def commit_key(self, location: str, version: int) -> str:
        return f"{location}/_log/{version:020d}.json"

    def read(self, key: str) -> dict[str, Any]:
        return msgspec.json.decode(self.store.get(key) or b"{}")

    def forge_next(self, **members: Any) -> str:
        """Put a commit after the forger's head that has these members, or a function of their values; None: none."""
        head = self.read(self.commit_key(self.own, self.head))
        commit = {name: head[name] for name in ("kind", "format", "log_id", "time_us") if name in head} | {
            "version": head["version"] + 1,
            "commit_id": "c" * 26,
            "attempt_id": "d" * 26,
            "base": head["version"],
            "prev": head["hash"],
            "time_us": head["time_us"] + 1,
            "events": [],
        }
        key = self.commit_key(self.own, head["version"] + 1)
        self.store.put(key, hashed(commit | members))
        return key

    def child(self, above: str, name: str) -> str:
        """Create a namespace in the forger's, and return its location."""
        folders_before = set(self.store.list_folders(f"{above}/"))
        self.catalog().create_namespace(("forger", name))
        [text] = set(self.store.list_folders(f"{above}/")) - folders_before
        return f"{above}/{text}"

    def alter(self, key: str, change: Callable[[dict[str, Any]], None]) -> str:
        plain = self.read(key)
        change(plain)
        self.store.put(key, hashed(plain))
        return key


def hashed(plain: dict[str, Any]) -> bytes:
    """Return an object's bytes with a valid hash, whatever its members are."""
    plain = {name: value for name, value in plain.items() if name != "hash"}
    return sealed(msgspec.json.encode(plain))


def sealed(text: bytes) -> bytes:
    """Return the text of an object, which ends with a brace, with a valid hash of its own."""
    return text[:-1] + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}'


def new_intent(
    participants: list[str],
    *,
    log: str | None = None,
    folder: str | None = None,
    warehouse: str = "",
    **members: Any,
) -> dict[str, Any]:
    """Return the intent of a log, the first one unless `log` is given, of a transaction of these logs. For a log that
    is not among them, its name stands in the first one's."""
    own = participants[0] if log is None else log
    where = folder_of(participants) if folder is None else folder
    at = participants.index(own) if own in participants else 0
    found_intent = intents_of("x" * 26, where, participants, warehouse)[at]
    return msgspec.to_builtins(found_intent) | {"log": own} | members


def build() -> Place:
    url = f"memory://{uuid.uuid4().hex}"
    store, outside = Noting(url), Noting(f"{url}-outside")
    catalog = Catalog(url, log_options=OPTIONS)
    for name in ("forger", "victim"):
        catalog.create_namespace(name)
        table = catalog.create_table(f"{name}.t", SCHEMA)
        for n in range(3):
            table = table.append(pa.table({"id": [n]}, schema=SCHEMA))
    own, victim = (
        catalog.load_table(f"{name}.t").location.removeprefix(f"{url}/") for name in ("forger", "victim")
    )
    catalog.save_cut("monday")
    for n in range(3):
        outside.put(f"victim/{n}", b"precious")
    outside.put("_txn/precious.json", b"precious")
    place = Place(url, store, outside, own, victim)
    place.good = {key: store.get(key) or b"" for key in store.list_after("")}
    return place
