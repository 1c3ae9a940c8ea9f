"""What events and snapshots mean: the names of a namespace, and the columns and files of a table.

Events without an effect on names, columns or contents are only checked. See catalog/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from file_lists import entries_of, live_files, removed_of, table_of
from log_reader import Log, check_bytes
from stored_forms import Refused, skips, taken

Names = dict[tuple[str, str], dict[str, Any]]
Files = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class NamespaceState:
    """`names` has entries by space and name. Those of views and functions have no location."""

    names: Names = field(default_factory=dict)
    link: dict[str, Any] | None = None


class NamespaceFold:
    def initial(self) -> NamespaceState:
        return NamespaceState()

    def apply(self, state: NamespaceState, commit: dict[str, Any], sidecars: list[bytes]) -> NamespaceState:
        for stored in commit["events"]:
            if skips(stored, "Namespace_event"):
                continue
            event = taken(stored, "Namespace_event", f"an event of version {commit['version']}")
            key = (event.get("space", ""), event.get("name", ""))
            names = {**state.names}
            match event["event"]:
                case "entry-linked":
                    names[key] = {name: event[name] for name in ("kind", "id", "location")}
                case "entry-defined":
                    names[key] = {"kind": event["definition"]["kind"], "id": event["id"], "location": None}
                case "entry-unlinked":
                    names.pop(key, None)
                case "entry-renamed":
                    names[key[0], event["new_name"]] = names.pop(key)
                case "namespace-created" | "namespace-restored":
                    named = event["parent"] is not None and {
                        "namespace": event["parent"],
                        "name": event["name"],
                    }
                    state = replace(state, link=named or None)
            state = replace(state, names=names)
        return state

    def loaded(self, root: Any, log: Log) -> NamespaceState:
        stored = taken(root, "Namespace_state", f"a snapshot of {log.root}")
        names: Names = {}
        for pages in stored["paged"]:
            if pages["of"] == "entries":
                for row in _rows_of_pages(pages, log):
                    if row["name"] not in pages["gone"]:
                        names[pages["space"], row["name"]] = row
        for space, entries in stored["entries"].items():
            names |= {(space, name): entry for name, entry in entries.items()}
        return NamespaceState(names, stored["link"])


def _rows_of_pages(pages: dict[str, Any], log: Log) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for first, count, version, digest in pages["pages"]:
        name = f"{version:020}-{digest[:16]}.arrow"
        data = log.get(f"manifests/{name}")
        if data is None:
            raise Refused(f"the page {name} of {log.root} is missing")
        check_bytes(data, len(data), digest, f"the page {name}")
        page = table_of(data, name).to_pylist()
        if len(page) != count or page[0]["name"] != first:
            raise Refused(f"the page {name} does not have the names that its snapshot says")
        rows += page
    if [row["name"] for row in rows] != sorted({row["name"] for row in rows}, key=str.encode):
        raise Refused(f"the pages of {log.root} are not in the order of their names")
    return rows


@dataclass(frozen=True)
class TableState:
    """A table at a version. `refs` has by name `kind`, `id`, `version`, `files` and a tag's `metadata`."""

    metadata: dict[str, Any] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    refs: dict[str, dict[str, Any]] = field(default_factory=dict)
    link: dict[str, Any] | None = None

    def on(self, ref: str) -> TableState:
        """Return the state with the contents of a tag or branch."""
        if ref == "main":
            return self
        return replace(
            self, files=self.refs[ref]["files"], metadata=self.refs[ref]["metadata"] or self.metadata
        )

    def having(self, **changes: Any) -> TableState:
        """Return the state with other metadata."""
        return replace(self, metadata={**self.metadata, **changes})


class TableFold:
    def initial(self) -> TableState:
        return TableState()

    def apply(self, state: TableState, commit: dict[str, Any], sidecars: list[bytes]) -> TableState:
        for stored in commit["events"]:
            at = f"an event of version {commit['version']}"
            if skips(stored, "Table_event"):
                continue
            state = _applied(state, taken(stored, "Table_event", at), commit["version"], sidecars, at)
            _check_metadata(state.metadata, at)
        return state

    def loaded(self, root: Any, log: Log) -> TableState:
        at = f"a snapshot of {log.root}"
        stored = taken(root, "Table_state", at)
        refs = {
            name: {**ref, "files": live_files(ref["files"], log, stored["packs"])}
            for name, ref in stored["refs"].items()
        }
        _check_metadata(stored["metadata"], at)
        return TableState(
            stored["metadata"], live_files(stored["files"], log, stored["packs"]), refs, stored["link"]
        )


def _applied(
    state: TableState, event: dict[str, Any], version: int, sidecars: list[bytes], at: str
) -> TableState:
    metadata = state.metadata
    if not metadata and event["event"] != "table-created":
        raise Refused(f"{at} comes before the creation of the table")
    match event["event"]:
        case "table-created" | "table-replaced":
            is_new = event["event"] == "table-created"
            begun = {
                name: event[name] for name in ("schema", "sort_order", "properties", "provider", "comment")
            }
            begun |= {
                "specs": _with_spec([] if is_new else metadata["specs"], event["spec"]),
                "constraints": [],
            }
            return replace(
                state, metadata=begun, files={}, link=_link(event) if is_new else state.link,
            )  # fmt: skip
        case "schema-changed":
            return state.having(schema=event["schema"])
        case "partitioning-changed":
            return state.having(specs=_with_spec(metadata["specs"], event["spec"]))
        case "table-altered":
            kept = {
                key: value for key, value in metadata["properties"].items() if key not in event["removed"]
            }
            properties = {**kept, **event["set"]}
            removed = "comment" in event["removed"]
            comment = properties.pop("comment", None if removed else metadata["comment"])
            return state.having(properties=properties, comment=comment)
        case "files-changed":
            return replace(state, files=_changed(state.files, event, sidecars, at))
        case "branch-files-changed":
            ref = _branch(state, event["branch"], at)
            ref = {**ref, "files": _changed(ref["files"], event, sidecars, at)}
            return replace(state, refs={**state.refs, event["branch"]: ref})
        case "ref-set":
            is_of_main = event["of"] == "main"
            files = state.files if is_of_main else _branch(state, event["of"], at)["files"]
            ref = {
                "kind": event["kind"], "id": event["id"], "files": _changed(files, event, sidecars, at),
                "version": version if event["version"] is None else event["version"],
                "metadata": (event["metadata"] or metadata) if event["kind"] == "tag" else None,
            }  # fmt: skip
            return replace(state, refs={**state.refs, event["name"]: ref})
        case "ref-dropped":
            return replace(
                state, refs={name: ref for name, ref in state.refs.items() if name != event["name"]}
            )
        case "rolled-back":
            return replace(state, metadata=event["metadata"] or metadata)
        case "table-cloned":
            return replace(state, metadata=event["metadata"])
        case "table-moved" | "table-restored":
            return replace(state, link=_link(event))
        case "table-purged":
            return replace(state, files={}, refs={})
    return state


def _link(event: dict[str, Any]) -> dict[str, Any] | None:
    return None if event["namespace"] is None else {name: event[name] for name in ("namespace", "name")}


def _with_spec(specs: list[dict[str, Any]], spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the specs with one that is the last, and so the current one."""
    return [*(other for other in specs if other["id"] != spec["id"]), spec]


def _branch(state: TableState, name: str, at: str) -> dict[str, Any]:
    ref = state.refs.get(name)
    if ref is None or ref["kind"] != "branch":
        raise Refused(f"{at} is about the branch {name}, which does not exist")
    return ref


def _changed(files: Files, event: dict[str, Any], sidecars: list[bytes], at: str) -> Files:
    """Return files less those that an event removes, plus those that it adds."""
    for kind in ("added", "removed"):
        if event[kind] and event[f"{kind}_sidecar"] is not None:
            raise Refused(f"{at} has {kind} files twice")
    removed, added = event["removed"], event["added"]
    if event["removed_sidecar"] is not None:
        removed = removed_of(table_of(_sidecar(event["removed_sidecar"], sidecars, at), at), at)
    if event["added_sidecar"] is not None:
        added = entries_of(table_of(_sidecar(event["added_sidecar"], sidecars, at), at), at)
    files = {**files}
    for file in removed:
        if files.pop(file["path"], None) is None:
            raise Refused(f"{at} removes {file['path']}, which is not live")
    for file in added:
        if file["path"] in files:
            raise Refused(f"{at} adds {file['path']}, which is live already")
        files[file["path"]] = file
    return files


def _sidecar(index: int, sidecars: list[bytes], at: str) -> bytes:
    if index >= len(sidecars):
        raise Refused(f"{at} names sidecar {index}, and its commit has {len(sidecars)}")
    return sidecars[index]


def _check_metadata(metadata: dict[str, Any], at: str) -> None:
    """Check that ids are given once, and that there is a spec."""
    ids: list[int] = []

    def walk(type: dict[str, Any]) -> None:
        for part in ("element_id", "key_id", "value_id"):
            ids.extend([type[part]] if part in type else [])
        for part in ("element", "key", "value"):
            if part in type:
                walk(type[part])
        for column in type.get("fields", []):
            ids.append(column["id"])
            walk(column["type"])

    walk(metadata["schema"])
    if len(set(ids)) < len(ids) or not all(1 <= id <= metadata["schema"]["last_id"] for id in ids):
        raise Refused(f"{at} has columns whose ids are not distinct, from 1 to `last_id`")
    if not metadata["specs"]:
        raise Refused(f"{at} leaves the table without a partition spec")
