"""The differences between two definitions of a table. Pure. The page's script has the same rules (`differences` in
assets/panels.js), and a test compares the two in a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from lakelog.catalog.looking.pictures.model import ColumnPicture, DefinitionPicture


class PictureDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A part that was added, removed or changed. Columns are compared by id, so a rename is a single change."""

    kind: Literal["added", "removed", "changed"]
    what: str
    name: str
    before: str
    after: str


_OF_COLUMNS: tuple[tuple[str, Callable[[ColumnPicture], str]], ...] = (
    ("type", lambda column: column.type),
    ("nullable", lambda column: "may be NULL" if column.nullable else "NOT NULL"),
    ("comment", lambda column: column.comment or ""),
    ("default", lambda column: column.default or ""),
)


def differences(before: DefinitionPicture, after: DefinitionPicture) -> list[PictureDifference]:
    """Return the differences: of columns first, then of properties, then of the rest."""
    changes = _columns(before.columns, after.columns)
    properties_before, properties_after = before.properties, after.properties
    for name in sorted({*properties_before, *properties_after}):
        if properties_before.get(name) != properties_after.get(name):
            changes.append(_said("property", name, properties_before.get(name), properties_after.get(name)))
    texts = (
        ("partitioning", before.partitioning, after.partitioning),
        ("sort order", before.sorting, after.sorting),
        ("clustering", before.clustering, after.clustering),
        ("constraints", before.constraints, after.constraints),
        ("comment", (before.comment or "",), (after.comment or "",)),
        ("provider", (before.provider or "",), (after.provider or "",)),
    )
    for subject, texts_before, texts_after in texts:
        if texts_before != texts_after:
            changes.append(
                _said(subject, "", "; ".join(texts_before) or None, "; ".join(texts_after) or None)
            )
    return changes


def _columns(before: Sequence[ColumnPicture], after: Sequence[ColumnPicture]) -> list[PictureDifference]:
    columns_before = {column.id: column for column in before}
    columns_after = {column.id: column for column in after}
    changes: list[PictureDifference] = []
    for column in after:
        old_column = columns_before.get(column.id)
        if old_column is None:
            changes.append(_said("column", column.name, None, _text(column)))
            continue
        if old_column.name != column.name:
            changes.append(_said("column", column.name, f"named {old_column.name}", f"named {column.name}"))
        for name, text in _OF_COLUMNS:
            if text(old_column) != text(column):
                changes.append(_said(f"column's {name}", column.name, text(old_column), text(column)))
    changes += [
        _said("column", column.name, _text(column), None)
        for column in before
        if column.id not in columns_after
    ]
    if [id for id in columns_before if id in columns_after] != [
        id for id in columns_after if id in columns_before
    ]:
        orders = (", ".join(column.name for column in columns) for columns in (before, after))
        changes.append(_said("order of columns", "", *orders))
    return changes


def _said(what: str, name: str, before: str | None, after: str | None) -> PictureDifference:
    kind: Literal["added", "removed", "changed"] = (
        "added" if before is None else "removed" if after is None else "changed"
    )
    return PictureDifference(kind=kind, what=what, name=name, before=before or "", after=after or "")


def _text(column: ColumnPicture) -> str:
    parts = [
        column.type,
        "" if column.nullable else "NOT NULL",
        f"DEFAULT {column.default}" if column.default else "",
        f"-- {column.comment}" if column.comment else "",
    ]
    return " ".join(part for part in parts if part)
