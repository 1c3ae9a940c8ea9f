"""A writer of plain tables in a folder, made from docs/minimal-writer.md alone: no code of lakelog, and no more than
the page asks for. It replays whole logs, so its tables are short, and nothing of them may have expired."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]

NOT_PLAIN = {"sidecars", "features", "writer_features", "reopens", "changes"}

TYPES = {"long": pa.int64(), "string": pa.string(), "double": pa.float64(), "date": pa.date32()}


class Refused(Exception):
    """This client does not write: the table needs more than it knows, or the change is in conflict."""


def new_id() -> str:
    return base64.b32encode(os.urandom(17)).decode().lower()[:26]


def with_hash(content: Json) -> bytes:
    plain = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(plain).hexdigest()
    return plain[:-1] + b',"hash":"' + digest.encode() + b'"}'


def put_if_absent(path: Path, content: bytes) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".lakelog-tmp-{new_id()}"
    temporary.write_bytes(content)
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    finally:
        temporary.unlink()


@dataclass
class State:
    """A table or a namespace at its head, as far as an append or a new name needs it."""

    head: Json = field(default_factory=dict)
    commits: list[Json] = field(default_factory=list)
    settles: Json | None = None
    sealed: bool = False
    link: tuple[str, str] | None = None
    schema: Json = field(default_factory=dict)
    spec: Json = field(default_factory=dict)
    constraints: list[Json] = field(default_factory=list)
    next_row: int = 0
    taken: set[str] = field(default_factory=set)

    def apply(self, commit: Json, settled: Json | None) -> None:
        self.head, self.settles = commit, settled
        self.commits.append(commit)
        if settled is not None and settled["outcome"] == "aborted":
            return
        self.sealed = commit.get("seals", False)
        for event in commit.get("events", []):
            match event["event"]:
                case "table-created":
                    self.schema, self.spec = event["schema"], event["spec"]
                    self.link = (event["namespace"], event["name"])
                case "schema-changed":
                    self.schema = event["schema"]
                case "constraint-added":
                    self.constraints.append(event["constraint"])
                case "files-changed":
                    ends = (entry["first_row"] + entry["rows"] for entry in event.get("added", []))
                    self.next_row = max([self.next_row, *ends])
                case "table-moved":
                    self.link = (event["namespace"], event["name"])
                case "entry-linked" | "entry-defined" | "entry-unlinked" | "entry-forgotten":
                    name = event.get("name", event["id"])
                    (self.taken.discard if "unlinked" in event["event"] else self.taken.add)(name)
                case "entry-renamed":
                    self.taken ^= {event["name"], event["new_name"]}
                case "namespace-created" | "namespace-altered" | "table-altered" | "table-dropped":
                    pass
                case unknown:
                    raise Refused(f"an event {unknown}")


def read(folder: Path) -> State:
    state = State()
    commits: list[Json] = []
    while (path := folder / "_log" / f"{len(commits) + 1:020d}.json").exists():
        commits.append(checked(path))
    for number, stored_commit in enumerate(commits):
        if stored_commit["kind"] != "commit" or stored_commit.keys() & NOT_PLAIN:
            raise Refused("a log that is not plain")
        settled = None
        if "intent" in stored_commit:
            next_commit = commits[number + 1] if number + 1 < len(commits) else None
            settled = next_commit["settles"] if next_commit else decision(folder, stored_commit["intent"])
        state.apply(stored_commit, settled)
    return state


def checked(path: Path) -> Json:
    content = path.read_bytes()
    stored: Json = json.loads(content)
    if with_hash({name: value for name, value in stored.items() if name != "hash"}) != content:
        raise Refused("a damaged object")
    return stored


def decision(folder: Path, intent: Json) -> Json:
    """Return the outcome of an intent at the head. Folders here are never opened by another path."""
    warehouse = Path(str(folder).removesuffix(intent["log"]))
    path = warehouse / intent["folder"] / "_txn" / f"{intent['txn']}.json"
    if not path.exists():
        raise Refused("a transaction is under way")
    stored = checked(path)
    return {name: stored[name] for name in ("outcome", "time_us") if name in stored}


def time_of(state: State) -> int:
    return max(state.head["time_us"], (state.settles or {}).get("time_us", 0))


def commit(folder: Path, base: State, decide: Callable[[State], Json]) -> int:
    """Commit the members that `decide` returns for the head, and return the version."""
    commit_id, state = new_id(), base
    while True:
        version = len(state.commits) + 1
        now_us = time.time_ns() // 1000
        content = {
            "kind": "commit",
            "format": 1,
            "log_id": state.head["log_id"],
            "version": version,
            "commit_id": commit_id,
            "attempt_id": new_id(),
            "base": len(base.commits),
            "prev": state.head["hash"],
            "time_us": max(now_us, time_of(state) + 1),
            "writer": {"client": "minimal"},
        }
        members = decide(state)
        events = members.pop("events")
        content |= members | ({"settles": state.settles} if state.settles else {}) | {"events": events}
        if put_if_absent(folder / "_log" / f"{version:020d}.json", with_hash(content)):
            return version
        state = read(folder)


def append(folder: Path, base: State, rows: Sequence[pa.Table]) -> int:
    """Append tables of rows, each as a file. All columns come by their names; the table has no partitions."""
    fields = base.schema["fields"]
    for column in fields:
        if column.keys() & {"generated", "identity"} or column["type"].get("name") not in TYPES:
            raise Refused(f"the column {column['name']}")
    if base.constraints or base.spec.get("fields"):
        raise Refused("a constraint, or partitions")
    write, started_count = new_id(), len(base.commits)
    entries = []
    for number, table in enumerate(rows):
        path = f"data/{started_count:020d}-{write}-{number}.parquet"
        (folder / "data").mkdir(exist_ok=True)
        schema = pa.schema(
            [
                pa.field(
                    column["physical"],
                    TYPES[column["type"]["name"]],
                    column.get("nullable", True),
                    {"PARQUET:field_id": str(column["id"])},
                )
                for column in fields
            ]
        )
        pq.write_table(
            table.select([column["name"] for column in fields]).rename_columns(schema.names).cast(schema),
            folder / path,
        )
        entries.append({"path": path, "size": (folder / path).stat().st_size, "rows": table.num_rows})

    def decide(state: State) -> Json:
        for later in state.commits[started_count:]:
            if later.get("fence", 0) > started_count or later.get("seals") or later.get("restores"):
                raise Refused("a fence or a seal")
        if state.schema != base.schema or state.constraints or state.link != base.link:
            raise Refused("a conflict")
        first_row, added = state.next_row, []
        for entry in entries:
            added.append(
                {
                    **entry,
                    **({"spec": state.spec["id"]} if "id" in state.spec else {}),
                    "write": write,
                    "first_row": first_row,
                }
            )
            first_row += entry["rows"]
        event = {
            "event": "files-changed",
            "operation": "append",
            "added": added,
            "added_files": len(added),
            "added_rows": sum(entry["rows"] for entry in entries),
            "added_bytes": sum(entry["size"] for entry in entries),
        }
        return {"write": {"id": write, "version": started_count}, "events": [event]}

    return commit(folder, base, decide)


def create_table(warehouse: Path, namespace: str, name: str, columns: dict[str, str]) -> Path:
    """Create a table in the namespace at a location of the warehouse."""
    id = new_id()
    location = f"{namespace}/t-{id}" if namespace else f"t-{id}"
    fields = [
        {
            "id": number,
            "name": column,
            "physical": f"{column}_{number}",
            "type": {"kind": "atomic", "name": type},
        }
        for number, (column, type) in enumerate(columns.items(), 1)
    ]
    event = {
        "event": "table-created",
        "schema": {"fields": fields, "last_id": len(fields)},
        "spec": {},
        "sort_order": {},
        "properties": {},
        "namespace": namespace,
        "name": name,
    }
    first = {
        "kind": "commit",
        "format": 1,
        "log_id": id,
        "version": 1,
        "commit_id": new_id(),
        "attempt_id": new_id(),
        "base": 0,
        "prev": "",
        "time_us": time.time_ns() // 1000,
        "writer": {"client": "minimal"},
        "events": [event],
    }
    put_if_absent(warehouse / location / "_log" / f"{1:020d}.json", with_hash(first))

    def link(state: State) -> Json:
        if state.sealed or state.taken & {name, id}:
            raise Refused("a taken name")
        entry = {"space": "relation", "name": name, "kind": "table", "id": id, "location": location}
        return {"events": [{"event": "entry-linked", **entry}]}

    commit(warehouse / namespace, read(warehouse / namespace), link)
    return warehouse / location
