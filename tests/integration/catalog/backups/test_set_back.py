"""A store that is set back below clients that go on: what each of them does, as docs/design/backup.md says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.catalog.backups.test_backups import check_whole, ids
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.catalog.changelog import ChangeStream, Limits, Stream, Versions
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.maintenance import Severity
from lakelog.catalog.state import form_of
from lakelog.log import MemoryStore
from lakelog.log.errors import FormatError


@pytest.fixture
def set_back(warehouse: str, client: Callable[[], Catalog]) -> Catalog:
    """A client that knows version 5 of a table which is at version 3."""
    catalog = client()
    table = catalog.create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    store = MemoryStore.named(warehouse)
    then = dict(store._objects)
    assert table.version == 3
    table.append(rows(3)).append(rows(4))
    store._objects = then
    return catalog


def test_a_client_that_begins_anew_goes_on(set_back: Catalog, client: Callable[[], Catalog]) -> None:
    fresh = client()
    assert ids(fresh, "t") == [1, 2]
    fresh.load_table("t").append(rows(5))
    check_whole(client())
    # The id of a row that once was is given again, to another row.
    assert fresh.load_table("t").head.state.next_row == 3


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


@pytest.mark.parametrize("kind", [Stream, ChangeStream])
def test_a_stream_that_has_read_what_is_gone_stops_before_and_after_others_have_passed(
    kind: type[Stream], warehouse: str, client: Callable[[], Catalog]
) -> None:
    table = client().create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    store = MemoryStore.named(warehouse)
    then = dict(store._objects)

    def stream() -> Stream:
        found = client().load_table("t")
        return kind(table=found, name="t", form=form_of(found.schema), since=1, versions=Versions())

    def at(text: str) -> str:
        return stream().next(stream().position(text), Limits()).to_json()

    from_there = stream().head().to_json()
    begun = stream().start(version=1).to_json()
    assert at(from_there) == from_there
    table.append(rows(3)).append(rows(4))
    checkpoint = at(begun)
    store._objects = then
    # What was read is there as it was; what comes is read.
    client().load_table("t").append(rows(5))
    assert at(from_there) != from_there
    with pytest.raises(StreamStopped, match="has read version 5 of t, whose newest is 4: .* set back"):
        at(checkpoint)
    client().load_table("t").append(rows(6)).append(rows(7))
    with pytest.raises(StreamStopped, match="has read version 5 of t, which is another commit now"):
        at(checkpoint)
    with pytest.raises(StreamStopped, match="another commit now"):
        stream().files(stream().position(begun), stream().position(checkpoint))
    # As one of an earlier release, which does not say what it has read.
    position = stream().position(checkpoint)
    assert at(checkpoint.replace(f',"read":"{position.read}"', "")) != checkpoint
    # A version that has expired is known by its tombstone.
    client().expire("t", retain_last=1, dry_run=False)
    with pytest.raises(StreamStopped, match="another commit now"):
        at(checkpoint)


def test_a_backup_restored_elsewhere_has_none_of_this(
    warehouse: str, client: Callable[[], Catalog], place: str, elsewhere: str
) -> None:
    catalog = client()
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.backup(place)
    table.append(rows(2))
    restored = Catalog(elsewhere)
    restored.restore_warehouse(place)
    restored.load_table("t").append(rows(3))
    assert ids(restored, "t") == [1, 3] and ids(client(), "t") == [1, 2]
    check_whole(restored)
    check_whole(client())
