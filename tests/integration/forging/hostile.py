"""What a forger puts into an object: values of every wrong kind, as JSON text, and lists of files as Arrow."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from tests.integration.forging.forge import sealed

from lakelog.catalog.core.files import arrow_lists

BIG = 10_000_000


def nested(depth: int, what: bytes = b"[") -> bytes:
    opened_data, closed_data = (b"[", b"]") if what == b"[" else (b'{"a":', b"}")
    return opened_data * depth + (b"" if what == b"[" else b"1") + closed_data * depth


VALUES: dict[str, Callable[[], bytes]] = {
    "-1": lambda: b"-1",
    "zero": lambda: b"0",
    "2^31": lambda: b"2147483648",
    "2^63-1": lambda: b"9223372036854775807",
    "2^63": lambda: b"9223372036854775808",
    "10^15": lambda: b"1000000000000000",
    "10^4000": lambda: b"1" + b"0" * 4000,
    "10^100000": lambda: b"1" + b"0" * 100_000,
    "a time after the year 9999": lambda: b"253402300800000000",
    "1.5": lambda: b"1.5",
    "1e308": lambda: b"1e308",
    "null": lambda: b"null",
    "true": lambda: b"true",
    "an empty text": lambda: b'""',
    "a text of 10 MB": lambda: b'"' + b"x" * BIG + b'"',
    "a text of 7 MB": lambda: b'"' + b"x" * 7_000_000 + b'"',
    "a text of 300": lambda: b'"' + b"x" * 300 + b'"',
    "a text": lambda: b'"x"',
    "a name of a column": lambda: b'"id"',
    "control characters": lambda: b'"a\\u0000\\n\\u001b[2J"',
    "a lone surrogate": lambda: b'"\\ud800"',
    "dots": lambda: b'"../.."',
    "an absolute path": lambda: b'"/etc/hostname"',
    "a URL": lambda: b'"s3://nowhere/x"',
    "an id": lambda: b'"' + b"z" * 26 + b'"',
    "a hash": lambda: b'"' + b"0" * 64 + b'"',
    "an empty list": lambda: b"[]",
    "an empty object": lambda: b"{}",
    "100,000 lists": lambda: nested(100_000),
    "100,000 objects": lambda: nested(100_000, b"{"),
    "900 lists": lambda: nested(900),
    "240 objects": lambda: nested(240, b"{"),
    "a million lists": lambda: b"[" + b"[]," * 1_000_000 + b"[]]",
    "2.6 million lists": lambda: b"[" + b"[]," * 2_600_000 + b"[]]",
    "a million numbers": lambda: b"[" + b"1," * 1_000_000 + b"1]",
    "100,000 members": lambda: msgspec.json.encode({f"k{n}": n for n in range(100_000)}),
    "100,000 texts": lambda: msgspec.json.encode([f"k{n}" for n in range(100_000)]),
    "no JSON": lambda: b"nonsense",
}


def paths_of(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where each member of a JSON value is, itself left out."""
    found = []
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, member in members:
        found += [(*at, key), *paths_of(member, (*at, key))]
    return found


MARK = "@forged@"


def with_value(plain: Any, path: tuple[Any, ...], text: bytes) -> bytes:
    """Return an object as JSON with `text` in the place of one member, which need not be JSON; with a valid hash."""
    plain = msgspec.json.decode(msgspec.json.encode(plain))
    holder = plain
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = MARK
    return sealed(msgspec.json.encode(plain).replace(f'"{MARK}"'.encode(), text))


def twice(plain: dict[str, Any], member: str, text: bytes) -> bytes:
    """Return an object that has a member twice."""
    encoded_data = msgspec.json.encode(plain)
    return sealed(encoded_data[:-1] + b"," + msgspec.json.encode(member) + b":" + text + b"}")


def without(plain: Any, path: tuple[Any, ...]) -> bytes:
    plain = msgspec.json.decode(msgspec.json.encode(plain))
    holder = plain
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return sealed(msgspec.json.encode(plain))


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few bits flipped, or cut, or doubled in a part."""
    if not data:
        return b"\0"
    match rng.randrange(4):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1:
            at = rng.randrange(len(data))
            return data[:at] + data[at : at + rng.randint(1, 64)] + data[at:]
        case _:
            changed = bytearray(data)
            for _ in range(rng.choice((1, 1, 3, 20))):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            return bytes(changed)


# Lists of files


def _with(name: str, make: Callable[[int], Any]) -> Callable[[pa.Table], bytes]:
    def forge(table: pa.Table) -> bytes:
        column = make(table.num_rows)
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, column)
        else:
            table = table.append_column(name, column)
        return arrow_lists.encode_table(table)

    return forge


def bomb(size: int = 400_000_000) -> bytes:
    """Return a list of files of some KB that expands to that many bytes."""
    zeros = np.zeros(size // 8, dtype=np.int64)
    return arrow_lists._written(pa.table({"size": zeros}), "zstd")


def _doubled_data(table: pa.Table) -> bytes:
    arrays = [*table.columns, table.column("path")]
    return arrow_lists._written(pa.Table.from_arrays(arrays, [*table.column_names, "path"]), "zstd")


LISTS: dict[str, Callable[[pa.Table], bytes]] = {
    "that expands to 400 MB": lambda table: bomb(),
    "with a column twice": _doubled_data,
    "without columns": lambda table: arrow_lists._written(table.select([]), "zstd"),
    "without paths": lambda table: arrow_lists._written(table.drop_columns(["path"]), "zstd"),
    "of numbers as paths": _with("path", lambda rows: pa.array([1] * rows)),
    "of NULL paths": _with("path", lambda rows: pa.nulls(rows, pa.string())),
    "of one path": _with("path", lambda rows: pa.array(["data/x"] * rows)),
    "of paths of 10 MB": _with("path", lambda rows: pa.array(["x" * BIG] * rows)),
    "of negative rows": _with("rows", lambda rows: pa.array([-5] * rows)),
    "of 2^62 rows": _with("rows", lambda rows: pa.array([2**62] * rows)),
    "of 2^62 bytes": _with("size", lambda rows: pa.array([2**62] * rows)),
    "of an unknown spec": _with("spec", lambda rows: pa.array([77] * rows, pa.int32())),
    "of lists": _with("nulls1", lambda rows: pa.array([[1]] * rows)),
    "of a dictionary": _with("write", lambda rows: pa.array(["x"] * rows).dictionary_encode()),
    "of deep deletes": _with("deletes", lambda rows: pa.array(["[" * 100_000] * rows)),
    "of wrong deletes": _with("deletes", lambda rows: pa.array(['{"rows":1}'] * rows)),
    "of deep constants": _with("constants", lambda rows: pa.array(["[" * 100_000] * rows)),
    "of strange constants": _with(
        "constants", lambda rows: pa.array(['{"1":{"type":"decimal(99,9)","value":"x"}}'] * rows)
    ),
    "of wrong names": _with("names", lambda rows: pa.array(['{"x":1}'] * rows)),
    "of texts as bounds": _with("lo1", lambda rows: pa.array(["x"] * rows)),
    "of times as bounds": _with("lo1", lambda rows: pa.array([2**62] * rows, pa.timestamp("us"))),
    "of texts as counts": _with("nulls1", lambda rows: pa.array(["x"] * rows)),
    "of bounds of no column": _with("lo99999999999999999999", lambda rows: pa.array([1] * rows)),
    "of partitions of another type": _with("p1000", lambda rows: pa.array([b"\xff"] * rows, pa.binary())),
    "of a huge first row": _with("first_row", lambda rows: pa.array([2**63 - 1] * rows)),
    "of deleted rows beyond all": _with("deleted", lambda rows: pa.array([2**63 - 1] * rows)),
    "of nothing": lambda table: b"",
    "of JSON": lambda table: b"{}",
}


VECTORS: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "noise": lambda: random.Random(1).randbytes(64),
    "a cookie alone": lambda: (12346).to_bytes(4, "little"),
    "65536 containers and none": lambda: (12346).to_bytes(4, "little") + (65536).to_bytes(4, "little"),
    "2^32 containers": lambda: (12346).to_bytes(4, "little") + b"\xff" * 4,
    "keys that go back": lambda: _arrays([(5, [1]), (3, [2])]),
    "one key twice": lambda: _arrays([(0, [1]), (0, [2])]),
    "values that go back": lambda: _arrays([(0, [9, 3, 9])]),
    "a run over the end": lambda: _runs([(0, [(65535, 65535)])]),
    "runs over one another": lambda: _runs([(0, [(0, 100), (50, 100)])]),
    "a run of 2^32": lambda: _runs([(key, [(0, 65535)]) for key in range(65536)]),
    "a count that is wrong": lambda: _arrays([(0, [1, 2])], cardinality=60_000),
}


def _arrays(containers: list[tuple[int, list[int]]], cardinality: int | None = None) -> bytes:
    head = (12346).to_bytes(4, "little") + len(containers).to_bytes(4, "little")
    keys = b"".join(
        key.to_bytes(2, "little") + ((cardinality or len(values)) - 1).to_bytes(2, "little")
        for key, values in containers
    )
    at = len(head) + len(keys) + 4 * len(containers)
    offsets, bodies = b"", b""
    for _, values in containers:
        offsets += (at + len(bodies)).to_bytes(4, "little")
        bodies += b"".join(value.to_bytes(2, "little") for value in values)
    return head + keys + offsets + bodies


def _runs(containers: list[tuple[int, list[tuple[int, int]]]]) -> bytes:
    count = len(containers)
    head = (12347 | (count - 1) << 16).to_bytes(4, "little") + b"\xff" * ((count + 7) // 8)
    keys = b"".join(key.to_bytes(2, "little") + b"\xff\xff" for key, _ in containers)
    at = len(head) + len(keys) + (4 * count if count >= 4 else 0)
    offsets, bodies = b"", b""
    for _, runs in containers:
        offsets += (at + len(bodies)).to_bytes(4, "little")
        bodies += len(runs).to_bytes(2, "little")
        bodies += b"".join(start.to_bytes(2, "little") + more.to_bytes(2, "little") for start, more in runs)
    return head + keys + (offsets if count >= 4 else b"") + bodies
