"""Forgeries that were thought of: cycles, numbers of other keys, states of other logs, transactions that never end."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Any

from tests.integration.forging import hostile
from tests.integration.forging.forge import hashed, new_intent, sealed
from tests.integration.forging.forged_world import World

Forge = Callable[[World], Any]


def cases(world: World) -> dict[str, tuple[str, Forge]]:
    """Return each by its name: the key that is forged first, and how."""
    return {
        **_cycles(world),
        **_numbers(world),
        **_hints(world),
        **_transactions(world),
        **_vectors(world),
        **_files(world),
        **_names(world),
    }


def _linked(name: str, kind: str, id: str, location: str) -> dict[str, Any]:
    space = "namespace" if kind == "namespace" else "relation"
    return {
        "event": "entry-linked",
        "space": space,
        "name": name,
        "kind": kind,
        "id": id,
        "location": location,
    }


def adding(location: str, *events: dict[str, Any]) -> Forge:
    return lambda world: world.add_commit(location, *events)


def _id(location: str) -> str:
    return location[-26:]


def _cycles(world: World) -> dict[str, tuple[str, Forge]]:
    a, b, table = world.places["a"], world.places["a.b"], world.places["a.t"]
    links = {
        "a namespace that links itself": (a, _linked("self", "namespace", _id(a), a)),
        "a namespace that links its parent": (b, _linked("up", "namespace", _id(a), a)),
        "a namespace that links the root": (a, _linked("top", "namespace", "r" * 26, "")),
        "a namespace that links a table": (a, _linked("odd", "namespace", _id(table), table)),
        "a namespace that is linked as a table": (a, _linked("odd", "table", _id(b), b)),
        "a table that is linked twice": (a, _linked("again", "table", _id(table), table)),
        "a table that is nowhere": (a, _linked("lost", "table", "x" * 26, f"{a}/t-{'x' * 26}")),
        "a table far away": (a, _linked("far", "table", "x" * 26, "s3://no-such-bucket-of-lakelog/t")),
        "a table in no folder": (a, _linked("far", "table", "x" * 26, "/no/such/folder")),
        "a table of another scheme": (a, _linked("far", "table", "x" * 26, "gopher://host/t")),
    }
    found_pairs: dict[str, tuple[str, Forge]] = {
        name: (f"{location}/_log/0", adding(location, event)) for name, (location, event) in links.items()
    }

    def deep(world: World) -> None:
        above = a
        for n in range(400):
            id = f"{n:026d}".translate(str.maketrans("0123456789", "klmnopqrst"))
            below = f"n-{id}"
            world.add_commit(above, _linked("d", "namespace", id, below))
            first = world.plain(world.keys("commit")[0])
            created = {"event": "namespace-created", "properties": {}, "parent": above, "name": "d"}
            commit = {"kind": "commit", "format": 1, "log_id": id, "version": 1, "commit_id": id, "attempt_id": id,
                      "base": 0, "prev": "", "time_us": first["time_us"], "events": [created]}  # fmt: skip
            world.store.put(f"{below}/_log/{1:020d}.json", hashed(commit))
            above = below

    def dropped(world: World) -> None:
        unlinked = {
            "event": "entry-unlinked",
            "space": "namespace",
            "name": "self",
            "id": _id(a),
            "dropped": True,
        }
        world.add_commit(a, _linked("self", "namespace", _id(a), a), unlinked)

    found_pairs["400 namespaces in one another"] = f"{a}/_log/0", deep
    found_pairs["a namespace that has dropped itself"] = f"{a}/_log/0", dropped
    return found_pairs


def _numbers(world: World) -> dict[str, tuple[str, Forge]]:
    [base] = world.keys("base")
    second = base.replace(f"{1:020d}", f"{2:020d}")
    log = world.places["a.t"]
    commit = f"{log}/_log/{3:020d}.json"

    def many_bases(world: World) -> None:
        for number in range(2, 300):
            plain = world.plain(base)
            plain["number"] = plain["root"]["base"] = number
            world.store.put(base.replace(f"{1:020d}", f"{number:020d}"), hashed(plain))

    def base_of(number: int) -> Forge:
        def change(plain: Any) -> None:
            plain["number"] = plain["root"]["base"] = number

        return lambda world: world.alter(base, change)

    def far_base(plain: Any) -> None:
        plain["root"]["version"] = 2**53 - 1

    return {
        "base 1 at the key of base 2": (second, lambda world: world.store.put(second, world.objects[base])),
        "300 bases of one version": (base, many_bases),
        "a base of number 2^63-1": (base, base_of(2**63 - 1)),
        "a base of number 0": (base, base_of(0)),
        "a base of version 2^53-1": (base, lambda world: world.alter(base, far_base)),
        "a commit at another key": (
            commit,
            lambda world: world.store.put(commit, world.objects[f"{log}/_log/{2:020d}.json"]),
        ),
        "a commit far ahead": (
            commit,
            lambda world: world.store.put(f"{log}/_log/{10**18:020d}.json", world.objects[commit]),
        ),
        "a key above all numbers": (
            commit,
            lambda world: world.store.put(f"{log}/_log/{'9' * 20}.json", world.objects[commit]),
        ),
        "a key of other digits": (
            commit,
            lambda world: world.store.put(f"{log}/_log/{'٣' * 20}.json", world.objects[commit]),
        ),
    }


def _hints(world: World) -> dict[str, tuple[str, Forge]]:
    table, namespace = (f"{world.places[name]}/_log/latest.json" for name in ("a.t", "a"))

    def state(value: Any) -> Forge:
        return lambda world: world.alter(table, lambda plain: plain | {"state": value})

    def version(number: int) -> Forge:
        return lambda world: world.alter(table, lambda plain: plain | {"version": number})

    def counts(plain: Any) -> None:
        plain["state"]["files"] |= {"files": -5, "rows": -(10**12), "bytes": -1}

    found_pairs: dict[str, tuple[str, Forge]] = {
        "a hint of no hash, 100,000 deep": (
            table,
            lambda world: world.store.put(table, hostile.nested(100_000)),
        ),
        "a hint of no hash, 100,000 objects deep": (
            namespace,
            lambda world: world.store.put(namespace, hostile.nested(100_000, b"{")),
        ),
        "a hint of no state": (table, state(None)),
        "a hint of a text as state": (table, state("x")),
        "a hint of another kind": (table, state(world.plain(namespace)["state"])),
        "a hint of a number as files": (table, state(world.plain(table)["state"] | {"files": 7})),
        "a hint of counts below zero": (table, lambda world: world.alter(table, counts)),
        "a hint of version 2^63-1": (table, version(2**63 - 1)),
        "a hint of version 0": (table, version(0)),
        "a hint of 70 MB": (
            table,
            lambda world: world.store.put(table, sealed(b'{"x":"' + b"x" * 70_000_000 + b'"}')),
        ),
    }
    return found_pairs


def _transactions(world: World) -> dict[str, tuple[str, Forge]]:
    log = world.places["a.t"]
    key = f"{log}/_log/0"
    listed_intent = new_intent([log])

    def intent(decision: dict[str, Any] | None = None, **members: Any) -> Forge:
        def forge(world: World) -> None:
            commit = world.add_commit(
                log, {"event": "table-altered", "set": {}}, intent=listed_intent | members
            )
            if decision is not None:
                plain = {
                    "kind": "decision",
                    "format": 1,
                    "txn": listed_intent["txn"],
                    "commit_id": "c" * 26,
                    "outcome": "committed",
                }
                positions = {log: int(commit[-25:-5])}
                world.store.put(
                    f"{log}/_txn/{listed_intent['txn']}.json",
                    hashed(plain | {"positions": positions} | decision),
                )

        return forge

    return {
        "an intent of 10^15 logs": (key, intent(count=10**15, proof=["0" * 64] * 50)),
        "an intent of no log": (key, intent(count=0)),
        "an intent of 10^25 logs": (key, intent(count=10**25)),
        "an intent of 100,000 hashes": (key, intent(count=2**63 - 1, proof=["0" * 64] * 100_000)),
        "an intent of other hashes": (key, intent(proof=["x"])),
        "an intent of other logs": (key, intent(**new_intent([world.places["a.old"]]))),
        "a decision at the end of time": (key, intent({"time_us": 2**63 - 1})),
        "a decision of the year 9999": (key, intent({"time_us": 253_402_300_799_000_000})),
        "a decision before its intent": (key, intent({"time_us": 1})),
        "a decision of 100,000 logs": (
            key,
            intent({"time_us": 2_000_000_000_000_000, "positions": {f"t-{n}": n for n in range(100_000)}}),
        ),
        "a time of the year 9999": (
            key,
            lambda world: world.add_commit(log, time_us=253_402_300_799_000_000),
        ),
        "a time after that": (key, lambda world: world.add_commit(log, time_us=253_402_300_800_000_000)),
        "a fence at the end": (key, lambda world: world.add_commit(log, fence=2**63 - 1)),
        "a commit of no id": (key, lambda world: world.add_commit(log, commit_id="")),
        "a seal and a purge": (key, lambda world: world.add_commit(log, seals=True, purges=True)),
        "a log that begins anew": (key, lambda world: world.add_commit(log, reopens=True, log_id="n" * 26)),
    }


def _changed(*added: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"event": "files-changed", "operation": "append", "added": list(added), **members}


def _vectors(world: World) -> dict[str, tuple[str, Forge]]:
    log = world.places["a.old"]
    found_pairs: dict[str, tuple[str, Forge]] = {}
    path = next(key for key in sorted(world.objects) if key.startswith(f"{log}/data/")).removeprefix(
        f"{log}/"
    )
    size = len(world.objects[f"{log}/{path}"])
    for label, make in hostile.VECTORS.items():

        def forge(world: World, make: Callable[[], bytes] = make) -> None:
            blob = make()
            deletes = {
                "rows": 1,
                "size": len(blob),
                "crc": zlib.crc32(blob),
                "inline": base64.b64encode(blob).decode(),
            }
            file = {
                "path": path,
                "size": size,
                "rows": 2**32 - 1,
                "write": "w",
                "partition": {},
                "deletes": deletes,
            }
            gone = [{"path": path, "rows": 1, "size": size}]
            world.add_commit(log, _changed(file, removed=gone))

        found_pairs[f"a vector of {label}"] = f"{log}/_log/0", forge
    return found_pairs


def _files(world: World) -> dict[str, tuple[str, Forge]]:
    log = world.places["a.old"]
    good = {"path": "data/x.parquet", "size": 100, "rows": 10}
    files = {
        "that is not there": good,
        "of -5 rows": good | {"rows": -5},
        "of 2^62 rows": good | {"rows": 2**62},
        "of another spec": good | {"spec": 99},
        "of a partition that is not": good | {"partition": {"1000": "x", "77": 5}},
        "of bounds of other types": good | {"stats": {"1": {"lo": "x", "hi": True, "nulls": 1}}},
        "of huge bounds": good | {"stats": {"1": {"lo": 2**63 - 1, "hi": -(2**63), "nulls": 2**62}}},
        "of bounds beyond": good | {"stats": {"1": {"lo": 10**25, "hi": 10**30}}},
        "of constants that are not": good | {"constants": {"1": {"type": "decimal(77,5)", "value": "x"}}},
        "of strange names": good | {"names": {"1": "x" * 100_000}},
        "far away": good | {"path": "s3://no-such-bucket-of-lakelog/x.parquet"},
        "of another scheme": good | {"path": "gopher://host/x.parquet"},
        "on this machine": good | {"path": "/etc/hostname"},
        "of a long name": good | {"path": "data/" + "x" * 1000},
        "of a path of 10,000": good | {"path": "data/" + "x" * 10_000},
        "of an id of rows at the end": good | {"first_row": 2**63 - 1, "version": 2**63 - 1},
    }
    found_pairs: dict[str, tuple[str, Forge]] = {
        f"a file {title}": (f"{log}/_log/0", adding(log, _changed(file))) for title, file in files.items()
    }
    events: dict[str, dict[str, Any]] = {
        "a file twice": _changed(good, good),
        "a sidecar that is not there": _changed(added_sidecar=7),
        "a sidecar before the first": _changed(added_sidecar=-1),
        "counts below zero": _changed(added_files=-1, added_rows=-(10**15)),
        "a removal of what is not there": _changed(removed=[{"path": "data/x", "rows": 2**62, "size": 2**62}]),
        "a branch that is not there": {"event": "branch-files-changed", "operation": "append", "branch": "nowhere"},
        "a tag of nothing": {
            "event": "ref-set", "operation": "set ref", "name": "t", "kind": "tag", "id": "x", "of": "nowhere"
        },
        "a fast-forward of nothing": {"event": "fast-forwarded", "branch": "x", "to": "y"},
        "a constraint that is not there": {"event": "constraint-dropped", "name": "nowhere"},
        "an identity beyond BIGINT": {"event": "identity-taken", "column": 1, "first": 1, "last": 10**30},
        "a batch beyond": {"event": "stream-committed", "stream": "s", "batch": 10**30},
        "an unknown event": {"event": "x" * 5_000_000},
        "no event": {},
        "a rename of nothing": {"event": "entry-renamed", "space": "x", "name": "x", "id": "x", "new_name": "y"},
        "a schema of 200 levels": {"event": "schema-changed", "schema": {"last_id": 500, "fields": [_deep_field(60)]}},
        "a schema of 70 levels": {"event": "schema-changed", "schema": {"last_id": 500, "fields": [_deep_field(70)]}},
        "a schema of one id twice": {
            "event": "schema-changed",
            "schema": {"last_id": 9, "fields": [_field(1, "a", "long"), _field(1, "b", "long")]},
        },
        "a schema of an unknown type": {
            "event": "schema-changed", "schema": {"last_id": 9, "fields": [_field(1, "a", "decimal(999,999)")]}
        },
        "a schema of 30,000 columns": {
            "event": "schema-changed",
            "schema": {"last_id": 30_000, "fields": [_field(n, f"c{n}", "long") for n in range(1, 30_001)]},
        },
        "a partition by what is not there": {
            "event": "partitioning-changed",
            "spec": {"id": 7, "fields": [{"id": 1000, "source_id": 99, "name": "x", "transform": {"name": "day"},
                                          "result": {"kind": "atomic", "name": "date"}}]},
        },
        "a bucket of a float": {
            "event": "partitioning-changed",
            "spec": {"id": 7, "fields": [{"id": 1000, "source_id": 3, "name": "x",
                                          "transform": {"name": "bucket", "argument": 4},
                                          "result": {"kind": "atomic", "name": "integer"}}]},
        },
        "a creation anew": {"event": "table-created", "schema": {"last_id": 0, "fields": []},
                            "spec": {"id": 0, "fields": []}, "sort_order": {"fields": []}, "properties": {}},
        "properties of 5 MB": {"event": "table-altered", "set": {"x": "y" * 5_000_000}},
        "100,000 properties": {"event": "table-altered", "set": {f"k{n}": "" for n in range(100_000)}},
        "statistics that are not": {"event": "statistics-computed", "estimates": {"version": -1, "rows": 10**30,
                                    "size_bytes": 1, "columns": {"1": {"type": "nothing"}}}},
        "statistics of a type that is not": {"event": "statistics-computed", "estimates": {"version": 1, "rows": 1,
                                    "size_bytes": 1, "columns": {"1": {"type": "nothing", "min": "x", "max": []}}}},
        "an expiry of all": {"event": "history-expired", "version": 2**63 - 1},
    }  # fmt: skip
    for label, event in events.items():
        found_pairs[label] = f"{log}/_log/0", adding(log, event)
    return found_pairs


def _field(id: int, name: str, type: str) -> dict[str, Any]:
    return {"id": id, "name": name, "physical": f"{name}_{id}", "type": {"kind": "atomic", "name": type}}


def _deep_field(depth: int) -> dict[str, Any]:
    field = _field(depth + 1, "x", "long")
    for n in range(depth, 0, -1):
        field = _field(n, "x", "") | {"type": {"kind": "struct", "fields": [field]}}
    return field


def _names(world: World) -> dict[str, tuple[str, Forge]]:
    a = world.places["a"]
    view = {"kind": "view", "text": "SELECT 1", "columns": []}
    deep: Any = "long"
    for _ in range(80):
        deep = {"type": "struct", "fields": [{"name": "x", "type": deep, "nullable": True}]}
    events: dict[str, dict[str, Any]] = {
        "a view of a deep type": {
            "event": "entry-defined", "space": "relation", "name": "w", "id": "w" * 26,
            "definition": view | {"columns": [{"name": "x", "type": deep}]},
        },
        "a function among relations": {
            "event": "entry-defined", "space": "relation", "name": "v", "id": "w" * 26,
            "definition": {"kind": "function", "language": "sql", "body": "1"},
        },
        "an unlink of nothing": {
            "event": "entry-unlinked", "space": "relation", "name": "none", "id": "x" * 26, "dropped": True
        },
        "an unlink in no space": {"event": "entry-unlinked", "space": "none", "name": "none", "id": "x" * 26},
        "a rename of nothing": {
            "event": "entry-renamed", "space": "relation", "name": "none", "id": "x" * 26, "new_name": "y"
        },
        "a name of 5 MB": _linked("x" * 5_000_000, "table", "x" * 26, "t-x"),
        "a name of control characters": _linked("a\x1b[2J\n", "table", "x" * 26, f"{a}/t-{'x' * 26}"),
        "an empty name": _linked("", "table", "x" * 26, f"{a}/t-{'x' * 26}"),
        "a drop of the end of time": {"event": "files-vacuumed", "files": 1, "size_bytes": 10**30},
        "a location of a namespace": {"event": "namespace-altered", "set": {"location": "s3://no-such-bucket/x"}},
        "a location that is none": {"event": "namespace-altered", "set": {"location": "gopher://x/../.."}},
        "an event of a table": {"event": "table-dropped"},
        "another root": {"event": "namespace-created", "properties": {}},
    }  # fmt: skip
    return {f"{label} in a namespace": (f"{a}/_log/0", adding(a, event)) for label, event in events.items()}
