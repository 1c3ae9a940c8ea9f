"""The end of a promise whose clone has lost its log: by a command that names it, and never if the clone is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, Table
from lakelog.log.errors import FormatError, InvalidInput, Unsupported


@pytest.fixture
def clone(catalog: Catalog) -> Table:
    catalog.create_table("a", SCHEMA).append(rows(1, 2))
    return catalog.clone("a", "b")


def lose(clone: Table) -> None:
    store, prefix = clone.table_head.tracked.store, clone.table_head.tracked.prefix
    store.delete(list(store.list_after(f"{prefix}/")))


def test_what_is_kept_for_a_clone_without_a_log_ends_by_its_id(
    clone: Table, client: Callable[[], Catalog]
) -> None:
    lose(clone)
    (finding,) = client().fsck("a").found
    assert finding.kind == "clone-missing" and f"release-clone` with the table and the id {clone.id}" in str(
        finding
    )
    with pytest.raises(Unsupported):
        client().drop_table("a", purge=True)
    assert list(client().load_table("a").release_clone(clone.id).table_head.state.clones) == [clone.id]
    assert not client().load_table("a").release_clone(clone.id, dry_run=False).table_head.state.clones
    assert not client().fsck("a").found
    assert client().drop_table("a", purge=True)


def test_a_clone_that_is_there_is_not_released(
    catalog: Catalog, clone: Table, client: Callable[[], Catalog]
) -> None:
    with pytest.raises(Unsupported, match="the clone at .* is there, and needs files of `a`: materialize it"):
        client().load_table("a").release_clone(clone.id, dry_run=False)
    catalog.drop_table("b")
    with pytest.raises(Unsupported, match="is there"):
        client().load_table("a").release_clone(clone.id, dry_run=False)
    assert list(client().load_table("a").table_head.state.clones) == [clone.id]


@pytest.mark.parametrize("left", ["2.json", "latest.json"])
def test_a_clone_with_a_part_of_its_log_is_not_released(
    clone: Table, client: Callable[[], Catalog], left: str
) -> None:
    clone.append(rows(3))
    store, prefix = clone.table_head.tracked.store, clone.table_head.tracked.prefix
    store.put(f"{prefix}/_log/latest.json", b"damaged")
    store.delete([key for key in store.list_after(f"{prefix}/_log/") if not key.endswith(left)])
    with pytest.raises((Unsupported, FormatError), match="damaged and not gone|is missing although"):
        client().load_table("a").release_clone(clone.id, dry_run=False)


def test_an_unknown_clone_is_refused_by_name(catalog: Catalog, clone: Table) -> None:
    with pytest.raises(InvalidInput, match=f"keeps no files for a clone x: it does for {clone.id}"):
        catalog.load_table("a").release_clone("x")
    catalog.load_table("a").create_tag("first")
    with pytest.raises(InvalidInput):
        catalog.load_table("a", ref="first").release_clone(clone.id, dry_run=False)
    assert catalog.load_table("a").table_head.state.clones
