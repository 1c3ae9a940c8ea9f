"""Lines that maintenance has rewritten: that is no change, so they may become others, and no row comes back or goes."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

import pytest
from tests.integration.catalog.conftest import rows
from tests.integration.catalog.writes.test_refs import ids, row_ids, sound

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.errors import CommitConflict
from lakelog.log import LogOptions, wait_for_background
from lakelog.log.errors import InvalidInput

Client = Callable[[], Catalog]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table("t", rows().schema)
    for id in range(3):
        table = table.append(rows(id, id + 10))
    return table


def compact(table: Table) -> Table:
    table_before = table.refresh()
    table_after = table_before.compact(deleted_ratio=0)
    assert table_after.version > table_before.version
    return table_after


def paths(table: Table) -> set[str]:
    return set(table.plan()["path"].to_pylist())


def test_main_becomes_a_branch_and_keeps_its_compacted_file(table: Table, client: Client) -> None:
    branch = table.create_branch("b").at(ref="b").append(rows(20))
    compacted_table = compact(table)
    [moved_text] = paths(compacted_table)
    finished_table = compacted_table.fast_forward("main", "b")
    assert ids(finished_table) == [0, 1, 2, 10, 11, 12, 20]
    assert row_ids(finished_table) == row_ids(branch)
    assert moved_text in paths(finished_table) and len(paths(finished_table)) == 2
    # A stream of main sees the branch's row, and no other.
    assert finished_table.changes(finished_table.version, finished_table.version).to_arrow()[
        "id"
    ].to_pylist() == [20]
    assert (
        finished_table.fast_forward("main", "b").version
        == finished_table.version
        == finished_table.fast_forward("b", "main").version
    )
    sound(client)


def test_only_groups_stay_that_the_branch_has_not_changed(table: Table, client: Client) -> None:
    for id in range(3, 6):
        table = table.append(rows(id, region="US"))
    table.create_branch("b").at(ref="b").delete("id = 1").update({"amount": "7"}, "id = 0")
    for number, region in enumerate(("EU", "US")):
        compacted_table = table.refresh().compact(filter=col("region") == region)
        assert len(paths(compacted_table)) == (4, 2)[number]
    in_us = paths(compacted_table.at(version=compacted_table.version)) - paths(
        compacted_table.at(version=compacted_table.version - 1)
    )
    finished_table = compacted_table.fast_forward("main", "b")
    assert ids(finished_table) == [0, 2, 3, 4, 5, 10, 11, 12] and in_us < paths(finished_table)
    assert finished_table.scan(filter=col("id") == 0).to_arrow()["amount"].to_pylist() == [7]
    again = compact(compact(finished_table).at(ref="b")).fast_forward("main", "b")
    assert ids(again) == ids(finished_table)
    sound(client)


def test_moves_of_moves_are_followed(table: Table, client: Client) -> None:
    table.create_branch("b").at(ref="b").append(rows(20))
    compact(table)
    table.refresh().alter([{"change": "set-clustering", "columns": [["id"], ["amount"]]}])
    table.refresh().cluster()
    clustered_table = table.refresh()
    kept_paths = paths(clustered_table)
    finished_table = clustered_table.fast_forward("main", "b")
    assert kept_paths < paths(finished_table) and ids(finished_table) == [0, 1, 2, 10, 11, 12, 20]
    sound(client)


def test_files_with_deleted_rows_are_the_same_where_the_same_rows_are(table: Table, client: Client) -> None:
    table = table.append(rows(4, 5)).delete("id = 4").append(rows(6, 7)).delete("id = 6").create_branch("b")
    table.at(ref="b").delete("id = 7").append(rows(8))
    compacted_table = compact(table)
    finished_table = compacted_table.fast_forward("main", "b")
    assert ids(finished_table) == [0, 1, 2, 5, 8, 10, 11, 12]
    # Its one file has a row that the branch has deleted.
    assert not paths(compacted_table) & paths(finished_table)
    table = finished_table.create_branch("c")
    table.at(ref="c").append(rows(9))
    compacted_table = compact(table)
    finished_table = compacted_table.fast_forward("main", "c")
    assert ids(finished_table) == [0, 1, 2, 5, 8, 9, 10, 11, 12] and paths(compacted_table) < paths(
        finished_table
    )
    sound(client)


@pytest.mark.parametrize("change", ["append", "delete", "truncate", "replaced branch"])
def test_what_was_more_than_a_move_is_still_refused(table: Table, change: str) -> None:
    table = table.create_branch("b")
    compact(table)
    if change == "append":
        table.refresh().append(rows(30))
    elif change == "delete":
        table.refresh().delete("id = 1")
    elif change == "truncate":
        table.refresh().truncate()
    else:
        table.refresh().at(ref="b").append(rows(30))
        table.refresh().create_branch("c").drop_branch("b").create_branch("b").append(rows(31, 32))
    if change != "truncate":
        compact(table)
    table.refresh().at(ref="b").append(rows(20))
    ids_before = ids(table.refresh())
    with pytest.raises(InvalidInput, match="it was changed since b had all of it, so that rows"):
        table.refresh().fast_forward("main", "b")
    assert ids(table.refresh()) == ids_before


@pytest.mark.parametrize("is_inside", [False, True])
def test_nothing_stays_that_a_transaction_moved_after_it_had_changed_the_line(
    table: Table, catalog: Catalog, client: Client, is_inside: bool
) -> None:
    table = table.append(rows(3, 4))
    without_3 = table.delete("id = 3")
    table = without_3.set_current_version(table.version).create_branch("b")
    without_10 = table.at(ref="b").delete("id = 10")
    table.fast_forward("main", "b")
    with catalog.transaction() as tx:
        # Other rows are deleted, as many: in no version are these the files of before.
        tx.load_table("t").set_current_version(without_3.version).fast_forward("b", "main")
        assert len(paths(tx.load_table("t").compact(deleted_ratio=0))) == 1
        if is_inside:
            tx.load_table("t", ref="b").set_current_version(without_10.version)
            tx.load_table("t").fast_forward("main", "b")
    if not is_inside:
        client().load_table("t", ref="b").set_current_version(without_10.version)
        client().load_table("t").fast_forward("main", "b")
    assert ids(client().load_table("t")) == ids(without_10) == [0, 1, 2, 3, 4, 11, 12]


def test_where_the_history_has_expired_it_is_refused_and_says_so(warehouse: str) -> None:
    catalog = Catalog(warehouse, log_options=LogOptions(snapshot_every_versions=1))
    table = catalog.create_table("t", rows().schema)
    for id in range(3):
        table = table.append(rows(id))
    table.create_branch("b").at(ref="b").append(rows(20))
    compact(table).append(rows(3)).delete("id = 3")
    wait_for_background()
    catalog.expire("t", retain_last=1, dry_run=False)
    with pytest.raises(InvalidInput, match=r"have expired, so that .* write the rows that only b has"):
        catalog.load_table("t").fast_forward("main", "b")


def test_a_branch_takes_what_main_has_after_its_own_compaction(table: Table, client: Client) -> None:
    table.create_branch("b").append(rows(20))
    moved_table = compact(table.refresh().at(ref="b"))
    finished_table = moved_table.fast_forward("b", "main").at(ref="b")
    assert ids(finished_table) == [0, 1, 2, 10, 11, 12, 20] and paths(moved_table) < paths(finished_table)
    sound(client)


@pytest.mark.parametrize("step", ["set_current_version", "rollback_to_version", "fast_forward"])
def test_steps_of_a_transaction_go_on_beside_a_compaction(
    catalog: Catalog, table: Table, client: Client, step: str
) -> None:
    table.create_branch("b").at(ref="b").append(rows(20))
    with catalog.transaction() as tx:
        mine = tx.load_table("t").append(rows(30)) if step != "fast_forward" else tx.load_table("t")
        if step == "fast_forward":
            tx.load_table("t", ref="b").append(rows(21))
            mine = tx.load_table("t").fast_forward("main", "b")
        else:
            mine = getattr(mine, step)(table.version - 1)
        mine.update({"amount": "7"}, "id = 0").append(rows(40))
        compact(client().load_table("t"))
    current_table = client().load_table("t")
    came = [20, 21, 40] if step == "fast_forward" else [40]
    assert ids(current_table) == sorted([0, 1, 10, 11, *([2, 12] if step == "fast_forward" else []), *came])
    assert current_table.scan(filter=col("id") == 0).to_arrow()["amount"].to_pylist() == [7]
    sound(client)


@pytest.mark.parametrize("step", ["set_current_version", "fast_forward"])
@pytest.mark.parametrize("other", ["append", "delete"])
def test_they_do_not_beside_more_than_that(
    catalog: Catalog, table: Table, client: Client, step: str, other: str
) -> None:
    table.create_branch("b").at(ref="b").append(rows(20))
    tx = catalog.begin()
    mine = tx.load_table("t")
    _ = (
        mine.fast_forward("main", "b")
        if step == "fast_forward"
        else mine.set_current_version(table.version - 1)
    )
    theirs = client().load_table("t")
    compact(theirs.append(rows(30)) if other == "append" else theirs.delete("id = 1"))
    ids_before = ids(client().load_table("t"))
    with pytest.raises((CommitConflict, InvalidInput)):
        tx.commit()
    assert ids(client().load_table("t")) == ids_before


def test_lines_are_those_of_a_plain_model_whatever_is_compacted_meanwhile() -> None:
    done = {"moved": 0, "kept": 0, "refused": 0, "joined": 0}
    for seed in range(4):
        live(seed, done)
    assert all(done.values()), done


def live(seed: int, done: dict[str, int]) -> None:
    chance = random.Random(seed)
    catalog = Catalog(f"memory://{uuid.uuid4().hex}")
    other_catalog = Catalog(catalog.warehouse)
    catalog.create_table("t", rows().schema).append(rows(1, 2)).append(rows(3, 4)).append(rows(5))
    model = {"main": ({id: float(id) for id in range(1, 6)}, frozenset({0}))}
    for number in range(1, 28):
        name = chance.choice(sorted(model))
        (has, changes), table = model[name], chance.choice((catalog, other_catalog)).load_table("t", ref=name)
        label = chance.choice(
            ("append", "delete", "update", "compact", "branch", "join", "publish", "publish")
        )
        if label == "append":
            table.append(rows(100 + number))
            model[name] = ({**has, 100 + number: 100.0 + number}, changes | {number})
        elif label in ("delete", "update") and has:
            id = chance.choice(sorted(has))
            if label == "delete":
                table.delete(f"id = {id}")
                remaining_values = {number: value for number, value in has.items() if number != id}
            else:
                table.update({"amount": str(-number)}, f"id = {id}")
                remaining_values = {**has, id: float(-number)}
            model[name] = (remaining_values, changes | {number})
        elif label == "compact":
            done["moved"] += table.compact(deleted_ratio=0).version > table.version
        elif label == "branch" and len(model) < 4:
            table.create_branch(f"b{number}")
            model[f"b{number}"] = (has, changes)
        elif label in ("join", "publish"):
            to = chance.choice(sorted(model))
            if label == "publish":
                to = f"p{number}"
                table.create_branch(to).at(ref=to).append(rows(100 + number))
                model[to] = ({**has, 100 + number: 100.0 + number}, changes | {number})
                done["moved"] += table.refresh().compact(deleted_ratio=0).version > table.version + 2
            paths_before = paths(table.refresh())
            try:
                table_after = table.at(ref="main").fast_forward(name, to).at(ref=name)
            except InvalidInput:
                assert not changes <= model[to][1], f"{name} of seed {seed} could have become {to}"
                done["refused"] += 1
            else:
                assert changes <= model[to][1] or model[to][1] <= changes
                if changes < model[to][1]:
                    model[name] = model[to]
                    done["joined"] += 1
                    done["kept"] += bool((paths_before - paths(table_after.at(ref=to))) & paths(table_after))
            if label == "publish":
                catalog.load_table("t").drop_branch(to)
                del model[to]
        for text, (expected, _) in model.items():
            found_rows = catalog.load_table("t", ref=text).to_arrow()
            pairs = sorted(zip(found_rows["id"].to_pylist(), found_rows["amount"].to_pylist(), strict=True))
            assert pairs == sorted(expected.items()), f"{text} of seed {seed}, step {number}"
