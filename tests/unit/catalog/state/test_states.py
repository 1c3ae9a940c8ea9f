"""States that snapshots hold: what another kind of log has, and what newer clients write."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.state import NamespaceProjection
from lakelog.catalog.core.state.table_projection import TableProjection
from lakelog.log.errors import FormatError, InvalidInput, UnsupportedFormat

TABLE: dict[str, Any] = {
    "metadata": {
        "schema": {"fields": [], "last_id": 0},
        "specs": [],
        "sort_order": {"fields": []},
        "properties": {},
    },
    "files": {},
}
NAMESPACE: dict[str, Any] = {"properties": {}, "entries": {}}


@pytest.mark.parametrize(
    ("projection", "own", "other", "kind"),
    [(TableProjection(), TABLE, NAMESPACE, "table"), (NamespaceProjection(), NAMESPACE, TABLE, "namespace")],
)
def test_what_cannot_be_read_is_distinguished_from_what_is_of_another_kind(
    projection: Any, own: dict[str, Any], other: dict[str, Any], kind: str
) -> None:
    with pytest.raises(InvalidInput, match=f"log there is not a {kind}'s, but perhaps"):
        projection.load(other)
    with pytest.raises(UnsupportedFormat, match=f"snapshot of the {kind} has wings, which.*upgrade lakelog"):
        projection.load({**own, "wings": 2})
    with pytest.raises(
        FormatError, match=f"snapshot of the {kind} cannot be read .*expired.*upgrade lakelog"
    ):
        projection.load({**own, "expired": "never"})
