"""A folder or URL in place of a name: each command does the same, in whichever warehouse it lies."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from tests.integration.test_command import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.cli.main import cli, run
from lakelog.cli.options import LOG, REFERENCE, TABLE
from lakelog.testing.moto_server import moto_server

RUNS = {
    "adopt": ["?"],
    "backup": ["{new}", "?"],
    "branch": ["?", "b"],
    "cat": ["?", "1"],
    "clone": ["?", "made"],
    "cluster": ["?"],
    "compact": ["?"],
    "copy": ["{new}", "?"],
    "diff": ["?", "1"],
    "dropped": ["?"],
    "expire": ["?", "--retain-last", "1"],
    "export": ["?"],
    "files": ["?"],
    "forget": ["?", "id = 1"],
    "head": ["?"],
    "health": ["?"],
    "history": ["?"],
    "import": ["{new}", "?", "--format", "parquet"],
    "inspect": ["?", "refs"],
    "ls": ["?"],
    "maintain": ["?"],
    "materialize": ["?"],
    "publish": ["?", "--to", "s3://nowhere/tree"],
    "refs": ["?"],
    "release-clone": ["?", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
    "restore": ["?", "1"],
    "show": ["?"],
    "tag": ["?", "t"],
    "vacuum": ["?"],
    "view": ["?", "--json"],
}
REFUSED = {"adopt", "cluster", "import", "publish", "release-clone"}
"""Those that need more than this warehouse has: they refuse a place as they refuse a name."""


@pytest.fixture
def warehouses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Catalog, Catalog]:
    """Two warehouses of one form; LAKELOG_WAREHOUSE names the second."""
    monkeypatch.setenv("LAKELOG_WAREHOUSE", str(tmp_path / "other"))
    return made(str(tmp_path / "mine")), made(str(tmp_path / "other"))


def made(url: str, **options: str) -> Catalog:
    catalog = Catalog(url, options={"fsync": "off", **options} if url.startswith("/") else options)
    catalog.create_namespace("a")
    catalog.create_namespace("a.in/it")
    catalog.create_table("a.`in/it`.t", SCHEMA).append(rows(1, 2))
    catalog.create_table("u", SCHEMA)
    with catalog.transaction() as transaction:
        transaction.load_table("u").append(rows(1))
        transaction.load_table("a.`in/it`.t").append(rows(3))
    return catalog


def places(catalog: Catalog) -> dict[str, str]:
    """Return the places of what has these names."""
    table = catalog.load_table("a.`in/it`.t").location
    namespace = table.rpartition("/")[0]
    return {
        "a.`in/it`.t": table,
        "a.`in/it`": namespace,
        "a": namespace.rpartition("/")[0],
        "": catalog.warehouse,
    }


def commits(warehouse: Path) -> list[Path]:
    """Return what says that something was done: hints and snapshots are written later, by themselves."""
    return sorted(path for path in warehouse.rglob("*.json") if path.stem.isdigit())


COMMANDS = {name: cli.get_command(click.Context(cli), name) for name in cli.list_commands(click.Context(cli))}


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_every_command_that_takes_a_table_or_namespace_is_tried() -> None:
    taking_names = {
        name
        for name, command in COMMANDS.items()
        if any(
            param.type in (TABLE, REFERENCE, LOG) and param.param_type_name == "argument"
            for param in command.params
        )
    }
    assert taking_names == RUNS.keys()


@pytest.mark.parametrize("command", sorted(RUNS))
def test_a_place_is_taken_as_its_name_whatever_warehouse_is_set(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = COMMANDS[command].params
    takes = next(
        parameter
        for parameter in parameters
        if parameter.type in (TABLE, REFERENCE, LOG) and parameter.param_type_name == "argument"
    )
    names = (
        ["a.`in/it`.t"] if takes.type is TABLE or command == "cat" else ["a.`in/it`.t", "a.`in/it`", "a", ""]
    )
    if command in ("ls", "dropped", "publish"):
        names = names[1:]
    other_catalog = made(str(tmp_path / "other"))
    monkeypatch.setenv("LAKELOG_WAREHOUSE", other_catalog.warehouse)
    commits_before = commits(tmp_path / "other")
    for at, name in enumerate(names):
        catalog = made(str(tmp_path / f"mine{at}"))
        new = tmp_path / f"new{at}"
        if command == "import":
            new.mkdir()
        place = places(catalog)[name]

        def line(what: str, new: str) -> list[str]:
            return [
                command,
                *(what if each_text == "?" else each_text.format(new=new) for each_text in RUNS[command]),
            ]

        by_place = answered(capsys, *line(place, str(new)))
        assert (by_place[0] == 0) == (command not in REFUSED), by_place
        if command in REFUSED:
            by_name = answered(capsys, *line(name, str(new)), "--warehouse", catalog.warehouse)
            assert by_place == by_name
        elif command not in ("backup", "copy", "branch", "tag", "clone", "export", "view", "restore"):
            by_name = answered(capsys, *line(name, str(new)), "--warehouse", catalog.warehouse)
            code, text, errors = by_place
            # The command that acts after a report has the words of this one.
            assert (code, text.split("To do it:")[0], errors) == (
                by_name[0], by_name[1].split("To do it:")[0], by_name[2]
            ) or command in ("compact", "maintain")  # fmt: skip
    assert commits(tmp_path / "other") == commits_before


def test_a_table_is_asked_for_where_a_warehouse_is_given(
    warehouses: tuple[Catalog, Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, text = answered(capsys, "show", warehouses[0].warehouse)
    assert code == 2 and "is a warehouse, and not a table: give the name of a table in it" in text
    code, _, text = answered(capsys, "show", places(warehouses[0])["a"])
    assert code == 1 and "`a`" in text


@pytest.mark.parametrize("line", [["forget", "?", "id = 1"], ["clone", "?", "x"], ["ls", "?"]])
def test_what_needs_a_name_asks_for_the_warehouse_of_a_place_that_shows_none(
    line: list[str],
    warehouses: tuple[Catalog, Catalog],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = str(tmp_path / "apart")
    warehouses[0].create_table("apart", SCHEMA, location=place).append(rows(1))
    monkeypatch.delenv("LAKELOG_WAREHOUSE")
    code, _, text = answered(capsys, *(place if each_text == "?" else each_text for each_text in line))
    assert code == 2 and "No warehouse: give --warehouse" in text


@pytest.mark.parametrize("is_set", [True, False])
@pytest.mark.parametrize("name", ["a.`in/it`.t", "a.`in/it`", "a", ""])
def test_fsck_of_a_place_is_by_its_own_warehouse(
    name: str,
    is_set: bool,
    warehouses: tuple[Catalog, Catalog],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_set:
        monkeypatch.delenv("LAKELOG_WAREHOUSE")
    code, text, reported_text = answered(capsys, "fsck", places(warehouses[0])[name], "--deep", "--json")
    assert (code, reported_text) == (0, ""), text
    assert json.loads(text)["findings"] == [] and json.loads(text)["checked"]["commits"] > 1


def test_fsck_finds_the_damage_of_another_warehouse_than_the_one_that_is_set(
    warehouses: tuple[Catalog, Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of its root, without which nothing says that it is a warehouse."""
    mine = Path(warehouses[0].warehouse)
    (mine / "_log" / f"{1:020d}.json").write_bytes(b"{}")
    code, text, _ = answered(capsys, "fsck", str(mine), "--json")
    assert code == 4
    assert {finding["where"].rpartition("/")[2] for finding in json.loads(text)["findings"]} == {
        f"{1:020d}.json"
    }


def test_a_table_at_its_own_place_belongs_to_the_warehouse_that_is_set(
    warehouses: tuple[Catalog, Catalog], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "apart")
    warehouses[1].create_table("apart", SCHEMA, location=place).append(rows(1))
    with warehouses[1].transaction() as transaction:
        transaction.load_table("u").append(rows(4))
        transaction.load_table("apart").append(rows(4))
    assert answered(capsys, "fsck", place, "--deep")[0] == 0
    code, text, _ = answered(capsys, "show", place, "--json")
    assert code == 0 and json.loads(text)["name"] == "apart"


@pytest.mark.parametrize("command", ["backups", "verify-backup", "delete-backup"])
def test_a_place_of_backups_is_looked_at_whatever_warehouse_is_set(
    command: str,
    warehouses: tuple[Catalog, Catalog],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warehouses[0].backup(str(tmp_path / "place"))
    for url in (warehouses[1].warehouse, str(tmp_path / "nothing there")):
        monkeypatch.setenv("LAKELOG_WAREHOUSE", url)
        assert answered(capsys, command, str(tmp_path / "place"))[0] == 0


def test_urls_of_buckets_are_taken_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAKELOG_WAREHOUSE", made(str(tmp_path / "other")).warehouse)
    with moto_server("places") as server, server.credentials():
        catalog = made("s3://places/deep/mine", endpoint=server.endpoint)
        for url in (places(catalog)["a"].replace("s3://", "s3a://"), catalog.warehouse):
            code, text, reported_text = answered(capsys, "vacuum", url, "--endpoint", server.endpoint)
            assert code == 0, (url, text, reported_text)
        code, text, reported_text = answered(capsys, "fsck", url, "--endpoint", server.endpoint)
        assert code == 0, (text, reported_text)
        table = places(catalog)["a.`in/it`.t"]
        code, text, _ = answered(capsys, "show", table, "--endpoint", server.endpoint, "--json")
        assert code == 0 and json.loads(text)["name"] == "a.`in/it`.t"
