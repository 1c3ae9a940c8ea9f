"""A store that is set back below clients that go on: what each of them does, as docs/design/backup.md says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.catalog.backups.test_backups import check_whole, ids
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.catalog.maintenance import Severity
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
