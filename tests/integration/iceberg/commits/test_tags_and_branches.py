"""Tags and branches that clients set have the rows of the snapshots that they name, for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.iceberg.commits.handwriting import HandWriter, ref_set
from tests.integration.iceberg.commits.test_forged_commits import is_clean
from tests.integration.iceberg.readers import by_duckdb, by_pyiceberg

MAIN = "main"


@pytest.fixture
def client(tmp_path: Path) -> HandWriter:
    """Return a client of a table whose main has the rows 1 and 3, and whose branch b has 1 and 2."""
    client = HandWriter(str(tmp_path / "w"))
    assert client.create()[0] == 200
    assert client.commit([client.ids(1)])[0] == 200
    assert client.send(ref_set("b", client.present()))[0] == 200
    assert client.commit([client.ids(2)], line="b")[0] == 200
    assert client.commit([client.ids(3)])[0] == 200
    return client


def check(client: HandWriter, **rows_by_line: list[int]) -> None:
    """Check what lakelog and two other readers find on lines."""
    url, metadata = client.loaded()
    assert metadata["refs"].keys() == rows_by_line.keys()
    for line, rows in rows_by_line.items():
        id = metadata["refs"][line]["snapshot-id"]
        assert client.rows(line) == rows, line
        for read in (by_pyiceberg, by_duckdb):
            assert sorted(read(url, id)["id"].to_pylist()) == rows, (line, read)
    assert is_clean(client.catalog)


def test_a_snapshot_of_a_branch_that_became_main_keeps_its_rows(client: HandWriter) -> None:
    of_branch = client.present("b")
    assert client.send(ref_set(MAIN, of_branch))[0] == 200
    assert client.commit([client.ids(4)])[0] == 200
    assert client.commit([client.ids(5)], line="b")[0] == 200
    # Main was at another snapshot when this snapshot was made on the branch.
    assert client.send(ref_set("old", of_branch, "tag"))[0] == 200
    check(client, main=[1, 2, 4], b=[1, 2, 5], old=[1, 2])
    assert client.send(ref_set(MAIN, of_branch))[0] == 200
    check(client, main=[1, 2], b=[1, 2, 5], old=[1, 2])


def test_a_former_snapshot_of_a_branch_has_its_rows(client: HandWriter) -> None:
    former = client.present("b")
    assert client.commit([client.ids(4)], line="b")[0] == 200
    assert client.commit([client.ids(5)], line="b")[0] == 200
    assert client.send(ref_set("old", former, "tag"), ref_set("again", former))[0] == 200
    check(client, main=[1, 3], b=[1, 2, 4, 5], old=[1, 2], again=[1, 2])


def test_a_former_snapshot_of_a_branch_by_lakelog_has_its_rows(client: HandWriter) -> None:
    client.catalog.load_table("ns.t").at(ref="b").delete("id = 1")
    of_lakelog = client.present("b")
    assert client.commit([client.ids(4)], line="b")[0] == 200
    assert client.send(ref_set("old", of_lakelog, "tag"))[0] == 200
    check(client, main=[1, 3], b=[2, 4], old=[2])


@pytest.mark.parametrize("line", [MAIN, "b"])
def test_a_tag_beside_a_new_snapshot_has_the_rows_of_before(client: HandWriter, line: str) -> None:
    rows = client.rows(line)
    status, _ = client.commit(
        [client.ids(9)], line=line, others=[ref_set("old", client.present(line), "tag")]
    )
    assert status == 200
    lines = {MAIN: [1, 3], "b": [1, 2]} | {"old": rows, line: [*rows, 9]}
    check(client, **lines)


def test_two_branches_change_places(client: HandWriter) -> None:
    of_main, of_branch = client.present(), client.present("b")
    assert client.send(ref_set("b", of_main), ref_set(MAIN, of_branch))[0] == 200
    check(client, main=[1, 2], b=[1, 3])


def test_a_tag_becomes_a_branch_only_if_it_is_removed_first(client: HandWriter) -> None:
    id = client.present()
    assert client.send(ref_set("x", id, "tag"))[0] == 200
    assert client.send(ref_set("x", id))[0] == 400
    removal = {"action": "remove-snapshot-ref", "ref-name": "x"}
    assert client.send(removal, ref_set("x", id))[0] == 200
    assert client.metadata["refs"]["x"]["type"] == "branch"
    assert client.commit([client.ids(7)], line="x")[0] == 200
    check(client, main=[1, 3], b=[1, 2], x=[1, 3, 7])


def test_a_tag_that_comes_and_goes_in_a_commit_was_never_there(client: HandWriter) -> None:
    removal = {"action": "remove-snapshot-ref", "ref-name": "x"}
    assert client.send(ref_set("x", client.present(), "tag"), removal)[0] == 200
    check(client, main=[1, 3], b=[1, 2])


@pytest.mark.parametrize("id", [5, 9, 1 << 40 | 7, 3 << 40 | 9])
def test_ids_that_later_versions_will_have_are_refused(client: HandWriter, id: int) -> None:
    snapshot = client.snapshot([*client.records(), client.manifest([client.ids(4)])], id=id)
    status, error = client.send({"action": "add-snapshot", "snapshot": snapshot}, ref_set(MAIN, id))
    assert status == 400 and "lakelog's own versions" in error["message"]
    check(client, main=[1, 3], b=[1, 2])
