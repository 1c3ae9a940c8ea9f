"""The forms of columns, partitionings and orders in requests of Iceberg's clients, by types of their members. Pure.

Members that these forms do not name are ignored, as Iceberg's own catalogs do. Source: the OpenAPI description of
Apache Iceberg's REST catalog, `StructField`, `PartitionField`, `SortField`.
"""

from __future__ import annotations

from typing import Any

import msgspec


class _Form(msgspec.Struct, frozen=True, rename="kebab"):
    pass


class StructForm(_Form, tag="struct", tag_field="type", frozen=True):
    """A struct, or all columns."""

    fields: list[ColumnForm]


class ListForm(_Form, tag="list", tag_field="type", frozen=True):
    """A list."""

    element_id: int
    element: TypeForm
    element_required: bool


class MapForm(_Form, tag="map", tag_field="type", frozen=True):
    """A map."""

    key_id: int
    key: TypeForm
    value_id: int
    value: TypeForm
    value_required: bool


TypeForm = str | StructForm | ListForm | MapForm


class ColumnForm(_Form, frozen=True):
    """A column, or a field of a struct."""

    id: int
    name: str
    type: TypeForm
    required: bool
    doc: str | None = None


class PartForm(_Form, frozen=True):
    """A field of a partitioning."""

    source_id: int
    transform: str
    name: str
    field_id: int | None = None


class SortForm(_Form, frozen=True):
    """A field of an order."""

    source_id: int
    transform: str
    direction: str
    null_order: str


def check_form(document: Any, form: Any) -> None:
    """Raise ValueError unless a part of a request has a form."""
    try:
        msgspec.convert(document, form)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
