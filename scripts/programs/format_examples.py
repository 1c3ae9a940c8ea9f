"""The site's examples of the format, and its JSON Schemas. Every kind of object and event has an example.

Examples are chosen from the golden files, schemas are made from the stored structs, and the repository keeps neither.
Nothing here interprets an object: an example is the golden object with the most filled members, and then the shortest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from lakelog.catalog.core.ddl.saved_cuts import CutVersions
from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent
from lakelog.catalog.core.state.namespace_projection import _Root as NamespaceRoot
from lakelog.catalog.core.state.table_projection import _Root as TableRoot
from lakelog.log.format import Commit, Decision, LogBase, Proposal, SnapshotRoot, Tombstone

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "format"
WIDTH = 110

Objects = Callable[[dict[str, Any]], bool]

_APART = {"refs", "main", "origins", "ancestors", "clones", "source", "adopted", "erased", "packs"}
"""Members of the states of tables that few tables have."""


def _kind(kind: str, *members: str, without: Sequence[str] = ()) -> Objects:
    """Return a test for objects of a kind that have these members, and none of others."""
    return lambda it: it["kind"] == kind and it.keys() >= {*members} and not it.keys() & {*without}


def _is_proposed(it: Mapping[str, Any]) -> bool:
    return any("seen" in change for change in it.get("changes", ()))


OF_THE_LOG: dict[str, Objects] = {
    "Commit": _kind("commit", "write"),
    "Commit of several changes": lambda it: (
        it["kind"] == "commit" and "changes" in it and not _is_proposed(it)
    ),
    "Commit of proposed changes": _is_proposed,
    "Commit with a sidecar": _kind("commit", "sidecars", without=("intent",)),
    "Commit that seals": _kind("commit", "seals", without=("intent",)),
    "Commit that reopens": _kind("commit", "reopens"),
    "Commit that restores": _kind("commit", "restores"),
    "Commit that purges": _kind("commit", "purges"),
    "Intent": _kind("commit", "intent", without=("seals", "restores", "settles")),
    "Commit that settles an intent": _kind("commit", "settles", without=("intent",)),
    "Decision: committed": lambda it: it["kind"] == "decision" and it["outcome"] == "committed",
    "Decision: aborted": lambda it: it["kind"] == "decision" and it["outcome"] == "aborted",
    "Tombstone": _kind("tombstone", without=("outcome", "applied")),
    "Tombstone of several changes": _kind("tombstone", "applied"),
    "Tombstone of an intent": _kind("tombstone", "outcome"),
    "Proposal": _kind("proposal"),
    "Snapshot": _kind("snapshot"),
    "Base": _kind("base"),
}
"""The objects of a log by their titles in the examples."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A JSON object of the golden files, or a part of such an object, and its file."""

    path: Path
    value: dict[str, Any]

    @property
    def source(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def of_logs() -> Iterator[Stored]:
    """Yield the golden objects of logs without a catalog."""
    return _read(GOLDEN / "log-1")


def of_warehouses() -> Iterator[Stored]:
    """Yield the golden objects of warehouses."""
    return _read(GOLDEN / "catalog")


def _read(folder: Path) -> Iterator[Stored]:
    for path in sorted(folder.rglob("*.json")):
        yield Stored(path, json.loads(path.read_bytes()))


def events() -> Iterator[Stored]:
    """Yield the events of all golden warehouses."""
    for warehouse_object in of_warehouses():
        for event in warehouse_object.value.get("events", ()):
            yield Stored(warehouse_object.path, event)


def states(kind: str) -> Iterator[Stored]:
    """Yield the states in the snapshots and bases of a kind of log: `namespace` or `table`."""
    for warehouse_object in of_warehouses():
        root = warehouse_object.value.get("root", warehouse_object.value)
        if (
            root.get("kind") == "snapshot"
            and "state" in root
            and ("metadata" in root["state"]) == (kind == "table")
        ):
            yield Stored(warehouse_object.path, root["state"])


def cuts() -> Iterator[Stored]:
    return (
        warehouse_object
        for warehouse_object in of_warehouses()
        if warehouse_object.path.parent.name == "_cut"
    )


def tags(union: Any) -> list[str]:
    return [struct.__struct_config__.tag for struct in get_args(union)]


def variant(event: Mapping[str, Any]) -> str:
    """Return the event's form if events of its kind have several forms, else ""."""
    match event["event"]:
        case "ref-set" | "ref-dropped":
            return str(event["kind"])
        case "constraint-added":
            return str(event["constraint"]["kind"])
        case "entry-defined":
            return str(event["definition"]["kind"])
        case "files-vacuumed" if event.get("begun"):
            return "folders of creations"
        case "rolled-back":
            return "the rows alone" if event.get("metadata") is None else "everything"
        case _:
            return ""


def best(candidates: list[Stored]) -> Stored:
    """Return the candidate with the most filled members. The shortest one wins if several have as many."""

    def rank(stored: Stored) -> tuple[int, int, str]:
        filled_count = sum(value not in (None, [], {}, "", 0, False) for value in stored.value.values())
        return (-filled_count, len(json.dumps(stored.value)), stored.source)

    return min(candidates, key=rank)


def pretty(value: Any, indent: int = 0, before: int = 0) -> str:
    """Return JSON in which a value stands on one line if it fits. `before` characters precede the value in its line."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) <= WIDTH or not value or not isinstance(value, dict | list):
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = []
        for name, member in value.items():
            key = f"{json.dumps(name, ensure_ascii=False)}: "
            parts.append(f"{pad}{key}{pretty(member, indent + 2, len(key))}")
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return (
        "[\n"
        + ",\n".join(f"{pad}{pretty(member, indent + 2)}" for member in value)
        + "\n"
        + " " * indent
        + "]"
    )


def examples() -> str:
    """Return the page of examples."""
    from programs import list_examples  # it needs this module

    parts = [
        "# Examples of the format",
        "One of each kind of object and event, as the golden files have it. Line breaks and spaces are added here;\n"
        "stored objects have none.\n"
        "The JSON Schemas are [log.schema.json](log.schema.json) and [catalog.schema.json](catalog.schema.json).",
        "# Objects of a log",
        "What they mean is in [log/README.md](../../log/README.md). Events and states here are a test's: to the log\n"
        "they are opaque. Sidecars and manifests are not JSON: those of tables are Arrow IPC streams, as in\n"
        "[Lists of files](#lists-of-files).",
    ]
    logs = list(of_logs())
    for title, fits in OF_THE_LOG.items():
        parts += _example(title, [log_object for log_object in logs if fits(log_object.value)])
    parts += [
        "# Events of namespaces",
        "What they mean is in [catalog/README.md](../../catalog/README.md).",
        *_examples_of(NamespaceEvent, "root", "n-"),
        "# Events of tables",
        *_examples_of(TableEvent, "t-"),
        "# States in snapshots and bases",
        *_example(
            "A namespace's state", [state for state in states("namespace") if "paged" not in state.value]
        ),
        *_example(
            "A namespace's state, of names in pages",
            [state for state in states("namespace") if "paged" in state.value],
        ),
        *_example("A table's state", [state for state in states("table") if not state.value.keys() & _APART]),
        *_example(
            "A table's state, with tags and branches",
            [state for state in states("table") if "refs" in state.value],
        ),
        *_example("A clone's state", [state for state in states("table") if "ancestors" in state.value]),
        *list_examples.list_examples(),
        "# Other objects",
        *_example("A saved cut", list(cuts())),
    ]
    return "\n\n".join(parts) + "\n"


def _examples_of(union: Any, *folders: str) -> Iterator[str]:
    """Yield an example of each event, and of each of its variants, from the logs in these folders."""
    candidates_by_event: dict[str, dict[str, list[Stored]]] = {}
    for event in events():
        # <folder>/_log/<version>.json; the root's folder is the golden warehouse.
        folder = event.path.parents[1].name
        home = "root" if event.path.parents[2] == GOLDEN / "catalog" else folder[:2]
        # Names that lead to no table are poor examples.
        if home in folders and "names_v1" not in event.path.parts:
            candidates_by_event.setdefault(event.value["event"], {}).setdefault(
                variant(event.value), []
            ).append(event)
    for tag in tags(union):
        for form, candidates in sorted(candidates_by_event[tag].items()):
            yield from _example(f"`{tag}`" + (f": {form}" if form else ""), candidates)


def _example(title: str, candidates: list[Stored]) -> tuple[str, str, str]:
    best_example = best(candidates)
    return (f"## {title}", f"```json\n{pretty(best_example.value)}\n```", f"From `{best_example.source}`.")


def log_schema() -> dict[str, Any]:
    """Return the schema of a log's objects."""
    title = "An object of a lakelog log, format 1: a commit, tombstone, snapshot, base, decision or proposal"
    objects = {
        Commit: "Commit",
        Tombstone: "Tombstone",
        SnapshotRoot: "Snapshot",
        LogBase: "Base",
        Decision: "Decision",
        Proposal: "Proposal",
    }
    return _schema(title, objects, list(objects))


def catalog_schema() -> dict[str, Any]:
    """Return the schema of the catalog's parts of logs: events, states and saved cuts."""
    title = (
        "An event of a lakelog namespace or table; $defs also has NamespaceState, TableState and CutVersions"
    )
    events = list(dict.fromkeys((*get_args(NamespaceEvent), *get_args(TableEvent))))
    state_names = {NamespaceRoot: "NamespaceState", TableRoot: "TableState", CutVersions: "CutVersions"}
    return _schema(title, {**{event: event.__name__ for event in events}, **state_names}, events)


def _schema(title: str, named: Mapping[Any, str], any_of: list[Any]) -> dict[str, Any]:
    """Return a schema of the structs `any_of`. Structs take their names from `named`, or else keep their own."""
    references, components = msgspec.json.schema_components(named, ref_template="{name}")
    given_names = {
        component["$ref"]: name for component, name in zip(references, named.values(), strict=True)
    }
    names = {old: given_names.get(old, old.rpartition(".")[2].lstrip("_")) for old in components}
    assert len(set(names.values())) == len(names), "two structs of one name"

    def renamed(value: Any) -> Any:
        match value:
            case {"$ref": str(old)}:
                return {"$ref": f"#/$defs/{names[old]}"}
            case dict():
                return {key: renamed(part) for key, part in value.items() if key != "discriminator"}
            case list():
                return [renamed(part) for part in value]
            case _:
                return value

    definitions = {names[old]: renamed(component) for old, component in sorted(components.items())}
    for definition in definitions.values():
        if (
            "description" in definition
        ):  # In a docstring, the first paragraph is about the struct, the rest about Python.
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
    """Return the pages and schemas by their file names in the site's folder `format`."""
    return {
        "examples.md": examples(),
        "log.schema.json": _json(log_schema()),
        "catalog.schema.json": _json(catalog_schema()),
    }
