"""Words for people: a commit in one line, and a partition's value. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lakelog.catalog.core.schema import Schema, Transform
from lakelog.catalog.core.state import HistoryEntry, RowCounts, rows_of_event
from lakelog.catalog.times import time_text
from lakelog.log.grammar import shortened

ROOT = "(root)"
"""The name of the warehouse's root namespace in lists."""


_ALL_ROWS = "ALWAYS_TRUE"
"""The stored condition of a change of all rows."""


def what(entry: HistoryEntry, schema_before: Schema | None = None, schema_after: Schema | None = None) -> str:
    """Return the effect of `entry` as text. `schema_before` and `schema_after` are the schemas around a change of the
    schema, if they are known."""
    text = what_was_done(entry.operation, entry.details, schema_before, schema_after)
    return f"{text} (prepared on {entry.base}, rebased)" if entry.rebased else text


def what_was_done(
    operation: str,
    details: dict[str, Any],
    schema_before: Schema | None = None,
    schema_after: Schema | None = None,
) -> str:
    """Return the effect of a commit as text, from its operation and details. Details of a faulty client stay as
    they are."""
    try:
        return _what_was_done(operation, details, schema_before, schema_after)
    except (AttributeError, KeyError, TypeError, ValueError):
        return f"{operation}: {shortened(str(details))}"


def _what_was_done(
    operation: str, details: dict[str, Any], schema_before: Schema | None, schema_after: Schema | None
) -> str:
    if changes := details.get("changes"):
        return "; ".join(what_was_done(change["operation"], change) for change in changes)
    parts: list[str] = []
    if name := details.get("name"):
        target = f" to {details['new_name']}" if "new_name" in details else ""
        parts.append(f"{details.get('kind', '')} {name}{target}".strip())
    if id := details.get("id"):
        parts.append(id)
    if schema_before is not None and schema_after is not None:
        parts.append(column_changes(schema_before, schema_after))
    elif columns := details.get("columns"):
        parts.append(f"{len(columns)} column{_s(len(columns))}")
    parts += [f"set {key}={value}" for key, value in details.get("set", {}).items()]
    parts += [f"removed {key}" for key in details.get("removed", ())]
    parts += _changed_rows(operation, details)
    for sign, direction in (("+", "added"), ("−", "removed")):
        rows = details.get(f"{direction}_rows", 0)
        if files := details.get(f"{direction}_files"):
            if direction == "added" and (origins := details.get("of_changes")):
                # These are entries of their own, which say whose rows they are.
                parts.append(
                    f"{_number(files)} file{_s(files)} with the rows of {_number(origins)} change{_s(origins)}"
                )
                continue
            parts.append(f"{sign}{_number(rows)} row{_s(rows)} in {_number(files)} file{_s(files)}")
        elif rows:
            parts.append(f"{sign}{_number(rows)} row{_s(rows)}")
    if deleted_rows := details.get("deleted_rows"):
        files = details.get("changed_files", 0)
        parts.append(
            f"{_number(deleted_rows)} row{_s(deleted_rows)} deleted in {_number(files)} file{_s(files)}"
        )
    if snapshot := details.get("source_snapshot"):
        time_us = details.get("source_time_us")
        moment = "" if time_us is None else f" of {time_text(time_us)}"
        parts.append(f"version {snapshot}{moment} of {details['source_url']}")
    if (condition := details.get("filter")) and condition != _ALL_ROWS:
        parts.append(f"where {condition}")
    if branch := details.get("branch"):
        parts.append(f"{branch} to {details['to']}" if "to" in details else f"on the branch {branch}")
    return f"{operation}: {', '.join(parts)}" if parts else operation


def _changed_rows(operation: str, details: dict[str, Any]) -> list[str]:
    """Return the number of changed rows, if it differs from the rows added or removed."""
    for name in operation.split(", "):
        counts = rows_of_event({"event": "files-changed", "operation": name, **details})
        if counts is not None and (name in ("update", "merge") or counts.copied):
            return _said(counts)
    return []


def _said(counts: RowCounts) -> list[str]:
    numbers = {name: getattr(counts, name) for name in ("inserted", "updated", "deleted", "copied")}
    if all(number is None for number in numbers.values()):
        return ["how many rows were changed is not known"]
    return [
        f"{'an unknown number of rows' if number is None else f'{number:,} row{_s(number)}'} {name}"
        for name, number in numbers.items()
        if number != 0 and not (number is None and name == "copied")
    ]


def _number(given: Any) -> str:
    """Return a number as text. Anything else, from a faulty client, stays as it is."""
    return f"{given:,}" if isinstance(given, int) else shortened(str(given))


def changes_schema(entry: HistoryEntry) -> bool:
    """Return whether the schemas around `entry` add to the text."""
    return entry.version > 1 and "change schema" in entry.operation


def column_changes(schema_before: Schema, schema_after: Schema) -> str:
    """Return the changes of top-level columns, by their ids. A nested change counts as a change of its column."""
    old = {field.id: field for field in schema_before.fields}
    new = {field.id: field for field in schema_after.fields}
    changes = [f"added {field.name}" for id, field in new.items() if id not in old]
    changes += [f"dropped {field.name}" for id, field in old.items() if id not in new]
    for id in (id for id in new if id in old):
        if old[id].name != new[id].name:
            changes.append(f"renamed {old[id].name} to {new[id].name}")
        elif old[id] != new[id]:
            changes.append(f"changed {new[id].name}")
    return ", ".join(changes) or "reordered"


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def partition_value(value: Any, transform: Transform) -> str | int | float | bool | None:
    """Return a partition's value for people: 2013-01 for a month, which is stored as a number since 1970."""
    if isinstance(value, int) and transform.name == "year":
        return str(1970 + value)
    if isinstance(value, int) and transform.name == "month":
        return f"{1970 + value // 12:04}-{value % 12 + 1:02}"
    if isinstance(value, int) and transform.name == "hour":
        return (datetime(1970, 1, 1) + timedelta(hours=value)).strftime("%Y-%m-%d %H:00")
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, int | float) else str(value)
