"""What a commit did, from its events: even if a faulty client wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.state import details_of, operations_of
from lakelog.log import Commit
from lakelog.log.format import FORMAT


def commit(*events: dict[str, Any]) -> Commit:
    return Commit(
        format=FORMAT,
        log_id="l",
        version=1,
        commit_id="c",
        attempt_id="a",
        base=0,
        prev="",
        time_us=1,
        writer={},
        events=events,
    )


@pytest.mark.parametrize(
    "event",
    [
        {"event": "rows-appended"},
        {"event": "table-altered", "set": ["a"], "removed": 5},
        {"event": "files-adopted", "source": "x"},
        {"event": "source-imported"},
        {"event": "constraint-added", "constraint": [1]},
        {"event": "statistics-computed", "estimates": {}},
        {"event": "table-created"},
        {"event": "schema-changed", "schema": {"fields": [1]}},
        {"event": "files-changed", "operation": "append", "of_changes": 2},
        {"event": 5},
        {"event": ["x"]},
    ],
)
def test_events_that_cannot_be_hide_nothing_of_others(event: dict[str, Any]) -> None:
    sound = {"event": "entry-linked", "kind": "table", "name": "a"}
    assert isinstance(details_of(commit(event)), dict)
    finished_commit = commit(sound, event)
    assert operations_of(finished_commit)[0] == "link" and "a" in str(details_of(finished_commit))
