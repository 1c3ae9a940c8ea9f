"""What commands that read show of a commit that another client wrote."""

from __future__ import annotations

import json

from lakelog.catalog.core.state import HistoryEntry
from lakelog.catalog.times import moment_of
from lakelog.cli.inspection import entry_in_json, who
from lakelog.log.secrets import MASK


def test_the_facts_of_a_foreign_writer_are_shown_without_its_secrets() -> None:
    entry = HistoryEntry(
        version=3,
        committed_at=moment_of(0),
        operation="append",
        writer={"user": "https://me:hunter2@host", "engine": "other", "password": "hunter2"},
        details={},
        commit_id="0" * 32,
        write_id=None,
        base=2,
    )
    text = json.dumps(entry_in_json(entry))
    assert "hunter2" not in text + who(entry)
    assert MASK in text and '"other"' in text
