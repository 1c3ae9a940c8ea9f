"""A published catalog: what is in the tree after each change, however publishers and changes meet."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from lakelog.catalog import Catalog, NoSuchNamespace, Table, engine
from lakelog.catalog.core.logs import WarehouseStores
from lakelog.catalog.core.schema import ViewColumn, ViewDefinition
from lakelog.catalog.engine import exports
from lakelog.log import InvalidInput, PermissionDenied, StorageError
from lakelog.log.errors import Unsupported
from lakelog.log.stores.s3_store import S3Store
from lakelog.rest import BucketTree, publish, publishing
from lakelog.rest.publishing import MARK, THREADS

ID = pa.schema({"id": pa.int64()})


class Tree:
    """Objects in memory. After each change, all that is listed has to be there."""

    url = "memory://tree"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.changes: list[tuple[str, str]] = []
        self.before_put: Callable[[str], None] = lambda path: None

    def takes(self, path: str) -> bool:
        return len(path) <= 200

    def digest_of(self, data: bytes) -> str:
        return hashlib.md5(data).hexdigest()

    def digests(self, top: str) -> dict[str, str]:
        return {path: self.digest_of(data) for path, data in self.objects.items() if path.startswith(top)}

    def get(self, path: str) -> bytes | None:
        return self.objects.get(path)

    def create(self, path: str, data: bytes) -> bool:
        return self.objects.setdefault(path, data) is data

    def put(self, path: str, data: bytes) -> None:
        self.before_put(path)
        self.objects[path] = data
        self.changes.append(("put", path))
        self.check()

    def delete(self, path: str) -> None:
        del self.objects[path]
        self.changes.append(("delete", path))
        self.check()

    def document(self, path: str) -> dict:
        return json.loads(self.objects[path])

    def check(self) -> None:
        if "v1/namespaces" not in self.objects:
            return
        for name in self.document("v1/namespaces")["namespaces"]:
            path = "v1/namespaces/" + "\x1f".join(name)
            assert self.document(path)["namespace"] == name
            for identifier in self.document(f"{path}/tables")["identifiers"]:
                assert self.document(f"{path}/tables/{identifier['name']}")["metadata"]["format-version"] == 3
            for identifier in self.document(f"{path}/views")["identifiers"]:
                assert self.document(f"{path}/views/{identifier['name']}")["metadata"]["format-version"] == 1

    def tables(self) -> list[str]:
        return sorted(path for path in self.objects if re.search("/tables/", path))

    def take_changes(self) -> list[tuple[str, str]]:
        changes, self.changes = self.changes, []
        return changes


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "w", options={"fsync": "off"})
    for name in ("a", ("a", "b"), "c"):
        catalog.create_namespace(name)
    for name in ("a.t", "a.b.u", "c.v"):
        catalog.create_table(name, ID).append(pa.table({"id": [1]}))
    return catalog


def test_only_what_has_changed_is_written_and_a_reader_finds_what_is_listed(catalog: Catalog) -> None:
    tree = Tree()
    publish_result = publish(catalog, tree)
    assert (
        publish_result.namespaces,
        publish_result.tables,
        publish_result.removed,
        publish_result.failed,
    ) == (3, 3, 0, {})
    assert tree.document("v1/namespaces")["namespaces"] == [["a"], ["a", "b"], ["c"]]
    assert "GET /v1/{prefix}/namespaces" in tree.document("v1/config")["endpoints"]
    assert publish_result.written == len(tree.take_changes()) == 14
    assert publish(catalog, tree).written == 0 and tree.take_changes() == []

    catalog.load_table("a.t").append(pa.table({"id": [2]}))
    publish(catalog, tree)
    assert tree.take_changes() == [("put", "v1/namespaces/a/tables/t")]

    catalog.rename_table("a.t", "c.t")
    publish(catalog, tree)
    assert tree.take_changes() == [
        ("put", "v1/namespaces/c/tables/t"),
        ("put", "v1/namespaces/a/tables"),
        ("put", "v1/namespaces/c/tables"),
        ("delete", "v1/namespaces/a/tables/t"),
    ]
    catalog.drop_namespace("a", cascade=True)
    assert publish(catalog, tree).removed == 7
    assert tree.tables() == ["v1/namespaces/c/tables/t", "v1/namespaces/c/tables/v"]


def test_publishers_write_the_same_bytes(catalog: Catalog) -> None:
    first, second = Tree(), Tree()
    publish(catalog, first)
    publish(Catalog(catalog.warehouse), second)
    assert first.objects == second.objects


def test_a_publisher_that_knows_less_does_not_undo_what_another_has_published(catalog: Catalog) -> None:
    """The other one goes on, and is done, just before the first one writes what it has read."""
    tree = Tree()
    met = []

    def other(path: str) -> None:
        if path in ("v1/namespaces/a/tables/t", "v1/namespaces/c/tables") and path not in met:
            met.append(path)
            catalog.load_table("a.t").append(pa.table({"id": [len(met)]}))
            catalog.create_table(f"c.new{len(met)}", ID)
            publish(Catalog(catalog.warehouse), tree)

    tree.before_put = other
    publish(catalog, tree)
    assert len(met) == 2
    expected = Tree()
    publish(catalog, expected)
    assert tree.objects == expected.objects


def test_what_cannot_be_published_is_said_and_left_out(catalog: Catalog) -> None:
    catalog.create_table("c.pauses", pa.schema({"pause": pa.duration("us")}))
    catalog.create_table("top", ID)
    catalog.create_namespace(("c", "x/y"))
    catalog.create_table(("c", "x/y", "t"), ID)
    catalog.create_table(("c", "n" * 190), ID)
    tree = Tree()
    publish_result = publish(catalog, tree)
    assert sorted(publish_result.left_out) == [("c", "n" * 190), ("c", "pauses"), ("c", "x/y"), ("top",)]
    assert "Iceberg cannot have this table" in publish_result.left_out["c", "pauses"]
    assert publish_result.tables == 3 and len(tree.tables()) == 3 and not publish_result.failed
    # What becomes so later is removed.
    catalog.drop_table("a.t")
    catalog.create_table("a.t", pa.schema({"pause": pa.duration("us")}))
    publish_result = publish(catalog, tree)
    assert ("a", "t") in publish_result.left_out and len(tree.tables()) == 2


def test_views_come_and_go_as_tables_do(catalog: Catalog) -> None:
    plain = ViewDefinition(
        text="SELECT id FROM t", columns=(ViewColumn(name="id", type="long"),), namespace=("a",)
    )
    engine.create_view(catalog, "a.plain", plain)
    engine.create_view(catalog, "a.past", replace(plain, text="SELECT id FROM t VERSION AS OF 1"))
    engine.create_view(catalog, "top", plain)
    tree = Tree()
    publish_result = publish(catalog, tree)
    assert (publish_result.views, sorted(publish_result.left_out)) == (1, [("a", "past"), ("top",)])
    shown_metadata = tree.document("v1/namespaces/a/views/plain")["metadata"]
    assert shown_metadata["versions"][0]["representations"][0]["sql"] == "SELECT id FROM t"
    tree.take_changes()
    catalog.rename_view("a.plain", "c.plain")
    publish(catalog, tree)
    assert tree.take_changes() == [
        ("put", "v1/namespaces/a/views"),
        ("put", "v1/namespaces/c/views/plain"),
        ("put", "v1/namespaces/c/views"),
        ("delete", "v1/namespaces/a/views/plain"),
    ]


def test_a_namespace_alone_has_a_tree_of_its_own(catalog: Catalog) -> None:
    tree = Tree()
    assert publish(catalog, tree, ("a",)).tables == 2
    assert tree.document("v1/namespaces")["namespaces"] == [["a"], ["a", "b"]]
    objects_before = dict(tree.objects)
    for namespace in ((), ("c",)):
        with pytest.raises(InvalidInput, match="another warehouse or namespace"):
            publish(catalog, tree, namespace)
    other_tree = Tree()
    other_tree.objects["v1/else"] = b"?"
    with pytest.raises(InvalidInput, match="did not write"):
        publish(catalog, other_tree)
    assert (
        tree.objects == objects_before and list(other_tree.objects) == ["v1/else"] and MARK in objects_before
    )


@pytest.mark.parametrize("has_export", [True, False])
def test_a_table_that_cannot_be_exported_now_stays_as_it_was_published(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, has_export: bool
) -> None:
    """Of a client that may not write beside the table; with an older export, and if it may not read that one."""
    from lakelog.catalog.formats import iceberg as module

    tree = Tree()
    publish(catalog, tree)
    catalog.load_table("a.t").append(pa.table({"id": [2]}))
    catalog.create_table("a.fresh", ID)
    objects_before = dict(tree.objects)

    def refused(*arguments: object, **options: object) -> None:
        raise PermissionDenied("may not write", location="x")

    monkeypatch.setattr(module, "export_with_metadata", refused)
    if not has_export:
        monkeypatch.setattr(exports, "newest_metadata", refused)
    publish_result = publish(catalog, tree)
    assert tree.objects == objects_before
    text = "version 3 is the newest, and its newest export is of version 2" if has_export else "may not write"
    assert text in publish_result.failed["a", "t"] and ("a", "fresh") in publish_result.failed
    monkeypatch.undo()
    assert publish(catalog, tree).failed == {} and "v1/namespaces/a/tables/fresh" in tree.objects


def test_nothing_is_removed_where_the_store_fails(catalog: Catalog) -> None:
    tree = Tree()
    publish(catalog, tree)
    objects_before = dict(tree.objects)
    catalog.drop_table("a.t")
    catalog.load_table("c.v").append(pa.table({"id": [2]}))

    def fail(path: str) -> None:
        raise StorageError("no answer", location=path)

    tree.before_put = fail
    with pytest.raises(StorageError):
        publish(catalog, tree)
    assert tree.objects == objects_before


def test_a_namespace_that_was_dropped_leaves_its_tree_empty(catalog: Catalog) -> None:
    tree = Tree()
    publish(catalog, tree, ("a",))
    catalog.drop_namespace("a", cascade=True)
    publish_result = publish(catalog, tree, ("a",))
    assert (publish_result.namespaces, publish_result.tables, publish_result.removed) == (0, 0, 8)
    assert sorted(tree.objects) == [MARK, "v1/config", "v1/namespaces"]
    catalog.undrop_namespace("a")
    assert publish(catalog, tree, ("a",)).tables == 2
    # A name that was never published there is a mistake.
    other_tree = Tree()
    with pytest.raises(NoSuchNamespace):
        publish(catalog, other_tree, ("d",))
    assert other_tree.objects == {}


def test_a_namespace_that_cannot_be_read_stays_as_it_was_published(catalog: Catalog) -> None:
    tree = Tree()
    publish(catalog, tree)
    objects_before = dict(tree.objects)
    catalog.load_table("c.v").append(pa.table({"id": [2]}))
    (log,) = Path(catalog.warehouse).glob("n-*/n-*/_log")
    for each_path in log.parent.parent.glob("_log/*"):
        if each_path.is_file():
            each_path.write_bytes(b"?")
    publish_result = publish(Catalog(catalog.warehouse), tree)
    assert list(publish_result.failed) == [("a",)] and (
        publish_result.namespaces,
        publish_result.tables,
        publish_result.removed,
    ) == (3, 3, 0)
    assert {path for path in objects_before if tree.objects[path] != objects_before[path]} == {
        "v1/namespaces/c/tables/v"
    }
    assert tree.objects.keys() == objects_before.keys()


def test_a_store_that_fails_is_not_asked_for_each_table(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        catalog.create_table(f"{'a' if number % 2 else 'c'}.t{number}", ID)
    tried = []

    def fail(table: Table) -> None:
        tried.append(table.name)
        raise StorageError("no answer", location=table.name)

    monkeypatch.setattr(publishing, "iceberg_metadata", fail)
    with pytest.raises(StorageError):
        publish(catalog, Tree())
    assert 0 < len(tried) <= THREADS


def test_a_namespace_whose_lists_have_too_long_names_is_left_out(catalog: Catalog) -> None:
    name = "n" * (200 - len("v1/namespaces/") - len("/table"))
    catalog.create_namespace((name,))
    tree = Tree()
    assert list(publish(catalog, tree).left_out) == [(name,)]
    assert max(map(len, tree.objects)) < 200


BUCKET = WarehouseStores("s3://lake/w", {})


@pytest.mark.parametrize(
    ("options", "uri"),
    [
        ({}, "https://lake.s3.amazonaws.com/w/_rest"),
        ({"region": "eu-north-1"}, "https://lake.s3.eu-north-1.amazonaws.com/w/_rest"),
        ({"endpoint": "https://me:hidden@s3.test:9000"}, "https://lake.s3.test:9000/w/_rest"),
        (
            {"endpoint": "https://s3.test/storage/", "path_style": "True"},
            "https://s3.test/storage/lake/w/_rest",
        ),
    ],
)
def test_clients_are_given_an_address_without_secrets(options: dict[str, str], uri: str) -> None:
    assert BucketTree(WarehouseStores("s3://lake/w", options), "s3://lake/w/_rest").uri == uri


@pytest.mark.parametrize(
    "place", ["s3://lake/w", f"s3://lake/w/n-{'a' * 26}/x", "s3://lake/w/_log", "s3://lake/w/%5Flog/x"]
)
def test_places_of_the_warehouse_itself_are_no_place_for_a_tree(place: str) -> None:
    with pytest.raises(InvalidInput, match="choose a separate"):
        BucketTree(BUCKET, place)


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (409, "ObjectParentIsFile", Unsupported),
        (400, "XMinioParentIsObject", Unsupported),
        (400, "ExpiredToken", PermissionDenied),
        (409, "OperationAborted", StorageError),
        (400, "KeyTooLongError", StorageError),
    ],
)
def test_only_a_server_over_folders_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, raised: type[Exception]
) -> None:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}

    def refuse(*arguments: object, **named: object) -> None:
        raise ClientError(answer, "PutObject")

    monkeypatch.setattr(S3Store, "call", refuse)
    with pytest.raises(raised) as error:
        BucketTree(BUCKET, "s3://lake/w/_rest").put("v1/namespaces", b"{}")
    assert type(error.value) is raised


def test_a_check_of_the_warehouse_does_not_mind_what_is_published_in_it(catalog: Catalog) -> None:
    published_path = Path(catalog.warehouse, "_rest/v1/config")
    published_path.parent.mkdir(parents=True)
    published_path.write_bytes(b"{}")
    assert catalog.fsck().found == []
    published_path.rename(published_path.parents[2] / "else")
    assert [finding.kind for finding in catalog.fsck().found] == ["foreign-object"]
