"""Tags and branches: made, written to, read, compared, joined, kept by maintenance, and dropped."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.integration.catalog import rows_changed
from tests.integration.catalog.clock import at_once
from tests.integration.catalog.conftest import rows
from tests.integration.catalog.rows_changed import deleted, two_files, updated

from lakelog.catalog import Catalog, StreamBatch, Table, col, engine
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.state.history import OPERATIONS
from lakelog.catalog.core.state.refs import ContentLine
from lakelog.catalog.errors import CommitConflict, NoSuchRef, RefExists
from lakelog.catalog.keeping.maintenance.fsck.judges import TableJudge
from lakelog.log import LogOptions
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

Client = Callable[[], Catalog]


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def row_ids(table: Table) -> dict[int, int]:
    rows = table.scan(row_ids=True).to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["_row_id"].to_pylist(), strict=True))


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", rows().schema).append(rows(1, 2)).append(rows(3))


def sound(client: Client) -> None:
    report = client().fsck(deep=True, all_versions=True)
    assert not [finding for finding in report.found if finding.severity != "note"], report.found


def test_a_tag_keeps_what_was_there(table: Table, client: Client) -> None:
    table.create_tag("first", version=2)
    table.create_tag("now").append(rows(4))
    loaded_table = client().load_table("t", ref="first")
    assert ids(loaded_table) == [1, 2]
    assert ids(client().load_table("t", ref="now")) == [1, 2, 3]
    assert ids(client().load_table("t")) == [1, 2, 3, 4]
    assert {name: (ref.kind, ref.version) for name, ref in loaded_table.refs.items()} == {
        "first": ("tag", 2),
        "now": ("tag", 3),
    }
    with pytest.raises(InvalidInput, match="on the tag first, which stays as it is"):
        loaded_table.append(rows(5))


def test_a_tag_has_the_columns_of_its_time(table: Table, client: Client) -> None:
    table.create_tag("old").alter([{"change": "rename-column", "name": ["amount"], "new_name": "price"}])
    assert client().load_table("t", ref="old").schema.fields[2].name == "amount"
    assert client().load_table("t").schema.fields[2].name == "price"
    assert client().load_table("t", ref="old").to_arrow().column_names == ["id", "region", "amount"]


def test_a_branch_is_written_to_and_main_does_not_see_it(table: Table, client: Client) -> None:
    table.create_branch("b")
    branch = client().load_table("t", ref="b").append(rows(4))
    branch = branch.delete(col("id") == 1)
    branch = deleted(branch, [2])
    assert ids(branch) == ids(client().load_table("t", ref="b")) == [3, 4]
    assert ids(client().load_table("t")) == [1, 2, 3]
    branch = branch.overwrite(rows(7, 8), col("id") == 4)
    assert ids(branch) == [3, 7, 8]
    assert ids(branch.truncate()) == []
    sound(client)


def test_operations_of_two_lines_do_not_meet(table: Table, client: Client) -> None:
    table.create_branch("b")
    main, branch = client().load_table("t"), client().load_table("t", ref="b")
    client().load_table("t", ref="b").append(rows(4))
    assert ids(main.overwrite(rows(9))) == [9]
    with pytest.raises(CommitConflict):
        branch.overwrite(rows(9))
    branch = branch.refresh()
    client().load_table("t").append(rows(5))
    assert ids(branch.overwrite(rows(10))) == [10]


def test_rows_of_a_branch_conflict_with_those_of_the_same_branch(table: Table, client: Client) -> None:
    table.create_branch("b")
    first_table, other_table = client().load_table("t", ref="b"), client().load_table("t", ref="b")
    deleted(first_table, [1])
    assert ids(deleted(other_table, [2])) == [3]
    assert ids(deleted(client().load_table("t"), [1])) == [2, 3]


def test_no_row_id_is_given_twice_over_branches(table: Table, client: Client) -> None:
    table.create_branch("b")
    branch = client().load_table("t", ref="b").append(rows(10))
    main = client().load_table("t").append(rows(11))
    branch = branch.refresh().append(rows(12))
    given_row_ids = row_ids(main) | row_ids(branch)
    assert len(set(given_row_ids.values())) == len(given_row_ids) == 6


def test_main_becomes_what_the_branch_is_while_nothing_was_done_to_it(table: Table, client: Client) -> None:
    table.create_branch("b")
    branch = deleted(client().load_table("t", ref="b").append(rows(4)), [1])
    main = client().load_table("t").fast_forward("main", "b")
    assert ids(main) == [2, 3, 4]
    assert row_ids(main) == row_ids(branch)
    # And on: both have all of each other.
    main = main.append(rows(5)).fast_forward("b", "main")
    assert ids(main.at(ref="b")) == [2, 3, 4, 5]
    assert main.fast_forward("b", "main").version == main.version
    sound(client)


def test_a_branch_is_compacted_by_itself_and_the_rows_keep_their_ids(table: Table, client: Client) -> None:
    table.create_branch("b")
    branch = deleted(client().load_table("t", ref="b").append(rows(4)).append(rows(5)), [1])
    compacted_table = branch.compact()
    assert (compacted_table.file_count, row_ids(compacted_table)) == (1, row_ids(branch))
    assert client().load_table("t").file_count == table.file_count
    assert row_ids(compacted_table.fast_forward("main", "b")) == row_ids(branch)
    sound(client)


def test_a_tag_or_branch_is_replaced_only_where_it_is(table: Table, client: Client) -> None:
    with pytest.raises(NoSuchRef):
        engine.replace_tag(table, "x")
    table.create_tag("x", version=2)
    with pytest.raises(NoSuchRef, match="no branch x, but a tag"):
        engine.replace_branch(table, "x")
    with pytest.raises(RefExists):
        table.create_branch("x", if_not_exists=True)
    engine.replace_tag(table.refresh(), "x", version=3)
    assert ids(client().load_table("t", ref="x")) == [1, 2, 3]


def test_what_was_done_to_main_is_not_lost_by_a_fast_forward(table: Table, client: Client) -> None:
    table.create_branch("b")
    client().load_table("t", ref="b").append(rows(4))
    client().load_table("t").append(rows(5))
    with pytest.raises(InvalidInput, match="was changed since"):
        client().load_table("t").fast_forward("main", "b")
    with pytest.raises(InvalidInput, match="was changed since"):
        client().load_table("t").fast_forward("b", "main")


def test_a_branch_of_an_older_version_does_not_have_what_came_since(table: Table) -> None:
    table.create_branch("old", version=2).create_branch("mine", version=2)
    table.refresh().at(ref="mine").append(rows(4))
    with pytest.raises(InvalidInput, match="it is not known that mine ever had all of it"):
        table.refresh().fast_forward("main", "mine")
    assert ids(table.refresh().fast_forward("old", "main").at(ref="old")) == [1, 2, 3]


def test_a_branch_of_a_branch(table: Table) -> None:
    table.create_branch("a")
    a = table.refresh().at(ref="a").append(rows(4))
    a.create_branch("b")
    b = a.refresh().at(ref="b").append(rows(5))
    assert (ids(a), ids(b)) == ([1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert ids(b.fast_forward("main", "b")) == [1, 2, 3, 4, 5]


def test_lines_that_are_read_together_are_of_one_moment(table: Table, client: Client) -> None:
    table.create_branch("b")
    catalog = client()
    main, branch = catalog.load_table("t"), catalog.load_table("t", ref="b")
    other_catalogs = client()
    with other_catalogs.transaction() as moving_transaction:
        moving_transaction.load_table("t").delete(col("id") == 1)
        moving_transaction.load_table("t", ref="b").append(rows(9))
    late = catalog.load_table("t", ref="b")
    read = engine.read_together([main, late])
    assert [(table.ref, table.version, ids(table)) for table in read] == [
        ("main", late.version, [2, 3]),
        ("b", late.version, [1, 2, 3, 9]),
    ]
    assert ids(branch) == [1, 2, 3]
    client().load_table("t").drop_branch("b").append(rows(4))
    with pytest.raises(NoSuchRef):
        engine.read_together([catalog.load_table("t"), late])


def test_names_are_taken_once(table: Table) -> None:
    table.create_tag("x")
    with pytest.raises(RefExists):
        table.create_tag("x")
    with pytest.raises(RefExists):
        table.create_branch("x", replace=True)
    assert table.create_tag("x", if_not_exists=True).refs["x"].version == 3
    table = table.refresh().append(rows(4)).create_tag("x", replace=True)
    assert ids(table.at(ref="x")) == [1, 2, 3, 4]
    for name in ("main", "MAIN", ""):
        with pytest.raises(InvalidInput):
            table.create_branch(name)
    with pytest.raises(NoSuchRef, match="but a tag"):
        table.drop_branch("x")
    with pytest.raises(NoSuchRef):
        table.drop_tag("x").drop_tag("x")
    assert not table.refresh().drop_tag("x", missing_ok=True).refs


def test_a_handle_of_a_branch_is_of_no_other_branch_of_that_name(table: Table) -> None:
    table.create_branch("b")
    branch = table.refresh().at(ref="b")
    table.refresh().drop_branch("b").create_branch("b")
    with pytest.raises(NoSuchRef, match="was dropped or replaced"):
        branch.append(rows(4))
    assert ids(table.refresh().at(ref="b")) == [1, 2, 3]


def test_a_branch_that_was_dropped_is_made_again_from_the_past(table: Table) -> None:
    table.create_branch("b")
    branch = table.refresh().at(ref="b").append(rows(4))
    dropped_table = branch.drop_branch("b")
    new_table = dropped_table.at(version=branch.version, ref="b").create_branch("b")
    assert (
        ids(new_table.at(ref="b")) == ids(dropped_table.at(version=branch.version, ref="b")) == [1, 2, 3, 4]
    )
    assert ids(new_table) == [1, 2, 3]


def test_a_tag_of_the_past_does_not_ask_what_happened_since(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", rows().schema).append(rows(1)).create_branch("b")
    branch = table.at(ref="b").append(rows(2))
    branch.drop_branch("b").append(rows(3))
    catalog.drop_table("t")
    client().undrop_table("t")
    current_table = client().load_table("t")
    current_table.at(version=2).create_tag("x")
    current_table.at(version=branch.version, ref="b").create_branch("y")
    new_table = client().load_table("t")
    assert (ids(new_table.at(ref="x")), ids(new_table.at(ref="y"))) == ([1], [1, 2])
    assert list(new_table.at(version=2).drop_tag("x").refs) == ["y"]


def test_the_past_has_the_refs_of_its_time(table: Table) -> None:
    version = table.create_branch("b").version
    branch = table.refresh().at(ref="b").append(rows(4))
    current_table = branch.drop_branch("b")
    assert not current_table.refs
    assert ids(current_table.at(version=branch.version, ref="b")) == [1, 2, 3, 4]
    assert ids(current_table.at(version=version, ref="b")) == [1, 2, 3]
    with pytest.raises(NoSuchRef):
        current_table.at(version=3, ref="b")
    assert current_table.inspect("refs").read_all().to_pylist() == [
        {"name": "main", "type": "BRANCH", "version": current_table.version}
    ]
    past_table = current_table.at(version=branch.version)
    assert [row["name"] for row in past_table.inspect("refs").read_all().to_pylist()] == ["main", "b"]
    with pytest.raises(InvalidInput, match="the past is read-only"):
        current_table.at(version=version, ref="b").append(rows(5))


def test_a_branch_goes_back_to_rows_that_it_had(table: Table) -> None:
    table.create_branch("b")
    table_before = table.refresh().at(ref="b").append(rows(4))
    table_after = table_before.truncate().set_current_version(table_before.version)
    assert ids(table_after) == [1, 2, 3, 4]
    assert ids(table_after.at(ref="main")) == [1, 2, 3]
    with pytest.raises(InvalidInput, match="by itself"):
        table_after.rollback_to_version(table_before.version)


def test_a_table_with_branches_is_not_replaced(table: Table, catalog: Catalog) -> None:
    table.create_branch("b").create_tag("old")
    stage = engine.stage(catalog, "replace", "t", pa.schema([("x", pa.int64())]))
    with pytest.raises(Unsupported, match="while it has branches"):
        engine.commit_stage(catalog, stage)
    table.refresh().drop_branch("b")
    stage = engine.stage(catalog, "replace", "t", pa.schema([("x", pa.int64())]))
    engine.commit_stage(catalog, stage)
    assert ids(catalog.load_table("t", ref="old")) == [1, 2, 3]
    assert isinstance(catalog.load_table("t", ref="old").schema, Schema)


def test_a_rollback_does_not_take_columns_from_a_branch(table: Table) -> None:
    added_table = table.alter([{"change": "add-column", "name": ["more"], "type": "long"}])
    added_table.create_branch("b")
    with pytest.raises(Unsupported, match="branches"):
        added_table.refresh().rollback_to_version(3)
    assert ids(added_table.refresh().append(rows(4)).rollback_to_version(added_table.version)) == [1, 2, 3]


def test_not_null_is_proven_of_branches_too(table: Table) -> None:
    table.create_branch("b")
    empty_table = pa.table({"id": [None], "region": ["x"], "amount": [1.0]}, schema=rows().schema)
    table.refresh().at(ref="b").append(empty_table)
    with pytest.raises(Unsupported, match="branch b"):
        table.refresh().alter([{"change": "update-column-nullability", "name": ["id"], "nullable": False}])


def test_maintenance_keeps_what_tags_and_branches_need(
    catalog: Catalog, table: Table, client: Client
) -> None:
    table.create_tag("old").create_branch("b")
    client().load_table("t", ref="b").append(rows(4))
    client().load_table("t").overwrite(rows(9))
    catalog = client()
    catalog.expire(retain_last=1, dry_run=False)
    report = catalog.vacuum(older_than=dt.timedelta(0), dry_run=False)
    assert sum(each.files for each in report) == 0
    assert ids(client().load_table("t", ref="old")) == [1, 2, 3]
    assert ids(client().load_table("t", ref="b")) == [1, 2, 3, 4]
    sound(client)
    with pytest.raises(NotFound):
        client().load_table("t").create_tag("gone", version=2)
    client().load_table("t").drop_branch("b").drop_tag("old")
    catalog = client()
    catalog.expire(retain_last=1, dry_run=False)
    report = catalog.vacuum(older_than=dt.timedelta(0), dry_run=False)
    assert sum(each.files for each in report) == 3
    assert ids(client().load_table("t")) == [9]
    sound(client)


def test_refs_come_through_a_drop_and_an_undrop(catalog: Catalog, table: Table, client: Client) -> None:
    table.create_branch("b").create_tag("old")
    catalog.load_table("t", ref="b").append(rows(4))
    catalog.drop_table("t")
    client().undrop_table("t")
    assert ids(client().load_table("t", ref="b")) == [1, 2, 3, 4]
    assert ids(client().load_table("t", ref="old")) == [1, 2, 3]


def test_history_shows_tags_and_branches(table: Table) -> None:
    table.create_branch("b").create_tag("old")
    table.refresh().at(ref="b").append(rows(4)).fast_forward("main", "b").drop_branch("b")
    entries = [(entry.operation, entry.details) for entry in table.refresh().history(limit=5)]
    assert [operation for operation, _ in entries] == [
        "drop branch",
        "fast-forward",
        "append",
        "create tag",
        "create branch",
    ]
    assert entries[2][1]["branch"] == "b"
    assert {operation for operation, _ in entries} <= OPERATIONS


# Transactions


def test_a_branch_is_made_and_written_to_in_a_transaction(
    catalog: Catalog, table: Table, client: Client
) -> None:
    with catalog.transaction() as tx:
        tx.load_table("t").create_branch("b")
        tx.load_table("t", ref="b").append(rows(4))
        deleted(tx.load_table("t", ref="b"), [1])
        tx.load_table("t").append(rows(5)).create_tag("loaded")
        client().load_table("t").append(rows(6))
    assert ids(client().load_table("t", ref="b")) == [2, 3, 4, 6]
    assert ids(client().load_table("t")) == [1, 2, 3, 5, 6]
    assert ids(client().load_table("t", ref="loaded")) == [1, 2, 3, 5, 6]
    sound(client)


def test_a_transaction_over_main_and_a_branch_fails_where_the_branch_was_changed(
    catalog: Catalog, table: Table, client: Client
) -> None:
    table.create_branch("b")
    tx = catalog.begin()
    tx.load_table("t").append(rows(5))
    tx.load_table("t", ref="b").overwrite(rows(9))
    client().load_table("t", ref="b").append(rows(6))
    with pytest.raises(CommitConflict):
        tx.commit()
    assert ids(client().load_table("t")) == [1, 2, 3]


def test_a_branch_that_a_transaction_makes_meets_what_others_did_to_its_origin(
    catalog: Catalog, client: Client
) -> None:
    two_files(catalog)
    tx = catalog.begin()
    branch = tx.load_table("t").create_branch("b").at(ref="b")
    updated(branch, [1], "x", condition=col("name") == "n1")
    updated(client().load_table("t"), [12], "n1")
    with pytest.raises(CommitConflict, match="should have seen"):
        tx.commit()


def test_what_a_transaction_fast_forwards_meets_what_others_did_to_the_other_branch(
    catalog: Catalog, client: Client
) -> None:
    branch = two_files(catalog).create_branch("b").at(ref="b").append(rows_changed.rows(range(30, 32)))
    tx = catalog.begin()
    main = tx.load_table("t").fast_forward("main", "b")
    updated(main, [1], "x", condition=col("name") == "n1")
    updated(branch, [30], "n1")
    with pytest.raises(CommitConflict, match="should have seen"):
        tx.commit()


def test_a_transaction_goes_on_where_another_client_makes_a_tag(
    catalog: Catalog, table: Table, client: Client
) -> None:
    tx = catalog.begin()
    tx.load_table("t").overwrite(rows(9))
    client().load_table("t").create_tag("x").create_branch("b")
    tx.commit()
    assert ids(client().load_table("t")) == [9]
    assert ids(client().load_table("t", ref="x")) == [1, 2, 3]


def test_a_serializable_transaction_sees_that_a_branch_it_read_was_changed(
    catalog: Catalog, table: Table, client: Client
) -> None:
    catalog.create_table("other", rows().schema)
    table.create_branch("b")
    for line, fails in (("b", True), ("main", False)):
        tx = catalog.begin("serializable")
        read = ids(tx.load_table("t", ref="b"))
        tx.load_table("other").append(rows(len(read)))
        client().load_table("t", ref=line).append(rows(6))
        if fails:
            with pytest.raises(CommitConflict, match="on b"):
                tx.commit()
        else:
            tx.commit()


def test_rows_that_a_transaction_adds_to_a_branch_and_joins_have_its_version(
    catalog: Catalog, table: Table, client: Client
) -> None:
    with catalog.transaction() as tx:
        handle = tx.load_table("t").create_branch("b")
        handle.at(ref="b").append(rows(4))
        tx.load_table("t").fast_forward("main", "b")
    main = client().load_table("t")
    columns = main.scan(row_ids=True).to_arrow().to_pydict()
    assert dict(zip(columns["id"], columns["_row_version"], strict=True)) == {
        1: 2,
        2: 2,
        3: 3,
        4: main.version,
    }
    assert row_ids(main) == row_ids(main.at(ref="b"))
    with catalog.transaction() as tx:
        tx.load_table("t").append(rows(5)).create_branch("c")
        tx.load_table("t", ref="c").append(rows(6))
    at_c = client().load_table("t", ref="c")
    columns = at_c.scan(row_ids=True).to_arrow().to_pydict()
    versions = dict(zip(columns["id"], columns["_row_version"], strict=True))
    assert versions[5] == versions[6] == at_c.version
    assert at_c.refs["c"].version == at_c.version
    sound(client)


# What all lines have in common


def test_identity_values_are_given_once_over_all_lines(catalog: Catalog, client: Client) -> None:
    stage = engine.stage(catalog, "create", "n", numbered_schema())
    table = engine.commit_stage(catalog, stage)
    row = pa.table({"x": ["a"]})
    table.append(row).create_branch("b")
    stale = client().load_table("n", ref="b")
    client().load_table("n").append(row)
    stale.append(row)
    with catalog.transaction() as tx:
        tx.load_table("n", ref="b").append(row)
        client().load_table("n").append(row)
    main, branch = (client().load_table("n", ref=name).to_arrow()["id"].to_pylist() for name in ("main", "b"))
    assert len(main) == len(branch) == 3
    assert len({*main, *branch}) == 5
    sound(client)


def numbered_schema() -> Schema:
    from lakelog.catalog.core.schema.spark_types import schema_from_spark

    identity = {"identity.start": 1, "identity.step": 1, "identity.allowExplicitInsert": False}
    return schema_from_spark(
        {
            "type": "struct",
            "fields": [
                {"name": "id", "type": "long", "nullable": True, "metadata": identity},
                {"name": "x", "type": "string", "nullable": True, "metadata": {}},
            ],
        }
    )


def test_a_batch_of_a_stream_is_committed_once_on_whatever_line(table: Table, client: Client) -> None:
    table.create_branch("b")
    batch = StreamBatch(stream="s", number=0)
    assert ids(client().load_table("t", ref="b").append(rows(4), batch=batch)) == [1, 2, 3, 4]
    assert ids(client().load_table("t").append(rows(4), batch=batch)) == [1, 2, 3]
    assert ids(client().load_table("t", ref="b").append(rows(4), batch=batch)) == [1, 2, 3, 4]


def test_a_request_that_is_retried_is_one_commit(catalog: Catalog, table: Table, client: Client) -> None:
    token = catalog.token("t")
    first = table.create_branch("b", token=token)
    assert client().load_table("t").create_branch("b", token=token).version == first.version
    branch = client().load_table("t", ref="b")
    write_token = catalog.token("t")
    branch.append(rows(4), token=write_token)
    assert ids(client().load_table("t", ref="b").append(rows(4), token=write_token)) == [1, 2, 3, 4]
    client().load_table("t").drop_branch("b")
    with pytest.raises(NoSuchRef):
        branch.append(rows(5))


def test_columns_are_those_of_the_table_on_every_branch(table: Table, client: Client) -> None:
    table.create_branch("b")
    stale = client().load_table("t", ref="b")
    changed_table = table.refresh().alter(
        [{"change": "rename-column", "name": ["amount"], "new_name": "price"}]
    )
    assert client().load_table("t", ref="b").to_arrow().column_names == ["id", "region", "price"]
    assert ids(stale.append(rows(4))) == [1, 2, 3, 4]
    with pytest.raises(InvalidInput, match="by itself"):
        changed_table.at(ref="b").alter([{"change": "drop-column", "name": ["price"]}])


def test_a_snapshot_names_what_lines_have_in_common_once(warehouse: str) -> None:
    # In the background, some are left out where others are under way.
    options = LogOptions(snapshot_every_versions=1, in_background=at_once)
    catalog = Catalog(warehouse, log_options=options)
    table = catalog.create_table("t", rows().schema)
    for number in range(5):
        table = table.append(rows(number))
    for name in ("x", "y", "z"):
        table = table.create_tag(name)
    table.create_branch("b")
    loaded_table = Catalog(warehouse).load_table("t")
    state = loaded_table.table_head.view.state
    names = {
        manifest.stored.name
        for line in state.lines()
        for manifest in line.files.stored_in().manifests.entries
    }
    assert len(names) == 1
    assert ids(loaded_table.at(ref="z")) == [0, 1, 2, 3, 4]


def test_a_table_that_never_had_any_is_stored_as_before(table: Table) -> None:
    root = table.table_head.tracked.log.projection.dump(table.table_head.view.state, 9).root
    assert "refs" not in root and "main" not in root
    assert (
        "refs"
        in table.table_head.tracked.log.projection.dump(table.create_tag("x").table_head.view.state, 9).root
    )


def test_a_check_finds_a_snapshot_with_other_refs(table: Table) -> None:
    true = table.create_branch("b").create_tag("x").table_head.view.state
    judge = TableJudge(table.table_head.tracked.log.read_blobs)
    assert judge.difference(true, true) is None
    tag, branch = true.refs["x"], true.refs["b"]
    for wrong in (
        {"b": branch},
        {"b": branch, "x": replace(tag, version=1)},
        {"b": replace(branch, line=branch.line.changed()), "x": tag},
        {"b": branch, "x": replace(tag, line=ContentLine(contains={branch.id: 0}))},
    ):
        assert judge.difference(true, replace(true, refs=wrong)) == "other tags or branches than in a replay"
    # Clients of before did not note what a tag was made of.
    assert (
        judge.difference(true, replace(true, refs={"b": branch, "x": replace(tag, line=ContentLine())}))
        is None
    )
    changed_files = table.refresh().at(ref="b").truncate().table_head.view.state.refs["b"].files
    other_state = replace(true, refs={"b": replace(branch, files=changed_files), "x": tag})
    assert str(judge.difference(true, other_state)).startswith("of b: file_count is 0 there, and 2")
