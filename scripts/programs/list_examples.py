"""The site's examples of lists of files: entries in events, and the Arrow streams of sidecars, manifests and packs.

All are from the golden files, as in `format_examples`. A stream is shown as a table of its first rows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from programs.format_examples import GOLDEN, ROOT, Stored, best, events, pretty, states

ROWS = 2
"""So many rows of a stream are shown."""

CELL = 80
"""Longer values are cut."""


@dataclass(frozen=True, slots=True)
class ArrowStream:
    """An Arrow stream of the golden files, and the file that it is in."""

    path: Path
    data: bytes

    @property
    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.data).read_all()

    @property
    def source(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def entries(fits: Callable[[dict[str, Any]], bool]) -> list[Stored]:
    """Return the entries of added files in events that fit."""
    return [
        Stored(event.path, entry)
        for event in events()
        for entry in event.value.get("added", ())
        if fits(entry)
    ]


def streams(*names: str) -> list[ArrowStream]:
    """Return the sidecars and manifests that have all these columns."""
    paths = sorted(
        path
        for kind in ("sidecars/*.bin", "manifests/*.arrow")
        for path in (GOLDEN / "catalog").rglob(f"_log/{kind}")
    )
    arrow_streams = [ArrowStream(path, path.read_bytes()) for path in paths]
    return [stream for stream in arrow_streams if set(names) <= set(stream.table.column_names)]


def richest(candidates: Sequence[ArrowStream]) -> ArrowStream:
    """Return the stream with the most columns. The shortest wins if several have as many."""
    return min(
        candidates, key=lambda stream: (-len(stream.table.column_names), len(stream.data), stream.source)
    )


def bounds_of(state: dict[str, Any]) -> bytes:
    return base64.b64decode(state.get("hints", state)["bounds"])


def list_examples() -> Iterator[str]:
    """Yield the parts of the page."""
    yield "# Lists of files"
    yield (
        "What they mean is in [catalog/README.md](../../catalog/README.md), under *Files* and *Snapshots*. A table\n"
        f"here has the columns of an Arrow stream, with the values of its first {ROWS} rows. Long values are cut."
    )
    vector = best(entries(lambda entry: "path" in entry.get("deletes", ())))
    yield from _json_example("An entry with deleted rows, in an object", vector)
    foreign = best(entries(lambda entry: "names" in entry and "constants" in entry))
    yield from _json_example("An entry of another writer's file", foreign)
    sidecars = [stream for stream in streams("path") if stream.path.suffix == ".bin"]
    removals = [stream for stream in sidecars if stream.table.column_names == ["path", "rows", "size"]]
    yield from _example(
        "A sidecar of added files", richest([stream for stream in sidecars if stream not in removals])
    )
    yield from _example("A sidecar of removed files", richest(removals))
    manifests = [stream for stream in streams("path", "spec") if stream.path.suffix == ".arrow"]
    yield from _example("A manifest", richest(manifests))
    yield from _example("A list of removed paths", richest(streams("path", "seq")))
    packed = best(
        [state for state in states("table") if "packs" in state.value and "removed" in state.value["files"]]
    )
    yield from _json_example("A table's state, with packs and removed paths", packed)
    name, pack = next(iter(packed.value["packs"].items()))
    path = next((GOLDEN / "catalog").rglob(f"_log/manifests/{name}"))
    for kind, (first, size) in zip(pack["kinds"], pack["places"][0], strict=True):
        part = ArrowStream(path, path.read_bytes()[first : first + size])
        yield from _example(f"A leaf of a pack: the part `{kind}`", part)
    yield from _example("`bounds` of that state", ArrowStream(packed.path, bounds_of(packed.value)))


def _json_example(title: str, stored: Stored) -> tuple[str, str, str]:
    return f"## {title}", f"```json\n{pretty(stored.value)}\n```", f"From `{stored.source}`."


def _example(title: str, stream: ArrowStream) -> tuple[str, str, str]:
    rows = stream.table.slice(0, ROWS)
    head = ["column", "type", *(f"row {number}" for number in range(1, rows.num_rows + 1))]
    lines = [head, ["---"] * len(head)]
    for field in rows.schema:
        lines.append([f"`{field.name}`", str(field.type), *map(_cell, rows[field.name].to_pylist())])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {title}", text, f"Of {stream.table.num_rows} rows, from `{stream.source}`."


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    text = json.dumps(value, ensure_ascii=False, default=str).replace("|", "\\|")
    return f"`{text}`" if len(text) <= CELL else f"`{text[: CELL - 1]}…`"
