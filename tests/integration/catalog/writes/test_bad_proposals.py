"""Proposals of tables that are forged, and a combiner whose disk is full: rows of others are neither lost nor twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from tests.integration.catalog.writes.test_identity import fsck_finds
from tests.integration.catalog.writes.test_open_proposals import combine, leave_proposed
from tests.integration.catalog.writes.test_proposed_rows import ids, propose, rows, shaped, table

from lakelog.catalog import Catalog, CommitUnknown, Table
from lakelog.catalog.core.parquet.ingest import rows_written_in
from lakelog.catalog.core.state.features import KNOWN
from lakelog.log import StorageError
from lakelog.log.format import Proposal, decode_proposal, encode
from lakelog.log.stores import LocalStore

__all__ = ["table"]


@pytest.mark.parametrize("refused", [1, 1_000])
def test_rows_that_a_combiner_has_no_room_to_write_are_applied_once_by_the_next(
    table: Table, tmp_path: Path, refused: int
) -> None:
    propose(table, shaped(table, rows(10)), shaped(table, rows(11, part="b")))
    left = refused

    def is_full(*args: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise StorageError("no space left on device", location="here", without_effect=True)
        return rows_written_in(*args)

    with patch("lakelog.catalog.core.writes.proposed_rows.rows_written_in", is_full):
        combine(tmp_path, table=True, rows=rows(1))  # which can write its own file, in its own way
    assert ids(table) in ([1, 1], [1, 1, 10, 11])
    combine(tmp_path, table=True, rows=rows(2))
    assert ids(table) == [1, 1, 2, 10, 11]
    assert not fsck_finds(Catalog(str(tmp_path)))


def test_a_file_that_was_written_and_is_in_no_version_is_left_to_vacuum(table: Table, tmp_path: Path) -> None:
    """The put of the version fails, as its disk is full by then: whether it had an effect is not known."""
    propose(table, shaped(table, rows(10)))
    real, puts = LocalStore.put_if_absent, 0

    def is_full(store: Any, key: str, data: bytes) -> bool:
        nonlocal puts
        if "/_log/0" in f"/{key}" and b"rows-appended" in data:
            puts += 1
            raise StorageError("no space left on device", location=key, without_effect=True)
        return real(store, key, data)

    with patch.object(LocalStore, "put_if_absent", is_full), pytest.raises(CommitUnknown, match="proposed"):
        combine(tmp_path, table=True, rows=rows(3))
    assert puts
    assert ids(table) == [1]
    combine(tmp_path, table=True, rows=rows(2))
    assert ids(table) == [1, 2, 3, 10]  # what had been proposed is applied, as the error says that it may be
    assert not fsck_finds(Catalog(str(tmp_path)))


FORGED: dict[str, tuple[str, str]] = {
    "a path that leads out": ('"path":"', '"path":"../../'),
    "a path of another table": ('"path":"', '"path":"/'),
    "a length that lies": ('"size":', '"size":-'),
    "more rows than can be": ('"rows":', '"rows":9999999999999999999'),
}


@pytest.mark.parametrize(("old", "new"), FORGED.values(), ids=FORGED.keys())
def test_a_forged_proposal_of_files_is_applied_by_no_client(
    table: Table, tmp_path: Path, old: str, new: str
) -> None:
    def forge(proposal: Proposal) -> Proposal:
        events = msgspec.json.encode(proposal.changes[0].events).decode()
        assert old in events, events
        change = msgspec.structs.replace(
            proposal.changes[0], events=tuple(msgspec.json.decode(events.replace(old, new)))
        )
        return msgspec.structs.replace(proposal, changes=(change,), hash="")

    rewritten(table, forge)
    combine(tmp_path, table=True, rows=rows(2))
    assert ids(table) == [1, 2]
    assert not fsck_finds(Catalog(str(tmp_path)))


def rewritten(table: Table, forge: Callable[[Proposal], Proposal]) -> None:
    """Leave a proposal of a file, changed as a forger does who can write the log's folder."""
    leave_proposed(lambda: table.append(rows(10)))
    log = table.table_head.tracked.log
    [key] = log.store.list_after(log.keys.inbox)
    data = log.store.get(key)
    assert data is not None
    log.store.put(key, encode(forge(decode_proposal(data, key, KNOWN))))
