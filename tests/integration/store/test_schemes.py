"""A store of a scheme that is registered serves a whole catalog: no module but its own knows the scheme."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.integration.store.shared_store import SharedStore, shared_scheme

from lakelog.catalog import Catalog, Table
from lakelog.log import InvalidInput, canonical_url, wait_for_background
from lakelog.log.stores import is_of_one_process, shared_root

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def stores() -> Iterator[dict[str, SharedStore]]:
    with shared_scheme() as stores:
        yield stores
        wait_for_background()


def test_a_catalog_is_on_a_store_of_another_scheme_and_its_tables_elsewhere_share_one_store(
    stores: dict[str, SharedStore],
) -> None:
    catalog = Catalog("share://lake//w/")
    assert catalog.warehouse == "shared://lake/w"
    catalog.create_table("t", ROWS.schema).append(ROWS)
    for name in ("one", "other"):
        table = catalog.create_table(name, ROWS.schema, location=f"shared://else/{name}").append(ROWS)
        assert table.location == f"shared://else/{name}"
    table = catalog.load_table("one").delete("id = 2")
    assert table.to_arrow()["id"].to_pylist() == [1, 3]
    assert stores.keys() == {"shared://lake/w", "shared://else"}
    assert not catalog.fsck().found
    sent_table: Table = pickle.loads(pickle.dumps(table))
    assert sent_table.to_arrow()["id"].to_pylist() == [1, 3]


def test_a_clone_is_materialized_by_the_copies_of_the_store(stores: dict[str, SharedStore]) -> None:
    catalog = Catalog("shared://lake/w")
    catalog.create_table("t", ROWS.schema).append(ROWS)
    catalog.clone("t", "c")
    assert catalog.load_table("c").materialize().files == 1
    (store,) = stores.values()
    assert len(store.copied) == 1 and catalog.load_table("c").to_arrow() == ROWS


def test_what_is_not_registered_is_refused_and_names_what_is(stores: dict[str, SharedStore]) -> None:
    with pytest.raises(InvalidInput, match="unknown scheme 'hdfs': use a folder, file:, s3://.*or share://"):
        canonical_url("hdfs://host/x")
    with pytest.raises(InvalidInput, match="names no bucket: write share://bucket/prefix"):
        canonical_url("share:///x")


@pytest.mark.parametrize(
    ("url", "root", "prefix"),
    [
        ("/a/b", "/a/b", ""),
        ("memory://m/a", "memory://m/a", ""),
        ("s3://b/p/q", "s3://b", "p/q"),
        ("s3://b", "s3://b", ""),
        ("shared://b/p", "shared://b", "p"),
    ],
)
def test_one_store_of_a_bucket_serves_all_of_its_places(
    url: str, root: str, prefix: str, stores: dict[str, SharedStore]
) -> None:
    assert shared_root(url) == (root, prefix)
    assert is_of_one_process(url) == url.startswith("memory:")
