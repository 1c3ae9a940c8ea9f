"""Read a warehouse of lakelog in a local folder, with pyarrow and Python alone: `python read.py WAREHOUSE tables`.

It shares no code with lakelog. It was written from log/README.md and catalog/README.md, and shows how little a
reader needs. Answers are JSON. The exit code is 0; 2 if the warehouse has something that a reader must refuse; 3
if there is no such table, version, tag or branch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from folds import NamespaceFold, TableFold, TableState
from log_reader import Log, View
from stored_forms import Absent, Refused
from table_rows import rows_of


class Warehouse:
    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.root = Log(self.folder, "", NamespaceFold())

    def tables(self) -> list[list[str]]:
        """Return the names of all tables, each as a list of parts."""
        found: list[list[str]] = []
        waiting: list[tuple[list[str], Log]] = [([], self.root)]
        if os.path.isdir(self.folder) and not os.listdir(self.folder):
            return []  # the first write makes the root's log
        while waiting:
            path, log = waiting.pop()
            for (space, name), entry in log.at().state.names.items():
                if space == "namespace":
                    child = self._below(log, space, name, NamespaceFold())
                    waiting += [([*path, name], child[0])] if child else []
                elif entry["kind"] == "table":
                    found.append([*path, name])
        return sorted(found)

    def table(self, name: str) -> tuple[Log, View]:
        """Return the log of a table and its head. Parts of the name are divided by dots, or a JSON list."""
        path = json.loads(name) if name.startswith("[") else name.split(".")
        log, found = self.root, None
        for depth, part in enumerate(path, 1):
            is_last = depth == len(path)
            space, fold = ("relation", TableFold()) if is_last else ("namespace", NamespaceFold())
            found = self._below(log, space, part, fold)
            if found is None:
                raise Absent(f"there is no {'table' if is_last else 'namespace'} {'.'.join(path[:depth])}")
            log = found[0]
        assert found is not None, "a name has a part"
        return found

    def _below(self, above: Log, space: str, name: str, fold: Any) -> tuple[Log, View] | None:
        """Return the log that a name leads to, if it leads to one, and the log itself says so."""
        entry = above.at().state.names.get((space, name))
        if entry is None or entry["location"] is None:
            return None
        if "://" in entry["location"]:
            raise Refused(f"{name} is at {entry['location']}, and this reader reads local folders only")
        log = Log(self.folder, entry["location"], fold)
        try:
            view = log.at()
        except Absent:
            raise Refused(f"{name} leads to {log.root}, where there is no log") from None
        if view.log_id != entry["id"] and entry["location"].endswith(f"-{entry['id']}"):
            raise Refused(f"{name} leads to {log.root}, where there is another log than the place says")
        if view.log_id != entry["id"] or view.sealed:
            return None  # it was dropped by its place, which the user chose: another may be there
        if view.state.link != {"namespace": above.place, "name": name}:
            raise Refused(f"the log in {log.root} says that it has another name than {name}")
        return log, view


def columns_of(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return columns as the conformance kit describes them."""
    return [
        {
            "id": field["id"],
            "name": field["name"],
            "type": _type(field["type"]),
            "nullable": field["nullable"],
        }
        for field in fields
    ]


def _type(type: dict[str, Any]) -> Any:
    match type["kind"]:
        case "struct":
            return {"struct": columns_of(type["fields"])}
        case "list":
            return {"list": _type(type["element"]), "nullable": type["element_nullable"]}
        case "map":
            parts = {"map": [_type(type["key"]), _type(type["value"])], "nullable": type["value_nullable"]}
            return parts
    return type["name"]


def schema_answer(state: TableState) -> dict[str, Any]:
    metadata = state.metadata
    partition = [
        {
            "id": field["id"], "column": field["source_id"], "name": field["name"],
            "transform": field["transform"]["name"], "argument": field["transform"]["argument"],
        }
        for field in metadata["specs"][-1]["fields"]
    ]  # fmt: skip
    return {
        "columns": columns_of(metadata["schema"]["fields"]),
        "partition": partition,
        "properties": metadata["properties"],
        "comment": metadata["comment"],
    }


def files_answer(state: TableState) -> list[dict[str, Any]]:
    return [
        {
            "path": path, "size": file["size"], "rows": file["rows"], "spec": file["spec"],
            "deleted": file["deletes"]["rows"] if file["deletes"] else 0,
            "partition": {
                str(field["id"]): file["partition"].get(field["id"])
                for spec in state.metadata["specs"]
                if spec["id"] == file["spec"]
                for field in spec["fields"]
            },
        }
        for path, file in sorted(state.files.items())
    ]  # fmt: skip


def history_answer(log: Log) -> list[dict[str, Any]]:
    """Return an entry for each change of each version, the newest first."""
    entries: list[dict[str, Any]] = []
    for commit in log.commits():
        changes = commit["changes"] or [{**commit, "events": len(commit["events"]), "refused": None}]
        events, own = iter(commit["events"]), []
        for change in changes:
            words = [next(events)["event"] for _ in range(change["events"])]
            if not change["refused"]:
                own.append(
                    {
                        "version": commit["version"], "time_us": commit["time_us"], "commit_id": change["commit_id"],
                        "events": words,
                    }
                )  # fmt: skip
        entries += reversed(own)
    return entries


def answer(arguments: list[str]) -> Any:
    """Return the answer to a command line, as JSON."""
    parser = argparse.ArgumentParser(description="Read a warehouse of lakelog in a local folder.")
    parser.add_argument("warehouse")
    parser.add_argument("question", choices=("tables", "schema", "files", "rows", "history", "refs"))
    parser.add_argument("table", nargs="?", help="its name, as in sales.orders, or as a list in JSON")
    parser.add_argument("--version", type=int)
    parser.add_argument("--time", type=int, help="microseconds since 1970: the newest version until then")
    parser.add_argument("--ref", default="main", help="a tag or branch")
    asked = parser.parse_args(arguments)
    warehouse = Warehouse(asked.warehouse)
    if asked.question == "tables":
        return warehouse.tables()
    if asked.table is None:
        parser.error("name a table")
    log, view = warehouse.table(asked.table)
    if asked.question == "history":
        return history_answer(log)
    version = log.version_at(asked.time) if asked.time is not None else asked.version
    if version is not None:
        head, view = view, log.at(version)
        if view.log_id != head.log_id:
            raise Absent(f"version {version} is of a table that was dropped here before")
    if asked.question == "refs":
        return {
            name: {"kind": ref["kind"], "version": ref["version"]} for name, ref in view.state.refs.items()
        }
    if asked.ref != "main" and asked.ref not in view.state.refs:
        raise Absent(f"there is no tag or branch {asked.ref}")
    state = view.state.on(asked.ref)
    if asked.question == "schema":
        return schema_answer(state)
    if asked.question == "files":
        return files_answer(state)
    fields = state.metadata["schema"]["fields"]
    rows = rows_of(log.root, warehouse.folder, state.files, fields)
    return {"columns": [field["name"] for field in fields], "rows": rows}


def main(arguments: list[str]) -> int:
    """Print the answer, or say why there is none. Returns the exit code."""
    try:
        print(json.dumps(answer(arguments), ensure_ascii=False))
    except (Refused, Absent) as error:
        print(f"{'refused' if isinstance(error, Refused) else 'absent'}: {error}", file=sys.stderr)
        return 2 if isinstance(error, Refused) else 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
