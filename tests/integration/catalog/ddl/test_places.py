"""Places that users chose: used again, removed behind the catalog's back, or not theirs to choose."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable, NoSuchWarehouse, TableExists
from lakelog.catalog.core.logs import places
from lakelog.log import FormatError, InvalidInput, MemoryStore, open_store, wait_for_background

Client = Callable[[], Catalog]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "mine")


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).to_arrow()["id"].to_pylist())


def test_a_table_whose_folder_was_removed_and_made_again_is_the_new_one(
    catalog: Catalog, client: Client, place: str
) -> None:
    held = catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    other = client()
    other.load_table("t")
    catalog.drop_table("t")
    shutil.rmtree(place)
    catalog.create_table("t", SCHEMA, location=place).append(rows(5))
    assert ids(other, "t") == [5]
    assert ids(client(), "t") == [5]
    with pytest.raises(NoSuchTable):
        held.append(rows(99))
    with pytest.raises(NoSuchTable):
        held.alter([{"change": "set-property", "key": "k", "value": "v"}])
    assert ids(client(), "t") == [5]


def test_a_table_that_was_made_again_while_it_is_looked_up_is_not_unlinked(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table's object may be read before the namespace's, though both are asked for in one round."""
    place = f"{catalog.warehouse}/mine"
    catalog.create_table("t", SCHEMA, location=place)
    meanwhile: list[Callable[[], object]] = []

    class TableFirst(MemoryStore):
        def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
            early = super().get_many(keys)
            while meanwhile:
                meanwhile.pop(0)()
            late = super().get_many(keys)
            return [
                one if "mine" in key else other for key, one, other in zip(keys, early, late, strict=True)
            ]

    slow = TableFirst(catalog.warehouse)
    slow._objects = cast(MemoryStore, open_store(catalog.warehouse))._objects
    with monkeypatch.context() as patch:
        patch.setattr(places, "open_store", lambda url, options: slow)
        other = client()
    other.load_table("t")
    meanwhile.append(lambda: catalog.drop_table("t"))
    meanwhile.append(lambda: catalog.create_table("t", SCHEMA, location=place).append(rows(7)))
    assert ids(other, "t") == [7]
    assert ids(catalog, "t") == [7]


def test_dropping_a_name_whose_table_was_dropped_by_its_place_spares_the_next_one(
    catalog: Catalog, client: Client, place: str
) -> None:
    catalog.create_namespace("n")
    for name in ("a", "n.a"):
        catalog.create_table(name, SCHEMA, location=place)
        catalog.drop_table_at(place)
        catalog.create_table("b", SCHEMA, location=place).append(rows(1))
        if name == "a":
            assert client().drop_table("a")
        else:
            client().drop_namespace("n", cascade=True)
        assert ids(client(), "b") == [1]
        client().drop_table("b")


def test_a_table_whose_folder_is_gone_can_be_dropped_and_does_not_block_its_namespace(
    catalog: Catalog, client: Client, place: str
) -> None:
    catalog.create_namespace("n")
    for name in ("n.t", "n.u"):
        catalog.create_table(name, SCHEMA, location=f"{place}/{name}")
    shutil.rmtree(place)
    with pytest.raises(FormatError, match="without the catalog"):
        client().load_table("n.t")
    assert client().drop_table("n.t")
    assert client().drop_namespace("n", cascade=True)
    client().create_namespace("n")
    assert client().list_tables("n") == []


def test_the_loser_of_a_race_for_a_name_gives_its_place_back(
    catalog: Catalog, client: Client, place: str
) -> None:
    stage = catalog.stage("create", "t", SCHEMA, location=place)
    client().create_table("t", SCHEMA)
    with pytest.raises(TableExists):
        catalog.commit_stage(stage)
    late = catalog.stage("create", "u", SCHEMA, location=place)
    assert catalog.commit_stage(late).append(rows(1)).row_count == 1


def test_a_log_that_a_crash_left_at_a_place_is_named_with_the_way_out(
    catalog: Catalog, client: Client, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.catalog.core.ddl import staging

    with monkeypatch.context() as patch:
        patch.setattr(staging, "_link", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            catalog.create_table("t", SCHEMA, location=place)
    with pytest.raises(TableExists, match="DROP TABLE"):
        client().create_table("t", SCHEMA, location=place)
    with pytest.raises(TableExists):
        client().create_table("t", SCHEMA, location=place, if_not_exists=True)
    assert client().drop_table_at(place)
    assert client().create_table("t", SCHEMA, location=place).version == 3


def test_a_namespaces_folder_is_not_a_table(catalog: Catalog, client: Client) -> None:
    for n in range(25):
        catalog.create_namespace(f"n{n}")
    with pytest.raises(InvalidInput, match="not a table's"):
        client().table_at(catalog.warehouse)
    with pytest.raises(InvalidInput, match="not a table's"):
        client().drop_table_at(catalog.warehouse)
    with pytest.raises(InvalidInput):
        catalog.create_table("t", SCHEMA, location=catalog.warehouse)


@pytest.mark.parametrize("inside", ["_log", "_log/x", "n-aaaaaaaaaaaaaaaaaaaaaaaaaa/t", "x" * 600])
def test_a_place_that_is_lakelogs_own_or_too_long_is_refused(catalog: Catalog, inside: str) -> None:
    with pytest.raises(InvalidInput, match="location"):
        catalog.create_table("t", SCHEMA, location=f"{catalog.warehouse}/{inside}")


def test_a_place_that_holds_something_else_is_refused(catalog: Catalog, place: str) -> None:
    catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    catalog.drop_table("t")
    Path(place, "part-0.parquet").write_bytes(b"precious")
    with pytest.raises(InvalidInput, match=r"part-0\.parquet"):
        catalog.create_table("t", SCHEMA, location=place)
    Path(place, "part-0.parquet").unlink()
    assert catalog.create_table("t", SCHEMA, location=place).row_count == 0


def test_a_place_inside_of_an_empty_warehouse_sets_it_up(tmp_path: Path) -> None:
    warehouse = tmp_path / "w"
    catalog = Catalog(warehouse)
    catalog.commit_stage(catalog.stage("create", None, SCHEMA, location=f"{warehouse}/mine"))
    assert Catalog(warehouse).list_tables() == []
    assert Catalog(warehouse).table_at(f"{warehouse}/mine").row_count == 0


@pytest.mark.parametrize("name", ["n-data.csv", "_log/hello.txt", "t-x/part.parquet", "z.csv"])
def test_no_foreign_folder_is_taken_for_a_warehouse(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(InvalidInput, match="not a lakelog warehouse"):
        Catalog(str(tmp_path)).create_namespace("a")


def test_nothing_is_said_of_a_warehouse_that_is_not_there(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "wharehouse"))
    asked: list[Callable[[], object]] = [
        catalog.list_namespaces,
        catalog.list_tables,
        catalog.audit,
        catalog.expire,
        catalog.vacuum,
        catalog.fsck,
    ]
    for ask in asked:
        with pytest.raises(NoSuchWarehouse, match=r"wharehouse: check the path"):
            ask()
    (tmp_path / "wharehouse").mkdir()
    for ask in asked:
        ask()
    assert list(tmp_path.rglob("*")) == [tmp_path / "wharehouse"]


def test_an_examination_of_the_store_keeps_no_client_from_setting_it_up(tmp_path: Path) -> None:
    (tmp_path / "_doctor" / "x").mkdir(parents=True)
    (tmp_path / "_doctor" / "x" / "0000").write_bytes(b"x")
    assert Catalog(str(tmp_path)).list_namespaces() == []
    Catalog(str(tmp_path)).create_namespace("a")
    assert Catalog(str(tmp_path)).list_namespaces() == [("a",)]


OWN = (
    "_txn",
    "_doctor/x",
    "_cut/x",
    "_log",
    "_log/_lost/x",
    "a/_lost",
    "n-" + "a" * 26,
    "a/t-" + "b" * 26 + "/data",
)


@pytest.mark.parametrize("own", OWN)
def test_no_spelling_of_a_folder_of_lakelogs_own_is_taken(tmp_path: Path, own: str) -> None:
    warehouse = tmp_path / "warehouse"
    (warehouse / own).mkdir(parents=True)
    (tmp_path / "link").symlink_to(warehouse / own)
    (tmp_path / "whole").symlink_to(warehouse)
    catalog = Catalog(str(warehouse))
    catalog.create_namespace("a")
    table = catalog.create_table("t", SCHEMA)
    wait_for_background()
    before = sorted(warehouse.rglob("*"))
    last = own.rpartition("/")[2]
    for place in (
        f"{warehouse}/{own}",
        f"{warehouse}/{own}/deeper",
        f"{warehouse}//x/..///{own}/",
        f"file:{warehouse}/{own}",
        f"file://{warehouse}/%5f{last[1:]}/x" if last[0] == "_" else f"file://{warehouse}/{own}%2Fx",
        f"{warehouse}/{own.replace('_', '%255F', 1).replace('-', '%2D')}/x",
        f"{warehouse}/{own.upper()}",
        f"{tmp_path}/link",
        f"{tmp_path}/link/x",
        f"{tmp_path}/whole/{own}/x",
        f"s3://bucket/{own}/x",
        f"s3a://bucket//x/%2e%2e/{own}",
    ):
        uses: list[Callable[[str], object]] = [
            lambda place: catalog.create_table("u", SCHEMA, location=place),
            lambda place: catalog.alter_namespace("a", set={"location": place}),
        ]
        if "_" in own:
            uses += [lambda place: table.add_files(place), lambda place: catalog.register_table("u", place)]
        for use in uses:
            with pytest.raises(InvalidInput, match="lakelog's own folders"):
                use(place)
    assert sorted(warehouse.rglob("*")) == before


def test_a_table_is_not_put_into_the_data_of_another_one(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_table("t", SCHEMA, location=str(tmp_path / "mine")).append(rows(1))
    (tmp_path / "link").symlink_to(tmp_path / "mine" / "data")
    for place in ("mine/data", "mine/data/x", "mine/x/../data//y", "link/x", "mine/d%61ta/x"):
        with pytest.raises(InvalidInput, match="data/ belongs to the table at"):
            catalog.create_table("u", SCHEMA, location=f"{tmp_path}/{place}")
    assert ids(catalog, "t") == [1]
    catalog.create_table("u", SCHEMA, location=str(tmp_path / "data" / "u"))


def test_the_warehouse_over_a_link_is_the_warehouse(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "warehouse")
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("a")
    with pytest.raises(InvalidInput, match="the warehouse itself"):
        catalog.create_table("t", SCHEMA, location=str(tmp_path / "link"))


@pytest.mark.parametrize("location", ["C:\\tables\\t", "{place}\\..\\_log", "{place}\n", "s3://bucket/a\\b"])
def test_a_place_that_no_log_can_have_is_refused_before_anything_is_written(
    catalog: Catalog, place: str, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    for create in (
        lambda url: catalog.create_table("t", SCHEMA, location=url),
        lambda url: catalog.create_namespace("n", {"location": url}),
    ):
        with pytest.raises(InvalidInput, match="cannot be a table's|is relative"):
            create(location.format(place=place))
    assert set(tmp_path.rglob("*")) == before


def test_places_are_given_as_paths(tmp_path: Path) -> None:
    catalog, mine, other = Catalog(tmp_path / "w", options={"fsync": "off"}), tmp_path / "t", tmp_path / "o"
    table = catalog.create_table("t", SCHEMA, location=mine)
    write, bases = table.begin_write(), {str(mine): table.version}
    assert catalog.token_at(mine).bases == catalog.token_of_write(mine, write).bases == bases
    assert catalog.table_at(mine).append(rows(1)).location == str(mine)
    assert catalog.expire(location=mine, retain_last=1) and catalog.vacuum(location=mine)
    assert len(list(catalog.audit(location=mine))) == 2
    assert table.export_iceberg(other).url.startswith(str(other))
    other.joinpath("parquet").mkdir()
    pq.write_table(rows(2), other / "parquet" / "two.parquet")
    assert table.refresh().add_files(other / "parquet" / "two.parquet").row_count == 2
    assert catalog.import_table(other / "parquet", "imported", format="parquet").table
    for name in ("staged", "dropped"):
        catalog.commit_stage(catalog.stage("create", None, SCHEMA, location=tmp_path / name))
    assert catalog.register_table("staged", tmp_path / "staged").location == str(tmp_path / "staged")
    assert catalog.drop_table_at(tmp_path / "dropped")
