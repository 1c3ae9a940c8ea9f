"""The site's examples of the format, and its JSON Schemas: an example of every kind of object and event.

They are made from the golden files and from the structs of what is stored, and are not kept in the repository. Nothing
here knows what an object means: an example is the golden one that says the most in the fewest words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from lakelog.catalog.core.ddl.saved_cuts import CutVersions
from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent
from lakelog.catalog.core.state.namespace_projection import _Root as NamespaceRoot
from lakelog.catalog.core.state.table_projection import _Root as TableRoot
from lakelog.log.format import Base, Commit, Decision, Proposal, Root, Tombstone

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "format"
WIDTH = 110

Objects = Callable[[dict[str, Any]], bool]

OF_THE_LOG: dict[str, Objects] = {
    "Commit": lambda it: it["kind"] == "commit" and "write" in it,
    "Commit of several changes": lambda it: it["kind"] == "commit" and "changes" in it,
    "Commit with a sidecar": lambda it: it["kind"] == "commit" and "sidecars" in it,
    "Commit that seals": lambda it: it["kind"] == "commit" and "seals" in it and "intent" not in it,
    "Commit that reopens": lambda it: it["kind"] == "commit" and "reopens" in it,
    "Commit that restores": lambda it: it["kind"] == "commit" and "restores" in it,
    "Commit that purges": lambda it: it["kind"] == "commit" and "purges" in it,
    "Intent": lambda it: it["kind"] == "commit" and "intent" in it,
    "Commit that settles an intent": lambda it: it["kind"] == "commit" and "settles" in it,
    "Decision: committed": lambda it: it["kind"] == "decision" and it["outcome"] == "committed",
    "Decision: aborted": lambda it: it["kind"] == "decision" and it["outcome"] == "aborted",
    "Tombstone": lambda it: it["kind"] == "tombstone",
    "Tombstone of several changes": lambda it: it["kind"] == "tombstone" and "applied" in it,
    "Tombstone of an intent": lambda it: it["kind"] == "tombstone" and "outcome" in it,
    "Snapshot": lambda it: it["kind"] == "snapshot",
    "Base": lambda it: it["kind"] == "base",
}
"""The objects of a log by their titles in the examples."""

NOT_WRITTEN = frozenset({"namespace-moved"})
"""Events that the format has and that no client writes yet."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A JSON object among the golden files, or a part of one, and the file that has it."""

    path: Path
    value: dict[str, Any]

    @property
    def source(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def of_logs() -> Iterator[Stored]:
    """Yield the golden objects of the log by itself."""
    return _read(GOLDEN / "log-1")


def of_warehouses() -> Iterator[Stored]:
    """Yield the golden objects of warehouses."""
    return _read(GOLDEN / "catalog")


def _read(folder: Path) -> Iterator[Stored]:
    for path in sorted(folder.rglob("*.json")):
        yield Stored(path, json.loads(path.read_bytes()))


def events() -> Iterator[Stored]:
    """Yield the events of all golden warehouses."""
    for stored in of_warehouses():
        for event in stored.value.get("events", ()):
            yield Stored(stored.path, event)


def states(kind: str) -> Iterator[Stored]:
    """Yield the states in snapshots and bases, of logs of this kind: `namespace` or `table`."""
    for stored in of_warehouses():
        root = stored.value.get("root", stored.value)
        if (
            root.get("kind") == "snapshot"
            and "state" in root
            and ("metadata" in root["state"]) == (kind == "table")
        ):
            yield Stored(stored.path, root["state"])


def cuts() -> Iterator[Stored]:
    return (stored for stored in of_warehouses() if stored.path.parent.name == "_cut")


def tags(union: Any) -> list[str]:
    return [struct.__struct_config__.tag for struct in get_args(union)]


def variant(event: Mapping[str, Any]) -> str:
    """Return the form of an event of which there are several, "" of others."""
    match event["event"]:
        case "ref-set" | "ref-dropped":
            return str(event["kind"])
        case "constraint-added":
            return str(event["constraint"]["kind"])
        case "entry-defined":
            return str(event["definition"]["kind"])
        case "files-vacuumed" if event["begun"]:
            return "folders of creations"
        case "rolled-back":
            return "the rows alone" if event["metadata"] is None else "everything"
        case _:
            return ""


def best(candidates: list[Stored]) -> Stored:
    """Return the one in which most members say something; of these, the shortest."""

    def rank(stored: Stored) -> tuple[int, int, str]:
        said = sum(value not in (None, [], {}, "", 0, False) for value in stored.value.values())
        return (-said, len(json.dumps(stored.value)), stored.source)

    return min(candidates, key=rank)


def pretty(value: Any, indent: int = 0, before: int = 0) -> str:
    """Return JSON in which what fits into a line stands in one; `before` characters precede it in its line."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) <= WIDTH or not value or not isinstance(value, dict | list):
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = []
        for name, each in value.items():
            key = f"{json.dumps(name, ensure_ascii=False)}: "
            parts.append(f"{pad}{key}{pretty(each, indent + 2, len(key))}")
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return (
        "[\n" + ",\n".join(f"{pad}{pretty(each, indent + 2)}" for each in value) + "\n" + " " * indent + "]"
    )


def examples() -> str:
    """Return the page of examples."""
    parts = [
        "# Examples of the format",
        "One of each kind of object and event, as the golden files have it. Line breaks and spaces are added here;\n"
        "stored objects have none.\n"
        "The JSON Schemas are [log.schema.json](log.schema.json) and [catalog.schema.json](catalog.schema.json).",
        "# Objects of a log",
        "What they mean is in [log/README.md](../../log/README.md). Events and states here are a test's: to the log\n"
        "they are opaque. Sidecars and manifests are not JSON: those of tables are Arrow IPC streams, with the\n"
        "columns that [catalog/README.md](../../catalog/README.md) lists under *Files*.",
    ]
    logs = list(of_logs())
    for title, fits in OF_THE_LOG.items():
        parts += _example(title, [stored for stored in logs if fits(stored.value)])
    parts += [
        "# Events of namespaces",
        "What they mean is in [catalog/README.md](../../catalog/README.md).",
        *_examples_of(NamespaceEvent, "root", "n-"),
        "# Events of tables",
        *_examples_of(TableEvent, "t-"),
        "# States in snapshots and bases",
        *_example("A namespace's state", [each for each in states("namespace") if "paged" not in each.value]),
        *_example(
            "A namespace's state, of names in pages",
            [each for each in states("namespace") if "paged" in each.value],
        ),
        *_example("A table's state", list(states("table"))),
        "# Other objects",
        *_example("A saved cut", list(cuts())),
    ]
    return "\n\n".join(parts) + "\n"


def _examples_of(union: Any, *folders: str) -> Iterator[str]:
    """Yield an example of each event of logs that are in these folders, and of each of its variants."""
    found: dict[str, dict[str, list[Stored]]] = {}
    for stored in events():
        # <folder>/_log/<version>.json; the root's folder is the golden warehouse.
        folder = stored.path.parents[1].name
        home = "root" if stored.path.parents[2] == GOLDEN / "catalog" else folder[:2]
        # Names that lead to no table are poor examples.
        if home in folders and "names_v1" not in stored.path.parts:
            found.setdefault(stored.value["event"], {}).setdefault(variant(stored.value), []).append(stored)
    for tag in tags(union):
        if tag not in NOT_WRITTEN:
            for form, candidates in sorted(found[tag].items()):
                yield from _example(f"`{tag}`" + (f": {form}" if form else ""), candidates)


def _example(title: str, candidates: list[Stored]) -> tuple[str, str, str]:
    shown = best(candidates)
    return (f"## {title}", f"```json\n{pretty(shown.value)}\n```", f"From `{shown.source}`.")


def log_schema() -> dict[str, Any]:
    """Return the schema of a log's objects."""
    title = "An object of a lakelog log, format 1: a commit, tombstone, snapshot, base, decision or proposal"
    objects = {
        Commit: "Commit",
        Tombstone: "Tombstone",
        Root: "Snapshot",
        Base: "Base",
        Decision: "Decision",
        Proposal: "Proposal",
    }
    return _schema(title, objects, list(objects))


def catalog_schema() -> dict[str, Any]:
    """Return the schema of what the catalog has in logs: events, and beside them states and saved cuts."""
    title = (
        "An event of a lakelog namespace or table; $defs also has NamespaceState, TableState and CutVersions"
    )
    events = list(dict.fromkeys((*get_args(NamespaceEvent), *get_args(TableEvent))))
    others = {NamespaceRoot: "NamespaceState", TableRoot: "TableState", CutVersions: "CutVersions"}
    return _schema(title, {**{event: event.__name__ for event in events}, **others}, events)


def _schema(title: str, named: Mapping[Any, str], any_of: list[Any]) -> dict[str, Any]:
    """Return a schema of the structs `any_of`, in which structs have the names `named`; others have their own."""
    references, components = msgspec.json.schema_components(named, ref_template="{name}")
    given = {each["$ref"]: name for each, name in zip(references, named.values(), strict=True)}
    names = {old: given.get(old, old.rpartition(".")[2].lstrip("_")) for old in components}
    assert len(set(names.values())) == len(names), "two structs of one name"

    def renamed(value: Any) -> Any:
        match value:
            case {"$ref": str(old)}:
                return {"$ref": f"#/$defs/{names[old]}"}
            case dict():
                return {key: renamed(each) for key, each in value.items() if key != "discriminator"}
            case list():
                return [renamed(each) for each in value]
            case _:
                return value

    definitions = {names[old]: renamed(each) for old, each in sorted(components.items())}
    for definition in definitions.values():
        if (
            "description" in definition
        ):  # a docstring: its first paragraph is about the struct, the rest about Python
            definition["description"] = " ".join(definition["description"].partition("\n\n")[0].split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "anyOf": [{"$ref": f"#/$defs/{named[struct]}"} for struct in any_of],
        "$defs": dict(sorted(definitions.items())),
    }


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


@cache
def documents() -> dict[str, str]:
    """Return the pages and schemas by their names in the site's folder `format`."""
    return {
        "examples.md": examples(),
        "log.schema.json": _json(log_schema()),
        "catalog.schema.json": _json(catalog_schema()),
    }
