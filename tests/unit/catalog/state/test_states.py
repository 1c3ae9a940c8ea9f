"""States in snapshots: members of other kinds of logs, and members that newer clients write."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.state import NamespaceState
from lakelog.catalog.core.state.namespace_projection import NamespaceProjection
from lakelog.catalog.core.state.table_projection import TableProjection
from lakelog.log import Commit
from lakelog.log.errors import FormatError, InvalidInput, UnsupportedFormat
from lakelog.log.format import FORMAT

TABLE: dict[str, Any] = {
    "metadata": {
        "schema": {"fields": [], "last_id": 0},
        "specs": [],
        "sort_order": {"fields": []},
        "properties": {},
    },
    "files": {"files": 0, "rows": 0, "bytes": 0, "manifests": []},
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


@pytest.mark.parametrize(
    ("event", "error", "said"),
    [
        (
            {
                "event": "entry-linked",
                "space": "relation",
                "name": "v",
                "kind": "view",
                "id": "i",
                "location": "t",
            },
            FormatError,
            "a view has a definition",
        ),
        (
            {
                "event": "entry-linked",
                "space": "novel",
                "name": "t",
                "kind": "table",
                "id": "i",
                "location": "t",
            },
            FormatError,
            r"\.space",
        ),
        (
            {
                "event": "entry-linked",
                "space": "relation",
                "name": "t",
                "kind": "novel",
                "id": "i",
                "location": "t",
            },
            FormatError,
            r"\.kind",
        ),
        ({"event": "namespace-moved", "parent": "", "name": "n"}, UnsupportedFormat, "upgrade lakelog"),
    ],
)
def test_an_event_that_no_client_writes_is_refused(
    event: dict[str, Any], error: type[Exception], said: str
) -> None:
    commit = Commit(
        format=FORMAT, log_id="l", version=2, commit_id="c", attempt_id="a", base=1, prev="", time_us=1,
        writer={}, events=(event,),
    )  # fmt: skip
    with pytest.raises(error, match=said):
        NamespaceProjection().apply(NamespaceState(), commit, ())


@pytest.mark.parametrize("kind", ["tag", "novel"])
def test_a_tag_or_branch_of_another_kind_is_refused(kind: str) -> None:
    ref = {"kind": kind, "id": "i", "version": 1, "files": TABLE["files"], "line": {}}
    state = {**TABLE, "metadata": {**TABLE["metadata"], "specs": [{}]}, "refs": {"r": ref}}
    if kind == "tag":
        assert TableProjection().load(state).refs["r"].kind == kind
    else:
        with pytest.raises(FormatError, match=r"\.kind"):
            TableProjection().load(state)
