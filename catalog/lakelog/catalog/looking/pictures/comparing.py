"""What differs between two definitions of a table. Pure. The page's script has the same rules (`differences` in
assets/panels.js), and a test compares the two in a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from lakelog.catalog.looking.pictures.model import Column, Definition


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was added, removed or changed; columns are compared by their ids, so a rename is one change."""

    kind: Literal["added", "removed", "changed"]
    what: str
    name: str
    before: str
    after: str


_OF_COLUMNS: tuple[tuple[str, Callable[[Column], str]], ...] = (
    ("type", lambda column: column.type),
    ("nullable", lambda column: "may be NULL" if column.nullable else "NOT NULL"),
    ("comment", lambda column: column.comment or ""),
    ("default", lambda column: column.default or ""),
)


def differences(before: Definition, after: Definition) -> list[Difference]:
    """Return what differs, columns first, then properties, then all else."""
    found = _columns(before.columns, after.columns)
    had, has = before.properties, after.properties
    for name in sorted({*had, *has}):
        if had.get(name) != has.get(name):
            found.append(_said("property", name, had.get(name), has.get(name)))
    texts = (
        ("partitioning", before.partitioning, after.partitioning),
        ("sort order", before.sorting, after.sorting),
        ("clustering", before.clustering, after.clustering),
        ("constraints", before.constraints, after.constraints),
        ("comment", (before.comment or "",), (after.comment or "",)),
        ("provider", (before.provider or "",), (after.provider or "",)),
    )
    for what, was, now in texts:
        if was != now:
            found.append(_said(what, "", "; ".join(was) or None, "; ".join(now) or None))
    return found


def _columns(before: Sequence[Column], after: Sequence[Column]) -> list[Difference]:
    old = {column.id: column for column in before}
    new = {column.id: column for column in after}
    found: list[Difference] = []
    for column in after:
        was = old.get(column.id)
        if was is None:
            found.append(_said("column", column.name, None, _text(column)))
            continue
        if was.name != column.name:
            found.append(_said("column", column.name, f"named {was.name}", f"named {column.name}"))
        for name, text in _OF_COLUMNS:
            if text(was) != text(column):
                found.append(_said(f"column's {name}", column.name, text(was), text(column)))
    found += [_said("column", column.name, _text(column), None) for column in before if column.id not in new]
    if [each.id for each in before if each.id in new] != [each.id for each in after if each.id in old]:
        orders = (", ".join(column.name for column in columns) for columns in (before, after))
        found.append(_said("order of columns", "", *orders))
    return found


def _said(what: str, name: str, before: str | None, after: str | None) -> Difference:
    kind: Literal["added", "removed", "changed"] = (
        "added" if before is None else "removed" if after is None else "changed"
    )
    return Difference(kind=kind, what=what, name=name, before=before or "", after=after or "")


def _text(column: Column) -> str:
    parts = [
        column.type,
        "" if column.nullable else "NOT NULL",
        f"DEFAULT {column.default}" if column.default else "",
        f"-- {column.comment}" if column.comment else "",
    ]
    return " ".join(part for part in parts if part)
