"""Rows that processes propose: a combiner writes those of all as files, and what does not fit harms no other."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.integration.catalog.schema.test_constraints import add, over, require
from tests.integration.catalog.writes.test_identity import create, fsck_finds, given, of, written
from tests.integration.catalog.writes.test_open_proposals import combine, leave_proposed

from lakelog.catalog import (
    Catalog,
    CheckViolated,
    CommitConflict,
    CommitUnknown,
    LogOptions,
    Table,
    Token,
    engine,
)
from lakelog.catalog.core.parquet import row_bytes
from lakelog.catalog.core.parquet.conform import conform
from lakelog.catalog.core.parquet.row_bytes import decoded_rows, encoded_rows
from lakelog.catalog.core.schema.identity import relaxed
from lakelog.catalog.core.writes import arrow_rows
from lakelog.log import FeatureNames, FormatError, InvalidInput, Log, StorageError
from lakelog.log.changes import refusal_in
from lakelog.log.format import ProposedChange
from lakelog.log.proposals.inbox import ProposalInbox, proposals_of

NOW = dt.timedelta(0)
SCHEMA = pa.schema({"id": pa.int64(), "part": pa.string()})


def rows(*ids: int, part: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "part": [part] * len(ids)}, schema=SCHEMA)


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA, partition_by=["part"])
    combine(tmp_path, table=True, rows=rows(1))  # which says that there may be proposals, and appends a row
    return catalog.load_table("n.t")


def shaped(table: Table, data: pa.Table) -> bytes:
    return encoded_rows(conform(data, relaxed(table.table_head.schema)))


def propose(table: Table, *all_rows: bytes, by: str = "them") -> list[str]:
    """Put a proposal of so many changes, as another process does; return their ids."""
    table = table.refresh()
    tracked_log, seen_version = table.table_head.tracked, table.version
    changes = [
        ProposedChange(
            commit_id=tracked_log.log.options.new_id(), base=seen_version, writer={"user": by}, rows=all_row
        )
        for all_row in all_rows
    ]
    for data, part in proposals_of(table.table_head.id, seen_version, FeatureNames(), changes):
        assert data is not None
        ProposalInbox(tracked_log.log.replay).put(seen_version, part[0].commit_id, data)
    return [change.commit_id for change in changes]


def test_rows_of_many_become_a_file_for_each_partition_and_each_author_has_an_entry(
    table: Table, tmp_path: Path
) -> None:
    propose(table, shaped(table, rows(10, 11)), shaped(table, rows(12, part="b")), by="ada")
    propose(table, shaped(table, rows(13, part="b")), by="bob")
    combine(tmp_path, table=True, rows=rows(1))
    finished_table = table.refresh()
    assert ids(finished_table) == [1, 1, 10, 11, 12, 13]
    added_history = [
        entry
        for entry in finished_table.history()
        if entry.version == finished_table.version and entry.operation == "append"
    ]
    own = [entry for entry in added_history if entry.writer.get("user") in ("ada", "bob")]
    assert sorted(entry.details["added_rows"] for entry in own) == [1, 1, 2]
    [files] = [entry for entry in added_history if "of_changes" in entry.details]
    assert (files.details["of_changes"], files.details["added_files"]) == (3, 2)
    placed_rows = finished_table.scan(row_ids=True).to_arrow().sort_by("_row_id")
    assert placed_rows["_row_id"].to_pylist() == list(range(6))
    changes = finished_table.changes(finished_table.version, finished_table.version).to_arrow()
    assert sorted(changes["id"].to_pylist()) == [1, 10, 11, 12, 13]
    assert set(changes["_change_type"].to_pylist()) == {"insert"}
    assert not [finding for finding in Catalog(str(tmp_path)).fsck().found if finding.severity.name != "NOTE"]
    audited_entries = Catalog(str(tmp_path)).audit(table="n.t")
    # Its own was proposed, too, before it began to combine.
    assert {e.user for e in audited_entries if "combined_by" in e.details} == {"ada", "bob", "root"}


def test_rows_and_files_together_are_no_more_changes_than_a_version_may_have(
    table: Table, tmp_path: Path
) -> None:
    for number in range(4):
        leave_proposed(partial(engine.commit_write, table, **written(table, rows(10 + number), {})))
        propose(table, shaped(table, rows(20 + number)))
    with (
        patch("lakelog.log.proposals.combining.CHANGES_MAX", 5),
        patch("lakelog.log.rounds.judging.CHANGES_MAX", 5),
    ):
        for _ in range(4):
            combine(tmp_path, table=True, rows=rows(1))
    assert sorted(set(ids(table))) == [1, *range(10, 14), *range(20, 24)]
    assert max(len(commit.changes) for commit in table.refresh().table_head.commits()) == 5


def test_values_of_identity_columns_are_taken_by_who_combines(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("n")
    table = create(catalog, "n.t")
    combine(tmp_path, table=True, rows=of("mine"))
    for names in (("a", "b"), ("c",)):
        propose(table, shaped(table, of(*names)))
    propose(table, shaped(table, given(7)))  # which only a table that allows it takes
    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        other_table = Catalog(str(tmp_path), log_options=LogOptions(proposals=True)).load_table("n.t")
        # The first one's values are in its file, so that it goes by itself; the second one has rows.
        other_table.append(of("mine")).append(of("mine"))
    finished_table = table.refresh()
    assert ids(finished_table) == [1, 2, 3, 4, 5, 6]
    assert sorted(finished_table.to_arrow()["of"].to_pylist()) == ["a", "b", "c", "mine", "mine", "mine"]
    assert engine.identity_values(finished_table)[0]["next"] == 7
    assert not fsck_finds(catalog)


def test_files_whose_values_others_took_get_other_values_and_are_not_refused(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("n")
    table = create(catalog, "n.t")
    combine(tmp_path, table=True, rows=of("theirs"))
    late = written(table, of("mine"), {})
    finished_table = engine.commit_write(table, **late)
    assert sorted(zip(*finished_table.to_arrow().to_pydict().values(), strict=True)) == [
        (1, "theirs"),
        (2, "mine"),
    ]
    assert engine.commit_write(finished_table, **late).version == finished_table.version
    assert not fsck_finds(catalog)


def compressed(table: Table) -> bytes:
    data, sink = conform(rows(666), relaxed(table.table_head.schema)), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, data.schema, options=options) as stream:
        stream.write_table(data)
    return bytes(sink.getvalue())


def of_dictionaries(table: Table) -> bytes:
    data = rows(666)
    return encoded_rows(data.set_column(1, "part", data["part"].dictionary_encode()))


def longer(table: Table) -> bytes:
    """Rows that say that they are 2^40, where they are 99."""
    data, length = shaped(table, rows(*range(99))), struct.pack("<q", 99)
    assert data.count(length) >= 1
    return data.replace(length, struct.pack("<q", 1 << 40))


def mislabelled(table: Table) -> bytes:
    """Rows whose schema says that it is a batch. What Arrow is given as a schema, it reads as one, whatever it is."""
    data = shaped(table, rows(666))
    metadata = pa.ipc.MessageReader.open_stream(data).read_next_message().metadata.to_pybytes()
    [root] = struct.unpack_from("<I", metadata)
    place = row_bytes._member(metadata, root, 1)
    assert place is not None
    at = data.index(metadata) + place
    assert data[at] == 1
    return data[:at] + b"\x03" + data[at + 1 :]


BAD: dict[str, Callable[[Table], bytes]] = {
    "garbage": lambda table: b"garbage",
    "nothing": lambda table: b"\xff\xff\xff\xff\0\0\0\0",
    "mislabelled": mislabelled,
    "cut": lambda table: shaped(table, rows(666))[:-300],
    "compressed": compressed,
    "other columns": lambda table: encoded_rows(pa.table({"other": [666]})),
    "a longer batch than its buffers": longer,
    "values that stand for many": of_dictionaries,
    "against a CHECK": lambda table: shaped(table, rows(-1)),
    "NULL": lambda table: encoded_rows(pa.table({"id": [None], "part": ["a"]}, schema=SCHEMA)),
}


def test_what_does_not_fit_is_left_alone_and_holds_up_no_other(table: Table, tmp_path: Path) -> None:
    table = table.alter([require("id"), add(over(0))])
    bad = [make(table) for make in BAD.values()]
    remaining_texts = propose(table, bad[0], shaped(table, rows(10)), *bad[1:], shaped(table, rows(11)))
    combine(tmp_path, table=True, rows=rows(1))
    assert ids(table) == [1, 1, 10, 11]
    finished_table = table.refresh()
    [newest] = finished_table.table_head.tracked.log.commits(finished_table.version)
    assert {change.commit_id for change in newest.changes} & set(remaining_texts) == {
        remaining_texts[1],
        remaining_texts[-1],
    }
    assert not fsck_finds(Catalog(str(tmp_path)))


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
def test_bytes_that_are_no_rows_of_the_table_are_refused_when_they_are_read(
    make: Callable[[Table], bytes], table: Table
) -> None:
    data = make(table)
    try:
        assert decoded_rows(data, table.table_head.schema).num_rows == 1
    except FormatError:
        return
    assert make in (BAD["against a CHECK"], BAD["NULL"])  # that is for the table's rules to say


def test_rows_that_were_shaped_for_another_table_are_their_authors_to_append(
    table: Table, tmp_path: Path
) -> None:
    [id] = propose(table, shaped(table, rows(10)))
    table.alter([{"change": "add-column", "name": ["more"], "type": "integer"}])
    combine(tmp_path, table=True, rows=rows(1))
    assert ids(table) == [1, 1]
    token = Token(commit_id=id, bases={table.table_head.tracked.location: table.version})
    table.refresh().append(rows(10), token=token)
    assert ids(table) == [1, 1, 10]


def proposing(monkeypatch: pytest.MonkeyPatch, propose: Callable[..., Any]) -> None:
    monkeypatch.setattr(Log, "proposes", True)
    monkeypatch.setattr(Log, "propose", propose)


def test_rows_that_no_client_commits_are_appended_by_their_author_under_the_same_id(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_texts: list[str] = []

    def comes_back(log: Any, view: Any, decide: Any, *, commit_id: str, **more: Any) -> None:
        asked_texts.append(commit_id)
        assert decide(view, ()).rows

    proposing(monkeypatch, comes_back)
    finished_table = table.append(rows(5, 6))
    assert ids(finished_table) == [1, 5, 6]
    assert [next(finished_table.history()).commit_id] == asked_texts


def test_rows_that_another_client_commits_meanwhile_are_appended_once(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_slow(log: Any, view: Any, decide: Any, *, commit_id: str, **more: Any) -> None:
        change = ProposedChange(commit_id=commit_id, base=view.version, rows=decide(view, ()).rows)
        [(data, _)] = proposals_of(view.log_id, view.version, FeatureNames(), [change])
        assert data is not None
        ProposalInbox(log.replay).put(view.version, commit_id, data)
        monkeypatch.undo()
        combine(tmp_path, table=True, rows=rows(1))

    proposing(monkeypatch, is_slow)
    assert ids(table.append(rows(5, 6))) == [1, 1, 5, 6]


def test_rows_that_are_refused_after_they_were_proposed_are_refused_for_good(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_texts: list[str] = []

    def meets_a_check(log: Any, view: Any, decide: Any, *, commit_id: str, **more: Any) -> None:
        asked_texts.append(commit_id)
        Catalog(table.table_head.logs.warehouse).load_table("n.t").alter([add(over(0))])
        assert decide(log.refresh(view), ()).rows  # who combines finds out

    proposing(monkeypatch, meets_a_check)
    with pytest.raises(CommitConflict, match="added a CHECK"):
        table.append(rows(-5))
    log = table.table_head.tracked.log
    [refused_commit] = [commit for commit in log.commits() if refusal_in(commit, asked_texts[0])]
    assert refused_commit.version == table.refresh().version


def test_a_failure_after_rows_were_proposed_is_no_certain_one(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposing(monkeypatch, lambda *args, **more: None)

    def fails(*args: Any) -> None:
        raise StorageError("the network is down", location="here")

    monkeypatch.setattr(arrow_rows, "_write_rows", fails)
    with pytest.raises(CommitUnknown):
        table.append(rows(5))


def test_rows_that_do_not_fit_fail_before_they_are_proposed(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.alter([add(over(0))])
    table = table.refresh()

    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError

    proposing(monkeypatch, never)
    for wrong in (pa.table({"other": [1]}), rows(-1)):
        with pytest.raises((InvalidInput, CheckViolated)):
            table.append(wrong)


def renamed_and_back(catalog: Catalog) -> None:
    catalog.rename_table("n.t", "n.u")
    catalog.rename_table("n.u", "n.t")


def dropped_and_restored(catalog: Catalog) -> None:
    catalog.drop_table("n.t")
    catalog.undrop_table("n.t")


def truncated_and_vacuumed(catalog: Catalog) -> None:
    catalog.load_table("n.t").truncate()
    catalog.vacuum(older_than=NOW, dry_run=False)


def expired(catalog: Catalog) -> None:
    """After which it is not known whether the change is in a version that saw it."""
    catalog.load_table("n.t").append(rows(3))
    catalog.expire("n.t", older_than=NOW, dry_run=False)


def in_a_transaction(catalog: Catalog) -> None:
    with catalog.transaction() as transaction:
        transaction.load_table("n.t").append(rows(3))
        transaction.create_table("n.other", SCHEMA)


@pytest.mark.parametrize(
    ("meanwhile", "there"),
    [
        (renamed_and_back, [1, 1]),
        (dropped_and_restored, [1, 1]),
        (truncated_and_vacuumed, [1, 10]),
        (expired, [1, 1, 3]),
        (in_a_transaction, [1, 1, 3, 10]),
    ],
)
def test_rows_pass_what_leaves_the_table_as_it_is_and_nothing_else(
    meanwhile: Callable[[Catalog], object], there: list[int], table: Table, tmp_path: Path
) -> None:
    [id] = propose(table, shaped(table, rows(10)))
    meanwhile(Catalog(str(tmp_path)))
    combine(tmp_path, table=True, rows=rows(1))
    finished_table = Catalog(str(tmp_path)).load_table("n.t")
    assert ids(finished_table) == there
    assert not fsck_finds(Catalog(str(tmp_path)))
    # A retry is that change where it happened, and else happens now, or fails for good.
    token = Token(commit_id=id, bases={finished_table.table_head.tracked.location: 2})
    if 10 in there:
        assert ids(finished_table.append(rows(10), token=token)) == there
