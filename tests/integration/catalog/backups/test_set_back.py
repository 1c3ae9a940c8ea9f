"""A store that is set back below clients that go on: what each of them does, as docs/design/backup.md says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.catalog.backups.test_backups import check_whole, ids
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, StreamBatch
from lakelog.catalog.core.state import form_of
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.keeping.maintenance import Severity
from lakelog.catalog.looking.changelog import ChangeStream, StreamLimits, StreamVersions, TableStream
from lakelog.log import MemoryStore
from lakelog.log.errors import FormatError, InvalidInput


@pytest.fixture
def set_back(warehouse: str, client: Callable[[], Catalog]) -> Catalog:
    """A client that knows version 5 of a table which is at version 3."""
    catalog = client()
    table = catalog.create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    store = MemoryStore.named(warehouse)
    past_objects = dict(store._objects)
    assert table.version == 3
    table.append(rows(3)).append(rows(4))
    store._objects = past_objects
    return catalog


def test_a_client_that_begins_anew_goes_on(set_back: Catalog, client: Callable[[], Catalog]) -> None:
    fresh = client()
    assert ids(fresh, "t") == [1, 2]
    fresh.load_table("t").append(rows(5))
    check_whole(client())
    # The id of a row that once was is given again, to another row.
    assert fresh.load_table("t").table_head.state.next_row == 3


def test_a_client_that_knows_more_commits_after_a_gap_and_fsck_finds_it(
    set_back: Catalog, client: Callable[[], Catalog]
) -> None:
    table = set_back.load_table("t").append(rows(6))
    assert table.version == 6
    # Found by all that read the log anew, never passed over.
    with pytest.raises(FormatError, match="is missing although version 6 exists"):
        client().load_table("t")
    assert client().fsck().of(Severity.DAMAGE)


def test_once_others_have_passed_it_is_an_error(set_back: Catalog, client: Callable[[], Catalog]) -> None:
    for id in (5, 6, 7):
        client().load_table("t").append(rows(id))
    with pytest.raises(FormatError, match="continues another version 5"):
        set_back.load_table("t")


@pytest.mark.parametrize("kind", [TableStream, ChangeStream])
def test_a_stream_that_has_read_what_is_gone_stops_before_and_after_others_have_passed(
    kind: type[TableStream], warehouse: str, client: Callable[[], Catalog]
) -> None:
    table = client().create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    store = MemoryStore.named(warehouse)
    past_objects = dict(store._objects)

    def stream() -> TableStream:
        table = client().load_table("t")
        return kind(table=table, name="t", form=form_of(table.schema), since=1, versions=StreamVersions())

    def at(text: str) -> str:
        return stream().next(stream().position(text), StreamLimits()).to_json()

    from_there = stream().head().to_json()
    started_json = stream().start(version=1).to_json()
    assert at(from_there) == from_there
    table.append(rows(3)).append(rows(4))
    checkpoint = at(started_json)
    store._objects = past_objects
    # What was read is there as it was; what comes is read.
    client().load_table("t").append(rows(5))
    assert at(from_there) != from_there
    with pytest.raises(StreamStopped, match="has read version 5 of t, whose newest is 4: .* set back"):
        at(checkpoint)
    client().load_table("t").append(rows(6)).append(rows(7))
    with pytest.raises(StreamStopped, match="has read version 5 of t, which is another commit now"):
        at(checkpoint)
    with pytest.raises(StreamStopped, match="another commit now"):
        stream().files(stream().position(started_json), stream().position(checkpoint))
    # As one of an earlier release, which does not say what it has read.
    position = stream().position(checkpoint)
    assert at(checkpoint.replace(f',"read":"{position.read}"', "")) != checkpoint
    # A version that has expired is known by its tombstone.
    client().expire("t", retain_last=1, dry_run=False)
    with pytest.raises(StreamStopped, match="another commit now"):
        at(checkpoint)


def test_a_stream_that_writes_stops_where_its_batches_are_gone(
    warehouse: str, client: Callable[[], Catalog]
) -> None:
    def batch(number: int, after: str | None) -> StreamBatch:
        return StreamBatch(stream="s", number=number, from_checkpoint=True, after=after)

    def mark() -> str | None:
        return client().load_table("t").stream_mark("s")

    table = client().create_table("t", SCHEMA)
    assert mark() is None
    table.append(rows(1), batch=batch(0, None))
    first = mark()
    store = MemoryStore.named(warehouse)
    past_objects = dict(store._objects)
    client().load_table("t").append(rows(2), batch=batch(1, first))
    second = mark()
    store._objects = past_objects
    # The checkpoint is past the table: of batch 1 it sends nothing again.
    for number in (1, 2):
        with pytest.raises(
            StreamStopped, match="written its batches up to 1 to `t`, which has those up to 0 only"
        ):
            client().load_table("t").append(rows(3), batch=batch(number, second))
    # One of then goes on, also behind others; what it writes is not what the other has written.
    client().load_table("t").append(rows(9))
    client().load_table("t").append(rows(2), batch=batch(1, first))
    for number in (1, 2):
        with pytest.raises(StreamStopped, match="has known version 3 of `t`, which is another commit now"):
            client().load_table("t").append(rows(3), batch=batch(number, second))
    assert client().load_table("t").append(rows(2), batch=batch(1, first)).rows_changed.inserted == 0
    # A version that has expired is known by its tombstone, and one that is not there yet is none that is known.
    newest = mark()
    client().load_table("t").append(rows(5), batch=batch(2, newest))
    client().expire("t", retain_last=1, dry_run=False)
    client().load_table("t").append(rows(6), batch=batch(3, newest))
    assert ids(client(), "t") == [1, 2, 5, 6, 9]
    with pytest.raises(StreamStopped, match="has known version 99"):
        client().load_table("t").append(
            rows(7), batch=batch(4, newest.replace('"version":4', '"version":99'))
        )
    with pytest.raises(InvalidInput, match="the mark 'x' of the stream s is none"):
        client().load_table("t").append(rows(7), batch=batch(4, "x"))
    with client().transaction() as transaction, pytest.raises(InvalidInput, match="take the mark once"):
        transaction.load_table("t").stream_mark("s")


def test_a_stream_finds_what_a_table_lacks_that_was_restored_with_a_new_log(
    client: Callable[[], Catalog], place: str
) -> None:
    catalog = client()
    table = catalog.create_table("t", SCHEMA).append(rows(1), batch=StreamBatch(stream="s", number=0))
    catalog.backup(place)
    mark = table.append(rows(2), batch=StreamBatch(stream="s", number=1)).stream_mark("s")
    began_later = (
        catalog.load_table("t").append(rows(3), batch=StreamBatch(stream="r", number=0)).stream_mark("r")
    )
    catalog.restore_table(place, "t", replace=True)
    with pytest.raises(StreamStopped, match="up to 0 to `t`, which has none of them"):
        catalog.load_table("t").append(rows(4), batch=StreamBatch(stream="r", number=1, after=began_later))
    with pytest.raises(StreamStopped, match="which has those up to 0 only"):
        catalog.load_table("t").append(rows(3), batch=StreamBatch(stream="s", number=2, after=mark))
    catalog.load_table("t").append(rows(1), batch=StreamBatch(stream="s", number=0))
    assert ids(catalog, "t") == [1]
    # A table that takes over the name is another one.
    catalog.drop_table("t")
    catalog.create_table("t", SCHEMA).append(rows(3), batch=StreamBatch(stream="s", number=2, after=mark))
    assert ids(catalog, "t") == [3]
    check_whole(catalog)


def test_a_backup_restored_elsewhere_has_none_of_this(
    warehouse: str, client: Callable[[], Catalog], place: str, elsewhere: str
) -> None:
    catalog = client()
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.backup(place)
    table.append(rows(2))
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    restored_catalog.load_table("t").append(rows(3))
    assert ids(restored_catalog, "t") == [1, 3] and ids(client(), "t") == [1, 2]
    check_whole(restored_catalog)
    check_whole(client())
