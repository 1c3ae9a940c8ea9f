"""A table as a stream: every row that is added is delivered once, in batches of any size, also when retried."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet
import pytest

from lakelog.catalog import Table, col, engine
from lakelog.catalog.core.state.stream_forms import form_of
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.looking.changelog.stream_positions import StreamLimits, StreamPosition
from lakelog.catalog.looking.changelog.stream_source import TableStream
from lakelog.catalog.looking.changelog.stream_versions import StreamVersions
from lakelog.log import FormatError, InvalidInput, Unsupported

SCHEMA = pa.schema([("x", pa.int64())])
ALL = StreamLimits()


@pytest.fixture
def table(catalog):
    """A table of three versions: the second has 1 and 2 in a file, the third 3."""
    return catalog.create_table("t", SCHEMA).append(rows(1, 2)).append(rows(3))


def rows(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def stream(table, **more) -> TableStream:
    return TableStream(table=table, name="lake.t", form=form_of(table.schema), since=table.version, **more)


def table_of(source: TableStream) -> Table:
    assert isinstance(source.table, Table)
    return source.table


def refreshed_stream(source: TableStream) -> TableStream:
    return replace(source, table=table_of(source).refresh(), versions=StreamVersions())


def delivered_numbers(source: TableStream, start, end) -> list[int]:
    numbers: list[int] = []
    for path in source.files(start, end)["path"].to_pylist():
        with source.table.table_head.tracked.store.open_input(
            f"{source.table.table_head.tracked.prefix}/{path}"
        ) as file:
            numbers += pa.parquet.read_table(file).column(0).to_pylist()
    return numbers


def batches(source: TableStream, position, limits=ALL, until=None) -> tuple[list[list[int]], StreamPosition]:
    """Return what a query gets, batch by batch, that asks until there is nothing more, and where it is then."""
    numbers: list[list[int]] = []
    for _ in itertools.repeat(None, 1000):
        end = StreamPosition.from_json(source.next(position, limits, until).to_json())
        if end == position:
            return numbers, position
        numbers.append(delivered_numbers(source, position, end))
        assert delivered_numbers(refreshed_stream(source), position, end) == numbers[-1]
        position = end
    raise AssertionError("a stream without end")


def test_it_begins_with_the_contents_and_goes_on_with_what_is_added(table):
    source = stream(table)
    first, position = batches(source, source.start())
    assert first == [[1, 2, 3]]
    table.append(rows(4)).append(rows(5))
    assert batches(refreshed_stream(source), position)[0] == [[4, 5]]


def test_it_begins_at_a_version_a_time_or_with_what_is_to_come(table):
    source = stream(table)
    assert batches(source, source.start(version=1))[0] == [[1, 2, 3]]
    assert batches(source, source.start(version=3))[0] == [[3]]
    time_us = table.at(version=3).table_head.time_us
    assert batches(source, source.start(timestamp_us=time_us))[0] == [[3]]
    assert batches(source, source.start(timestamp_us=time_us + 1))[0] == []
    assert batches(source, source.start(timestamp_us=0))[0] == [[1, 2, 3]]
    for later_us in (time_us + 365 * 86_400_000_000, 2**62):
        with pytest.raises(InvalidInput, match="in the future"):
            source.start(timestamp_us=later_us)
    latest = source.start(version="latest")
    assert batches(source, latest)[0] == []
    table.append(rows(9))
    assert batches(refreshed_stream(source), latest)[0] == [[9]]


@pytest.mark.parametrize("version", [0, 5, -1])
def test_it_does_not_begin_at_versions_that_there_are_not(table, version):
    with pytest.raises(InvalidInput, match="its versions are 1 to 3"):
        stream(table).start(version=version)


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (StreamLimits(files=1), [[1, 2], [3], [4, 5, 6], [7]]),
        (StreamLimits(files=3), [[1, 2, 3, 4, 5, 6], [7]]),
        (StreamLimits(rows=3), [[1, 2, 3], [4, 5, 6], [7]]),
        (StreamLimits(rows=4), [[1, 2, 3], [4, 5, 6, 7]]),
        (StreamLimits(rows=2), [[1, 2], [3], [4, 5, 6], [7]]),
        (StreamLimits(bytes=1), [[1, 2], [3], [4, 5, 6], [7]]),
        (StreamLimits(files=2, rows=4), [[1, 2, 3], [4, 5, 6, 7]]),
        (StreamLimits(), [[1, 2, 3, 4, 5, 6, 7]]),
    ],
)
def test_batches_have_as_much_as_they_may_and_a_file_at_least(table, version, limits, expected):
    source = stream(table.append(rows(4, 5, 6)).append(rows(7)))
    assert batches(source, source.start(version=version), limits)[0] == expected


@pytest.mark.parametrize("name", ["files", "bytes", "rows"])
def test_a_batch_of_nothing_is_no_limit(name):
    with pytest.raises(InvalidInput, match="give 1 or more"):
        StreamLimits(**{name: 0})


def test_what_comes_after_its_target_is_left_for_later(table):
    source = stream(table)
    until = source.head()
    table.append(rows(4))
    found, position = batches(refreshed_stream(source), source.start(), StreamLimits(files=1), until)
    assert found == [[1, 2], [3]]
    assert batches(refreshed_stream(source), position)[0] == [[4]]


def test_versions_without_rows_are_passed_over(table):
    source = stream(table)
    _, position = batches(source, source.start())
    table.alter([{"change": "set-property", "key": "k", "value": "v"}])
    table.refresh().append(rows(4))
    assert batches(refreshed_stream(source), position)[0] == [[4]]


CHANGES = {
    "delete": lambda table: table.delete(col("x") == 3),
    "overwrite": lambda table: table.overwrite(rows(8)),
    "truncate": lambda table: table.truncate(),
    "rollback": lambda table: table.rollback_to_version(2),
    "set-current-version": lambda table: table.set_current_version(2),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_change_of_rows_stops_it_after_all_that_came_before(table, change):
    source = stream(table)
    position = source.start(version=2)
    CHANGES[change](table).append(rows(9))
    source = refreshed_stream(source)
    position_before = source.next(position, ALL)
    assert (delivered_numbers(source, position, position_before), position_before.version) == ([1, 2, 3], 4)
    with pytest.raises(StreamStopped, match=rf"version 4 of lake.t \({change}.*; by .*skipChangeCommits"):
        source.next(position_before, ALL)
    skipping_text = replace(source, skips_changes=True)
    assert batches(skipping_text, position_before)[0] == [[9]]
    assert delivered_numbers(skipping_text, position, skipping_text.next(position, ALL)) == [1, 2, 3, 9]
    with pytest.raises(StreamStopped):
        source.files(position, skipping_text.next(position, ALL))


def test_rows_deleted_from_within_a_file_stop_it_and_a_new_stream_leaves_them_out(table):
    source = stream(table)
    position = source.start(version=2)
    deleted = table.delete(col("x") == 1)
    source = refreshed_stream(source)
    position_before = source.next(position, ALL)
    with pytest.raises(StreamStopped, match=r"version 4 of lake.t \(delete"):
        source.next(position_before, ALL)
    new = stream(deleted)
    start = new.start()
    files = new.files(start, new.next(start, ALL))
    assert files["rows"].to_pylist() == [1, 1]
    assert files["deleted"].to_pylist() == [1, None]
    assert files["deletes"][0].as_py() is not None


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_overwritten_within_a_file_stop_it(table, mode):
    table = table.alter([{"change": "set-property", "key": "lakelog.write.delete.mode", "value": mode}])
    source = stream(table)
    _, position = batches(source, source.start())
    table.overwrite(rows(8), col("x") == 1).append(rows(9))
    source = refreshed_stream(source)
    with pytest.raises(StreamStopped, match=r"version 5 of lake.t \((delete, )?overwrite;"):
        source.next(position, ALL)
    assert batches(replace(source, skips_changes=True), position)[0] == [[9]]


def test_rows_that_come_back_by_a_rollback_stop_it(table):
    gone = table.truncate()
    source = stream(gone)
    position = source.start()
    gone.rollback_to_version(3)
    with pytest.raises(StreamStopped, match="rollback"):
        refreshed_stream(source).next(refreshed_stream(source).next(position, ALL), ALL)


def test_an_overwrite_of_nothing_only_adds(catalog):
    table = catalog.create_table("t", SCHEMA)
    source = stream(table)
    position = source.start()
    table.overwrite(rows(1))
    assert batches(refreshed_stream(source), position)[0] == [[], [1]] or batches(
        refreshed_stream(source), position
    )[0] == [[1]]


def compacted(table):
    from lakelog.catalog.core.parquet.ingest import written_files

    write = engine.begin_write(table)
    files = written_files(table.table_head.tracked, table.metadata, write, table.to_arrow())
    return engine.commit_rows(table, write, "compact", files, removed=table.plan()["path"].to_pylist())


def test_a_compaction_changes_no_rows(table):
    source = stream(table)
    assert batches(refreshed_stream(source), source.start(version=1))[0] == [[1, 2, 3]]
    position = source.start()
    compacted(table).append(rows(4))
    assert batches(refreshed_stream(source), position)[0] == [[1, 2, 3, 4]]
    assert batches(refreshed_stream(source), source.start(version=1))[0] == [[1, 2, 3, 4]]


def test_a_change_of_columns_stops_it_and_a_new_query_goes_on(table):
    source = stream(table)
    position = source.start(version=2)
    altered = table.alter([{"change": "rename-column", "name": ("x",), "new_name": "y"}])
    altered.append(pa.table({"y": pa.array([4], pa.int64())}))
    running = refreshed_stream(source)
    position_before = running.next(position, ALL)
    assert delivered_numbers(running, position, position_before) == [1, 2, 3]
    with pytest.raises(StreamStopped, match="version 4 .*restart the query with the same checkpoint"):
        running.next(position_before, ALL)
    assert batches(stream(altered.refresh()), position_before)[0] == [[4]]


def test_comments_and_defaults_of_new_rows_do_not_stop_it(table):
    source = stream(table)
    position = source.start(version=2)
    table.alter([{"change": "update-column-comment", "name": ("x",), "comment": "a number"}]).append(rows(4))
    assert batches(refreshed_stream(source), position)[0] == [[1, 2, 3, 4]]


def test_a_table_that_was_replaced_or_created_anew_is_another_one(catalog, table):
    position = stream(table).start(version=2)
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", SCHEMA), ())
    with pytest.raises(StreamStopped, match="was replaced in version 4.*a new checkpoint"):
        stream(table.refresh()).next(position, ALL)
    with pytest.raises(InvalidInput, match="replaced in version 4: start from version 4 or"):
        stream(table.refresh()).start(version=2)
    catalog.drop_table("t")
    with pytest.raises(StreamStopped, match="of another table"):
        stream(catalog.create_table("t", SCHEMA)).next(position, ALL)


def test_versions_that_expired_before_they_were_read_stop_it(catalog, table):
    source = stream(table)
    middle = source.next(source.start(version=2), StreamLimits(files=1))
    contents = source.start()
    for number in range(4, 8):
        table = table.append(rows(number))
    end = refreshed_stream(source).head()
    catalog.expire("t", retain_last=1, dry_run=False)
    for position in (middle, contents):
        with pytest.raises(
            StreamStopped, match=f"version {position.version} of lake.t, .* has expired before"
        ):
            refreshed_stream(source).next(position, ALL)
    oldest = refreshed_stream(source).table.table_head.view.state.expired
    for version in (2, oldest):
        with pytest.raises(InvalidInput, match=f"have expired. Start from version {oldest + 1} or"):
            refreshed_stream(source).start(version=version)
    later = refreshed_stream(source).start(version=oldest + 1)
    assert refreshed_stream(source).next(later, ALL).version == refreshed_stream(source).head().version
    # One that has read all goes on.
    table.append(rows(8))
    assert batches(refreshed_stream(source), end)[0] == [[8]]


def test_a_first_batch_that_is_retried_begins_where_it_began(table):
    source = stream(table)
    end = source.next(source.start(), StreamLimits(files=1))
    table.append(rows(4))
    late = refreshed_stream(source)
    assert delivered_numbers(late, late.start(), end) == [1, 2]
    latest = source.start(version="latest")
    end = late.next(latest, ALL)
    assert delivered_numbers(late, late.start(version="latest"), end) == [4]


@pytest.mark.parametrize("text", ["{}", "7", '{"format":1}', "not json"])
def test_a_position_of_something_else_is_refused(text):
    with pytest.raises(FormatError, match="not a position in a lakelog table"):
        StreamPosition.from_json(text)


def test_a_position_of_a_later_format_is_refused(table):
    text = stream(table).start().to_json().replace('"format":1', '"format":2')
    with pytest.raises(FormatError, match="upgrade"):
        StreamPosition.from_json(text)


def test_a_batch_costs_a_get_for_each_version_and_none_when_it_is_read(table, monkeypatch):
    source = stream(table)
    table.append(rows(4)).append(rows(5))
    source = replace(source, table=table.refresh())
    store, keys = source.table.table_head.tracked.store, []
    for name in ("get", "get_many"):
        real = getattr(store, name)
        monkeypatch.setattr(store, name, lambda asked, real=real: (keys.append(asked), real(asked))[1])
    position = source.start(version=4)
    end = source.next(position, ALL)
    assert sum(len(key) if isinstance(key, list | tuple) else 1 for key in keys) == 2
    del keys[:]
    assert source.files(position, end).num_rows == 2
    assert source.next(end, ALL) == end
    assert keys == []


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_done_to_a_table_a_stream_delivers_each_row_that_was_added_once(catalog, seed):
    rng = random.Random(seed)
    table = catalog.create_table("t", SCHEMA)
    numbers = itertools.count()
    added_numbers: list[int] = []

    def work():
        nonlocal table
        table = table.refresh()
        choice = rng.random()
        if choice < 0.6:
            new = [next(numbers) for _ in range(rng.randint(1, 3))]
            table = table.append(rows(*new))
            added_numbers.extend(new)
        elif choice < 0.75 and table.row_count:
            table = compacted(table)
        elif choice < 0.9:
            table = table.alter([{"change": "set-property", "key": "k", "value": str(next(numbers))}])
        else:
            with catalog.begin() as tx:
                for _ in range(2):
                    added_numbers.append(next(numbers))
                    tx.load_table("t").append(rows(added_numbers[-1]))

    for _ in range(rng.randint(0, 5)):
        work()
    source, position = stream(table.refresh()), None
    is_whole = rng.random() < 0.5
    position = source.start() if is_whole else source.start(version=1)
    seen_numbers: list[int] = []
    for _ in range(30):
        if rng.random() < 0.5:
            work()
        source = refreshed_stream(source)
        limits = StreamLimits(*(rng.choice((None, rng.randint(1, 6))) for _ in range(3)))
        end = source.next(position, limits)
        seen_numbers += delivered_numbers(source, position, end)
        position = end
    seen_numbers += delivered_numbers(
        refreshed_stream(source), position, refreshed_stream(source).next(position, ALL)
    )
    assert sorted(seen_numbers) == sorted(added_numbers)


def test_it_follows_main_and_passes_over_branches(table):
    source = stream(table)
    first, position = batches(source, source.start())
    assert first == [[1, 2, 3]]
    table.create_branch("b").create_tag("t")
    branch = table.refresh().at(ref="b").append(rows(4)).append(rows(5)).delete(col("x") == 5)
    table.refresh().create_branch("other").at(ref="other").truncate()
    found, position = batches(refreshed_stream(source), position)
    assert sum(found, []) == []
    with pytest.raises(Unsupported, match="is on b"):
        stream(branch)
    branch.fast_forward("main", "b").append(rows(6))
    assert batches(refreshed_stream(source), position)[0] == [[4, 6]]


def test_what_the_same_transaction_did_before_a_replace_is_of_another_table(catalog, table):
    for change in ("append", "overwrite", "nothing"):
        with catalog.begin() as tx:
            if change != "nothing":
                inner = tx.load_table("t")
                getattr(inner, change)(pa.table({inner.schema.names[0]: [8]}))
            engine.commit_stage(tx, engine.stage(tx, "replace", "t", pa.schema([("y", pa.int64())])))
            tx.load_table("t").append(pa.table({"y": [9]}))
        table = catalog.load_table("t")
        source = stream(table)
        assert batches(source, source.start(version=table.version))[0] == [[9]]


def test_a_stream_that_may_lose_rows_goes_on_after_what_has_expired(catalog, table):
    source = stream(table, skips_expired=True)
    middle = source.next(source.start(version=2), StreamLimits(files=1))
    contents = source.start()
    planned_middle = source.next(middle, StreamLimits(files=1))
    for number in range(4, 8):
        table = table.append(rows(number))
    end = refreshed_stream(source).head()
    catalog.expire("t", retain_last=1, dry_run=False)
    table.append(rows(8))
    newest = refreshed_stream(source)
    for position in (middle, contents, planned_middle, end):
        assert batches(newest, position)[0] == [[8]], position
    # A batch that was planned before, of what is gone, is empty; and what goes on has a hash to be known by.
    assert newest.files(middle, planned_middle).num_rows == 0
    first_middle, other = newest.next(middle, ALL), newest.next(end, ALL)
    assert (first_middle.order, first_middle.read) == (other.order, other.read)
    assert newest.next(middle, ALL, until=planned_middle) == planned_middle
    # Nothing that is there is passed over.
    kept_stream = stream(catalog.load_table("t"), skips_expired=True)
    assert (
        batches(kept_stream, kept_stream.start())[0]
        == batches(stream(catalog.load_table("t")), kept_stream.start())[0]
    )


def test_a_stream_goes_on_after_an_erasure_where_it_may_lose_rows(catalog, table):
    source = stream(table, skips_expired=True)
    end = source.head()
    catalog.forget("t", "x = 1", dry_run=False)
    catalog.load_table("t").append(rows(9))
    with pytest.raises(StreamStopped, match="failOnDataLoss = false"):
        stream(catalog.load_table("t")).next(end, ALL)
    found, _ = batches(stream(catalog.load_table("t"), skips_expired=True), end)
    assert found[-1] == [9] and sum(map(len, found)) <= 1


def test_a_change_of_columns_is_seen_though_it_expired_before_it_was_read(catalog, table):
    source = stream(table, skips_expired=True)
    end = source.head()
    table = table.append(rows(4)).alter([{"change": "rename-column", "name": ["x"], "new_name": "y"}])
    table = table.append(pa.table({"y": [5]}))
    catalog.expire("t", retain_last=1, dry_run=False)
    table = table.refresh().append(pa.table({"y": [6]}))
    with pytest.raises(StreamStopped, match="Load the table again and restart"):
        refreshed_stream(source).next(end, ALL)
    assert batches(stream(table, skips_expired=True), end)[0] == [[6]]
