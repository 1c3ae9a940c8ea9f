"""The effect of a property change on a table's metadata. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelog.catalog.core.schema.metadata import Metadata

COMMENT = "comment"
"""The property in which Spark keeps a table's comment."""


def altered(metadata: Metadata, set_: Mapping[str, str], removed: Sequence[str]) -> dict[str, Any]:
    """Return the members of `metadata` that change."""
    properties = {key: value for key, value in metadata.properties.items() if key not in removed}
    comment = None if COMMENT in removed else metadata.comment
    for key, value in set_.items():
        if key == COMMENT:
            comment = value
        else:
            properties[key] = value
    return {"properties": properties, "comment": comment}
