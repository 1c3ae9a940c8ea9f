"""The changes of a table as a stream: whole versions, the same when retried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import compacted, deleted, rows, two_files, updated

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.parquet.reading import read_files
from lakelog.catalog.core.state.stream_forms import form_of
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.looking.changelog.change_stream import ChangeStream
from lakelog.catalog.looking.changelog.changelog import changes_schema
from lakelog.catalog.looking.changelog.stream_positions import StreamLimits, StreamPosition
from lakelog.catalog.looking.changelog.stream_source import TableStream
from lakelog.catalog.looking.changelog.stream_versions import StreamVersions
from lakelog.log.errors import FormatError, InvalidInput

ALL = StreamLimits()


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Version 2 has the rows 0 to 9, version 3 also 10 to 19; version 4 deletes 1, version 5 updates 2."""
    return updated(deleted(two_files(catalog), [1]), [2], "new")


def stream(table: Table, **more: object) -> ChangeStream:
    return ChangeStream(table=table, name="t", form=form_of(table.schema), since=table.version, **more)  # type: ignore[arg-type]


def read(source: ChangeStream, start: StreamPosition, end: StreamPosition) -> pa.Table:
    assert isinstance(source.table, Table)
    tracked_log = source.table.table_head.tracked
    schema, batches = read_files(
        tracked_log.store,
        tracked_log.prefix,
        source.files(start, end),
        changes_schema(source.table.schema),
        (),
        row_ids=True,
    )
    return pa.Table.from_batches(batches, schema)


def batches(source: ChangeStream, position: StreamPosition, limits: StreamLimits = ALL) -> Iterator[pa.Table]:
    """Yield what a query gets until there is nothing more."""
    for _ in range(100):
        end = source.position(source.next(position, limits).to_json())
        if end == position:
            return
        found = read(source, position, end)
        assert read(replace(source, versions=StreamVersions()), position, end) == found
        yield found
        position = end


def changes_in(batch: pa.Table) -> list[tuple[int, str, int]]:
    columns = (batch[name].to_pylist() for name in ("_commit_version", "_change_type", "id"))
    return sorted(zip(*columns, strict=True))


def test_the_contents_come_first_as_inserts_of_their_version(table: Table) -> None:
    source = stream(table)
    [batch] = batches(source, source.start())
    assert changes_in(batch) == [(5, "insert", id) for id in range(20) if id != 1]


def test_versions_are_never_torn_apart(table: Table) -> None:
    source = stream(table)
    changes = [changes_in(batch) for batch in batches(source, source.start(version=1), StreamLimits(files=1))]
    assert [{version for version, _, _ in batch} for batch in changes] == [{2}, {3}, {4}, {5}]
    assert changes[2:] == [[(4, "delete", 1)], [(5, "delete", 2), (5, "insert", 2)]]
    [whole] = batches(source, source.start(version=1))
    assert changes_in(whole) == [change for batch in changes for change in batch]
    two = [changes_in(batch) for batch in batches(source, source.start(version=1), StreamLimits(rows=20))]
    assert [{version for version, _, _ in batch} for batch in two] == [{2, 3}, {4, 5}]


def test_changes_have_the_times_of_their_versions(table: Table) -> None:
    source = stream(table)
    for limits in (StreamLimits(files=1), ALL):
        for batch in batches(source, source.start(version=1), limits):
            times = batch["_commit_timestamp"].cast(pa.int64()).to_pylist()
            for version, time in zip(batch["_commit_version"].to_pylist(), times, strict=True):
                assert time == table.at(version=version).table_head.time_us
    [whole] = batches(source, source.start())
    assert set(whole["_commit_timestamp"].cast(pa.int64()).to_pylist()) == {table.table_head.time_us}


def test_a_batch_says_whether_a_row_may_have_several_changes(table: Table) -> None:
    """Version 2 and 3 insert, version 4 deletes, version 5 updates."""
    source = stream(table.append(rows(range(30, 31))))

    def among(first: int | None, last: int) -> tuple[bool, bool]:
        start = source.start(version=first)
        end = source.next(start, ALL, until=source.start(version=last + 1))
        batch = source.batch(start, end)
        assert batch.may_carry <= batch.may_update
        return batch.may_update, batch.may_repeat

    assert among(2, 3) == among(6, 6) == among(None, 6) == (False, False)
    assert among(4, 4) == (False, False)
    assert among(3, 4) == (False, True)
    assert among(5, 5) == (True, False)
    assert among(2, 6) == (True, True)


def test_rows_of_the_contents_may_change_in_the_same_batch(table: Table) -> None:
    start = stream(table).start()
    source = stream(deleted(table, [5]))
    batch = source.batch(start, source.next(start, ALL))
    assert (batch.may_update, batch.may_repeat) == (False, True)


def test_a_first_batch_is_the_same_for_a_reader_that_has_forgotten_where_it_began(table: Table) -> None:
    source = stream(table)
    for start in (source.start(version=3), source.start()):
        end = source.next(start, ALL)
        for other_position in (source.start(version=5), source.start()):
            assert source.files(other_position, end) == source.files(start, end)


def test_it_ends_at_the_given_version(table: Table) -> None:
    source = stream(table, last=4)
    assert [changes_in(batch) for batch in batches(source, source.start(version=4))] == [[(4, "delete", 1)]]
    assert source.head().version == 5


def test_it_ends_at_a_time_that_may_be_still_to_come(table: Table) -> None:
    later = table.append(rows(range(30, 31)))
    latest = later.append(rows(range(40, 41)))
    ends = later.table_head.time_us
    for current_table, end_us, last in (
        (table, ends, 5),
        (later, ends, 6),
        (latest, ends, 6),
        (latest, ends - 1, 5),
    ):
        source = stream(current_table, last_us=end_us)
        [batch] = batches(source, source.start(version=4))
        assert {version for version, _, _ in changes_in(batch)} == set(range(4, last + 1))
        assert source.head().version == last + 1
        assert list(batches(source, source.head())) == []
    over = stream(latest, last_us=1)
    assert list(batches(over, over.start(version=4))) == []


def test_an_end_that_has_expired_hides_no_version_that_was_not_read(catalog: Catalog, table: Table) -> None:
    end_us = table.at(version=4).table_head.time_us
    position = stream(table).start(version=3)
    catalog.expire("t", version=5, dry_run=False)
    source = stream(catalog.load_table("t"), last_us=end_us)
    with pytest.raises(StreamStopped, match="has expired before it was read"):
        source.next(position, ALL)
    assert source.next(source.head(), ALL) == source.head()


def test_a_table_that_was_replaced_is_followed_from_the_version_after_that(
    catalog: Catalog, table: Table
) -> None:
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", table.schema))
    source = stream(catalog.load_table("t").append(rows(range(3))))
    for version in (5, 6):
        with pytest.raises(InvalidInput, match="replaced in version 6: start from version 7 or"):
            source.start(version=version)
    [batch] = batches(source, source.start(version=7))
    assert changes_in(batch) == [(7, "insert", id) for id in range(3)]


def test_checkpoints_of_streams_of_additions_and_of_changes_are_not_mistaken(table: Table) -> None:
    changes = stream(table)
    additions = TableStream(table=table, name="t", form=changes.form, since=table.version)
    for own, other_additions, words in (
        (changes, additions, "reads rows that are added, but this stream reads changes"),
        (additions, changes, "reads changes, but this stream reads rows that are added"),
    ):
        for version in (None, 3):
            assert own.position(own.start(version=version).to_json()) == own.start(version=version)
            with pytest.raises(InvalidInput, match=words):
                own.position(other_additions.start(version=version).to_json())
        with pytest.raises(FormatError, match="of another source"):
            own.position('{"offset": 7}')


def test_a_compaction_is_no_change(table: Table) -> None:
    source = stream(compacted(table))
    [batch] = batches(source, source.start(version=5))
    assert {version for version, _, _ in changes_in(batch)} == {5}


def test_other_columns_stop_it_after_what_came_before(table: Table) -> None:
    source = stream(table)
    position = source.start(version=6)
    table_after = table.append(rows(range(30, 31))).alter(
        [{"change": "add-column", "name": ["more"], "type": "integer"}]
    )
    source = replace(source, table=table_after)
    end = source.next(position, ALL)
    assert changes_in(read(source, position, source.position(end.to_json()))) == [(6, "insert", 30)]
    with pytest.raises(StreamStopped, match="columns of t were changed in version 7"):
        source.next(end, ALL)


def test_versions_that_are_gone_stop_it(catalog: Catalog, table: Table) -> None:
    source = stream(table)
    position = source.start(version=3)
    catalog.expire("t", version=5, dry_run=False)
    source = stream(catalog.load_table("t"))
    with pytest.raises(StreamStopped, match="has expired before it was read"):
        source.next(position, ALL)
