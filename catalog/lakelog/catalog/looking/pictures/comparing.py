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


def differences(
    picture_before: DefinitionPicture, picture_after: DefinitionPicture
) -> list[PictureDifference]:
    """Return the differences: of columns first, then of properties, then of the rest."""
    changes = _columns(picture_before.columns, picture_after.columns)
    properties_before, properties_after = picture_before.properties, picture_after.properties
    for name in sorted({*properties_before, *properties_after}):
        if properties_before.get(name) != properties_after.get(name):
            changes.append(_said("property", name, properties_before.get(name), properties_after.get(name)))
    texts = (
        ("partitioning", picture_before.partitioning, picture_after.partitioning),
        ("sort order", picture_before.sorting, picture_after.sorting),
        ("clustering", picture_before.clustering, picture_after.clustering),
        ("constraints", picture_before.constraints, picture_after.constraints),
        ("comment", (picture_before.comment or "",), (picture_after.comment or "",)),
        ("provider", (picture_before.provider or "",), (picture_after.provider or "",)),
    )
    for subject, texts_before, texts_after in texts:
        if texts_before != texts_after:
            changes.append(
                _said(subject, "", "; ".join(texts_before) or None, "; ".join(texts_after) or None)
            )
    return changes


def _columns(
    pictures_before: Sequence[ColumnPicture], pictures_after: Sequence[ColumnPicture]
) -> list[PictureDifference]:
    columns_before = {column.id: column for column in pictures_before}
    columns_after = {column.id: column for column in pictures_after}
    changes: list[PictureDifference] = []
    for column in pictures_after:
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
        for column in pictures_before
        if column.id not in columns_after
    ]
    if [id for id in columns_before if id in columns_after] != [
        id for id in columns_after if id in columns_before
    ]:
        orders = (
            ", ".join(column.name for column in columns) for columns in (pictures_before, pictures_after)
        )
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
