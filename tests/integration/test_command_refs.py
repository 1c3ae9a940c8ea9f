"""The commands about tags and branches, over warehouses that the Python client made."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.integration.test_command import output, output_json, output_list

from lakelog.catalog import Catalog
from lakelog.cli.main import run


@pytest.fixture
def place(tmp_path) -> tuple[str, str]:
    catalog = Catalog(str(tmp_path / "warehouse"), options={"fsync": "off"})
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}))
    table.append(pa.table({"id": [1, 2]})).append(pa.table({"id": [3]}))
    return ("--warehouse", str(tmp_path / "warehouse"))


def test_tags_and_branches_are_made_listed_looked_into_and_dropped(place, capsys):
    assert output(capsys, "tag", "t", "old", "--version", "2", *place) == "Made the tag old of version 2.\n"
    new_output = output_json(capsys, "branch", "t", "trial", *place)
    assert (new_output["kind"], new_output["name"], new_output["version"], new_output["rows"]) == (
        "branch",
        "trial",
        4,
        3,
    )
    Catalog(place[1]).load_table("t", ref="trial").append(pa.table({"id": [4]}))
    listing = output_list(capsys, "refs", "t", *place)
    assert [(ref["kind"], ref["name"], ref["version"], ref["rows"], ref["files"]) for ref in listing] == [
        ("branch", "main", 6, 3, 2),
        ("tag", "old", 2, 2, 1),
        ("branch", "trial", 4, 4, 3),
    ]
    text = output(capsys, "refs", "t", *place)
    assert [line.split()[:4] for line in text.splitlines() if "old" in line] == [["tag", "old", "2", "2"]]
    assert output_json(capsys, "show", "t", "--ref", "old", *place)["rows"] == 2
    text = output(capsys, "history", "t", *place)
    assert "append: +1 row in 1 file, on the branch trial" in text and "create tag: tag old" in text
    assert len(output_list(capsys, "files", "t", "--ref", "trial", *place)) == 3
    assert output(capsys, "tag", "t", "old", "--replace", *place) == "Made the tag old of version 6.\n"
    assert output(capsys, "branch", "t", "trial", "--drop", *place) == "Dropped the branch trial.\n"
    assert [ref["name"] for ref in output_list(capsys, "refs", "t", *place)] == ["main", "old"]


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("tag", "t", "x", "--drop"), 1, "no tag x"),
        (("tag", "t", "old"), 1, "a tag old already"),
        (("branch", "t", "x", "--version", "9"), 1, "no version 9"),
        (("branch", "t", "main"), 1, "main is not a valid name"),
        (("branch", "t", "x", "--drop", "--replace"), 2, "--drop cannot be combined"),
        (("show", "t", "--ref", "none"), 1, "no tag or branch none"),
        (("refs", "none"), 1, "none"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(place, capsys, arguments, code, said):
    Catalog(place[1]).load_table("t").create_tag("old")
    assert run((*arguments, *place)) == code
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert Catalog(place[1]).load_table("t").version == 4


def test_help_says_what_each_does(capsys):
    for kind in ("tag", "branch"):
        text = output(capsys, kind, "--help")
        assert f"Make a {kind} of a table, or drop it." in text and "--version N" in text
