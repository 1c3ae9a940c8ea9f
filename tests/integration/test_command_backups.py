"""The commands about backups, over warehouses that the Python client made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.integration.test_command import output, output_json, output_list

from lakelog.catalog import Catalog
from lakelog.cli.main import run


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, str]:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    catalog.create_namespace("n")
    catalog.create_table("n.t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1, 2]}))
    return ("--warehouse", str(tmp_path / "warehouse"))


def test_a_backup_is_made_listed_verified_and_restored(place, tmp_path, capsys):
    at = str(tmp_path / "backups")
    reported_output = output(capsys, "backup", at, *place)
    assert "of the warehouse: 1 tables in" in reported_output
    again = output_json(capsys, "backup", at, "n.t", *place)
    assert (again["kind"], again["name"], again["tables"], again["copied"]) == ("table", "n.t", 1, 0)
    whole, _ = output_list(capsys, "backups", at)
    assert "the table n.t" in output(capsys, "backups", at)
    assert "all are as they were" in output(capsys, "verify-backup", at)
    target = str(tmp_path / "restored")
    reported_output = output(capsys, "restore-backup", at, "--backup", whole["id"], "--warehouse", target)
    assert reported_output.startswith(f"Restored the backup {whole['id']} to {target}: 1 tables in")
    assert Catalog(target).load_table("n.t").row_count == 2
    Catalog(place[1]).load_table("n.t").append(pa.table({"id": [3]}))
    new_output = output_json(capsys, "restore-backup", at, "n.t", "--to", "n.u", *place)
    assert (new_output["table"], new_output["version"], new_output["files"]) == ("n.u", 1, 1)
    assert "Made `n`.`t` of the backup" in output(capsys, "restore-backup", at, "n.t", "--replace", *place)
    assert Catalog(place[1]).load_table("n.t").row_count == 2
    output(capsys, "fsck", *place)


def test_a_damaged_object_is_named(place, tmp_path, capsys):
    at = tmp_path / "backups"
    output(capsys, "backup", str(at), *place)
    next((at / "objects").rglob("*.parquet")).unlink()
    assert run(("verify-backup", str(at))) == 1
    assert "missing: " in (said := capsys.readouterr().out) and "1 are damaged" in said


def test_old_backups_are_deleted_if_that_is_applied(place, tmp_path, capsys):
    at = str(tmp_path / "backups")
    for _ in range(3):
        output(capsys, "backup", at, *place)
    first, *_ = output_list(capsys, "backups", at)
    reported_output = output(capsys, "delete-backup", at, first["id"])
    assert (
        f"Would delete the backup {first['id']}." in reported_output
        and "To do it: lakelog delete-backup --apply" in reported_output
    )
    assert len(output_json(capsys, "delete-backup", at, "--keep-last", "1")["backups"]) == 2
    reported_output = output(capsys, "delete-backup", at, "--keep-last", "1", "--apply")
    assert reported_output.count("Deleted the backup") == 2 and "what stays: 1 backup." in reported_output
    assert "all are as they were" in output(capsys, "verify-backup", at)
    assert len(output_list(capsys, "backups", at)) == 1


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("backup", "{warehouse}/x"), 1, "is inside of"),
        (("backup", "{at}", "n.none"), 1, "none"),
        (("backups", "{at}"), 1, "there are no backups at"),
        (("delete-backup", "{at}", "x", "--apply"), 1, "there are no backups at"),
        (("delete-backup", "{at}", "--keep-last", "0"), 2, "keep-last"),
        (("restore-backup", "{at}"), 1, "there are no backups at"),
        (("restore-backup", "{at}", "--replace"), 2, "are for a TABLE"),
    ],
)
def test_what_cannot_be_done_is_one_line(place, tmp_path, capsys, arguments, code, said):
    names = {"warehouse": place[1], "at": str(tmp_path / "at")}
    assert run((*(argument.format(**names) for argument in arguments), *place)) == code
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_copy_is_brought_up_to_date_and_finished(place, tmp_path, capsys):
    target = str(tmp_path / "copy")
    reported_output = output(capsys, "copy", target, "--unfinished", *place)
    assert "Brought the warehouse to" in reported_output and "It is no warehouse yet" in reported_output
    assert run(("ls", "--warehouse", target)) == 1
    capsys.readouterr()
    first = output_json(capsys, "copy", target, *place)
    assert first["finished"] and first["copied"] < 5
    assert "n.t" in output(capsys, "show", "n.t", "--warehouse", target)
    part = str(tmp_path / "part")
    output(capsys, "copy", part, "n", "--unfinished", *place)
    assert f"Copied the namespace n to {part}" in output(capsys, "finish-copy", "--warehouse", part)
    assert "Made `n`.`v` at" in output(capsys, "copy", part, "n.t", "--as", "n.v", *place)
    assert run(("copy", part, "--as", "n.v", *place)) == 2
    assert run(("copy", part, "n.t", "--as", "n.w", "--outside", "leave", *place)) == 2
    assert "leave --outside out" in capsys.readouterr().err


def test_a_clone_that_is_there_is_left_as_it_is(place, capsys):
    assert "Made `n`.`c`" in output(capsys, "clone", "n.t", "n.c", *place)
    assert run(("clone", "n.t", "n.c", *place)) == 1
    assert "there is a table `n`.`c` already" in capsys.readouterr().err
    reported_output = output(capsys, "clone", "n.t", "n.c", "--if-not-exists", *place)
    assert "nothing was cloned" in reported_output and "Made" not in reported_output
    assert "Made `n`.`d`" in output(capsys, "clone", "n.t", "n.d", "--if-not-exists", *place)
