"""Places that users chose: used again, removed behind the catalog's back, or not theirs to choose."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable, NoSuchWarehouse, TableExists, engine
from lakelog.catalog.core.logs import places
from lakelog.log import FormatError, InvalidInput, MemoryStore, NotFound, open_store, wait_for_background

Client = Callable[[], Catalog]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "mine")


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).to_arrow()["id"].to_pylist())


def test_a_table_whose_folder_was_removed_and_made_again_is_the_new_one(
    catalog: Catalog, client: Client, place: str
) -> None:
    held_table = catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    other_catalog = client()
    other_catalog.load_table("t")
    catalog.drop_table("t")
    shutil.rmtree(place)
    catalog.create_table("t", SCHEMA, location=place).append(rows(5))
    assert ids(other_catalog, "t") == [5]
    assert ids(client(), "t") == [5]
    with pytest.raises(NoSuchTable):
        held_table.append(rows(99))
    with pytest.raises(NoSuchTable):
        held_table.alter([{"change": "set-property", "key": "k", "value": "v"}])
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
                data if "mine" in key else other_data
                for key, data, other_data in zip(keys, early, late, strict=True)
            ]

    slow = TableFirst(catalog.warehouse)
    slow._objects = cast(MemoryStore, open_store(catalog.warehouse))._objects
    with monkeypatch.context() as patch:
        patch.setattr(places, "open_store", lambda url, options: slow)
        other_catalog = client()
    other_catalog.load_table("t")
    meanwhile.append(lambda: catalog.drop_table("t"))
    meanwhile.append(lambda: catalog.create_table("t", SCHEMA, location=place).append(rows(7)))
    assert ids(other_catalog, "t") == [7]
    assert ids(catalog, "t") == [7]


def test_dropping_a_name_whose_table_was_dropped_by_its_place_spares_the_next_one(
    catalog: Catalog, client: Client, place: str
) -> None:
    catalog.create_namespace("n")
    for name in ("a", "n.a"):
        catalog.create_table(name, SCHEMA, location=place)
        engine.drop_table_at(catalog, place)
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
    stage = engine.stage(catalog, "create", "t", SCHEMA, location=place)
    client().create_table("t", SCHEMA)
    with pytest.raises(TableExists):
        engine.commit_stage(catalog, stage)
    late = engine.stage(catalog, "create", "u", SCHEMA, location=place)
    assert engine.commit_stage(catalog, late).append(rows(1)).row_count == 1


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
    assert engine.drop_table_at(client(), place)
    assert client().create_table("t", SCHEMA, location=place).version == 3


def test_a_namespaces_folder_is_not_a_table(catalog: Catalog, client: Client) -> None:
    for n in range(25):
        catalog.create_namespace(f"n{n}")
    with pytest.raises(InvalidInput, match="not a table's"):
        client().table_at(catalog.warehouse)
    with pytest.raises(InvalidInput, match="not a table's"):
        engine.drop_table_at(client(), catalog.warehouse)
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
    engine.commit_stage(catalog, engine.stage(catalog, "create", None, SCHEMA, location=f"{warehouse}/mine"))
    assert Catalog(warehouse).list_tables() == []
    assert Catalog(warehouse).table_at(f"{warehouse}/mine").row_count == 0


@pytest.mark.parametrize("name", ["n-data.csv", "_log/hello.txt", "t-x/part.parquet", "z.csv"])
def test_no_foreign_folder_is_taken_for_a_warehouse(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(InvalidInput, match="not a lakelog warehouse"):
        Catalog(str(tmp_path)).create_namespace("a")


ABOUT_OTHER_PLACES = {
    "backups", "delete_backups", "finish_copy", "import_table", "restore_table", "restore_warehouse", "table_at",
    "verify_backup",
}  # fmt: skip
"""Methods that begin with another place than the warehouse."""
FOR_NEW_WAREHOUSES = {
    "begin", "create_namespace", "function_exists", "namespace_exists", "table_exists", "token", "transaction",
    "view_exists",
}  # fmt: skip
"""Methods by which a program sets a warehouse up, step by step if need be."""
METHODS = {name for name, _ in inspect.getmembers(Catalog, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize("method", sorted(METHODS - ABOUT_OTHER_PLACES - FOR_NEW_WAREHOUSES))
@pytest.mark.parametrize("is_there", ["nothing", "file", "folder"])
def test_each_call_names_a_mistyped_warehouse(tmp_path: Path, method: str, is_there: str) -> None:
    Catalog(tmp_path / "warehouse").create_namespace("shop")
    mistyped_path = tmp_path / "wharehouse"
    if is_there == "file":
        mistyped_path.write_text("precious")
    elif is_there == "folder":
        mistyped_path.mkdir()
    call = getattr(Catalog(mistyped_path), method)
    needed = {
        name: {"schema": SCHEMA, "format": "parquet"}.get(name, "shop.orders")
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.default is parameter.empty
    }
    try:
        answer = call(**needed)
        if method in ("audit", "history"):
            answer = list(answer)
    except NotFound as error:
        hint = "it is a file" if is_there == "file" else f"did you mean {tmp_path / 'warehouse'}?"
        assert f"there is no warehouse at {mistyped_path}: " in str(error) and hint in str(error)
    else:
        assert is_there == "folder" and not needed, f"{method} has answered {answer}"
    assert [
        path.name for path in tmp_path.iterdir() if path.name not in ("warehouse", mistyped_path.name)
    ] == []
    assert not mistyped_path.is_dir() or not list(mistyped_path.iterdir())


@pytest.mark.parametrize(
    "method", sorted(METHODS & FOR_NEW_WAREHOUSES - {"begin", "transaction", "save_cut"})
)
def test_a_program_may_ask_for_names_before_it_sets_a_warehouse_up(tmp_path: Path, method: str) -> None:
    call = getattr(Catalog(tmp_path / "new"), method)
    assert not call("shop") if method.endswith("_exists") else call("shop") is not NotImplemented


def test_a_catalog_as_of_the_past_names_a_mistyped_warehouse(tmp_path: Path) -> None:
    Catalog(tmp_path / "warehouse").create_namespace("shop")
    past = "2026-01-01"
    mistyped_catalog = Catalog(tmp_path / "wharehouse", as_of=past)
    for call in (mistyped_catalog.list_tables, lambda: mistyped_catalog.load_table("shop.orders")):
        with pytest.raises(NotFound, match=f"did you mean {tmp_path / 'warehouse'}"):
            call()
    with pytest.raises(NotFound, match="list its namespace"):
        Catalog(tmp_path / "warehouse", as_of=past).load_table("shop.orders")


def test_a_folder_of_a_warehouse_is_named_as_that(tmp_path: Path) -> None:
    Catalog(tmp_path).create_namespace("shop")
    with pytest.raises(NoSuchWarehouse, match=f"did you mean {tmp_path}"):
        Catalog(tmp_path / "shop").list_tables()


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
    paths_before = sorted(warehouse.rglob("*"))
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
    assert sorted(warehouse.rglob("*")) == paths_before


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
    paths_before = set(tmp_path.rglob("*"))
    for create in (
        lambda url: catalog.create_table("t", SCHEMA, location=url),
        lambda url: catalog.create_namespace("n", {"location": url}),
    ):
        with pytest.raises(InvalidInput, match="cannot be a table's|is relative"):
            create(location.format(place=place))
    assert set(tmp_path.rglob("*")) == paths_before


def test_places_are_given_as_paths(tmp_path: Path) -> None:
    catalog, mine, other_path = (
        Catalog(tmp_path / "w", options={"fsync": "off"}),
        tmp_path / "t",
        tmp_path / "o",
    )
    table = catalog.create_table("t", SCHEMA, location=mine)
    write, bases = engine.begin_write(table), {str(mine): table.version}
    assert engine.token_at(catalog, mine).bases == engine.token_of_write(catalog, mine, write).bases == bases
    assert catalog.table_at(mine).append(rows(1)).location == str(mine)
    assert catalog.expire(location=mine, retain_last=1) and catalog.vacuum(location=mine)
    assert len(list(catalog.audit(location=mine))) == 2
    assert table.export_iceberg(other_path).url.startswith(str(other_path))
    other_path.joinpath("parquet").mkdir()
    pq.write_table(rows(2), other_path / "parquet" / "two.parquet")
    assert table.refresh().add_files(other_path / "parquet" / "two.parquet").row_count == 2
    assert catalog.import_table(other_path / "parquet", "imported", format="parquet").table
    for name in ("staged", "dropped"):
        engine.commit_stage(catalog, engine.stage(catalog, "create", None, SCHEMA, location=tmp_path / name))
    assert catalog.register_table("staged", tmp_path / "staged").location == str(tmp_path / "staged")
    assert engine.drop_table_at(catalog, tmp_path / "dropped")
