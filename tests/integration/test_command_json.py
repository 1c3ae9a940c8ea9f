"""`--json` of every command: one object, or of a list an object for each entry, each on a line of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.printing import objects

from lakelog.catalog import Catalog
from lakelog.cli.commands import MODULES, command_named
from lakelog.cli.main import cli, run

LISTS = {
    "audit": (),
    "backups": ("{backups}",),
    "dropped": (),
    "explain": (),
    "files": ("shop.orders",),
    "head": ("shop.orders",),
    "health": (),
    "history": ("shop.orders",),
    "inspect": ("shop.orders", "snapshots"),
    "ls": ("shop",),
    "refs": ("shop.orders",),
}
"""The commands that list, each with arguments for which there is something to list."""

ONE = {
    "backup": ("{new}",),
    "branch": ("shop.orders", "trial"),
    "cat": ("shop.orders", "2"),
    "clone": ("shop.orders", "shop.copy"),
    "cluster": ("shop.sorted",),
    "compact": ("shop.orders",),
    "copy": ("{new}",),
    "delete-backup": ("{backups}", "--keep-last", "1"),
    "diff": ("shop.orders", "1", "3"),
    "doctor": (),
    "expire": (),
    "export": ("shop.orders",),
    "finish-copy": ("--warehouse", "{unfinished}"),
    "forget": ("shop.orders", "id = 1"),
    "fsck": (),
    "import": ("{parquet}", "shop.taken", "--format", "parquet"),
    "maintain": (),
    "materialize": ("shop.cloned",),
    "restore": ("shop.orders", "2"),
    "restore-backup": ("{backups}", "--warehouse", "{new}"),
    "show": ("shop.orders",),
    "spark-conf": (),
    "sql": ("SELECT count(*) AS n FROM shop.orders",),
    "tag": ("shop.orders", "old"),
    "undrop": ("shop.gone",),
    "vacuum": (),
    "verify-backup": ("{backups}",),
    "view": (),
}
NEEDS_MORE = {"adopt", "publish", "release-clone", "serve", "token", "ui"}
"""Those that need a source that is gone, a bucket, a lost clone, a key, or a client: their own tests run them."""

OWN_FORM = {"cat", "doctor", "inspect", "head", "spark-conf", "view"}
"""Their members are those of a commit, a report, a table, Spark's settings, or of the page that `view` draws."""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Return the places for arguments; `warehouse` has what all commands need."""
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"}, writer={"user": "ada"})
    catalog.create_namespace("shop")
    schema = pa.schema({"id": pa.int64()})
    rows = pa.table({"id": [1, 2]})
    catalog.create_table("shop.orders", schema).append(rows).append(rows)
    catalog.create_table("shop.sorted", schema, cluster_by=["id"]).append(rows)
    catalog.create_table("shop.gone", schema)
    catalog.drop_table("shop.gone")
    catalog.clone("shop.orders", "shop.cloned")
    places = {name: str(tmp_path / name) for name in ("w", "backups", "unfinished", "new", "parquet")}
    catalog.backup(places["backups"])
    catalog.copy(places["unfinished"], finish=False)
    (tmp_path / "parquet").mkdir()
    pq.write_table(rows, tmp_path / "parquet" / "a.parquet")
    return places


def test_every_command_with_json_is_tried() -> None:
    with_json = {name for name in MODULES if any(part.name == "as_json" for part in command_of(name).params)}
    assert with_json == {*LISTS, *ONE, *NEEDS_MORE}
    assert MODULES.keys() - with_json == {"completion", "help"}


@pytest.mark.parametrize("name", sorted({**LISTS, **ONE}))
def test_an_answer_has_an_object_on_each_line(
    name: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [part.format(**places) for part in {**LISTS, **ONE}[name]]
    place = [] if "--warehouse" in arguments else ["--warehouse", places["w"]]
    code = run([name, *arguments, *place, "--json"])
    printed = capsys.readouterr()
    assert code in (0, 3), printed.err  # 3: the doctor has a warning
    answers = objects(printed.out)
    assert all(isinstance(answer, dict) for answer in answers)
    assert answers and (name in LISTS or len(answers) == 1)
    if name not in OWN_FORM:
        assert len({tuple(answer) for answer in answers}) == 1, "members differ from entry to entry"
        for answer in answers:
            check_members(answer)


def check_members(answer: dict[str, Any]) -> None:
    """A name is a text as commands take it, and a moment a text of ISO 8601 in UTC."""
    for key, value in walk(answer):
        assert not re.search("time|_us$", key), key
        if key == "name":
            assert isinstance(value, str | None) and "`" not in (value or "")
        if key in ("committed_at", "dropped_at", "kept_until", "as_of"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", value)


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key, part
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)


@pytest.mark.parametrize("name", sorted({*LISTS, *ONE} - {"explain", "spark-conf", "doctor"}))
def test_an_error_is_an_object_with_the_same_members(
    name: str, places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        part.format(**places | {"backups": str(tmp_path / "none")}) for part in {**LISTS, **ONE}[name]
    ]
    arguments = [
        part for part in arguments if part not in ("--warehouse", places["unfinished"], places["new"])
    ]
    if name in ("backup", "copy"):
        arguments = [places["new"]]
    code = run([name, *arguments, "--warehouse", str(tmp_path / "nowhere"), "--json"])
    check_error(capsys, code, 1)


@pytest.mark.parametrize("name", sorted({*LISTS, *ONE, *NEEDS_MORE}))
def test_a_wrong_command_line_is_an_object_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("--json", name, "--nonsense"), (name, "--nonsense", "--json")):
        assert check_error(capsys, run(arguments), 2)["error"] == "usage"


def check_error(capsys: pytest.CaptureFixture[str], code: int, expected: int) -> dict[str, Any]:
    printed = capsys.readouterr()
    assert printed.out == ""
    [error] = objects(printed.err)
    assert list(error) == ["error", "message", "exit_code"]
    assert error["exit_code"] == code == expected and error["message"]
    return error


def test_the_kind_of_an_error_is_that_which_explain_knows(
    places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "shop.nothing", "--warehouse", places["w"], "--json"]) == 1
    kind = json.loads(capsys.readouterr().err)["error"]
    assert kind == "no-such-table"
    assert run(["explain", kind, "--json"]) == 0
    [answer] = objects(capsys.readouterr().out)
    assert answer["kind"] == kind


def command_of(name: str) -> click.Command:
    command = command_named(name)
    assert command is not None and cli.get_command(click.Context(cli), name) is command
    return command
