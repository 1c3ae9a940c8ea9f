"""Transactions that meet, in their own steps or at the end, what was not there when these were prepared."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, col, engine
from lakelog.catalog.core.schema.table_changes import RenameColumn, SetPartitioning, SetProperty
from lakelog.log import CommitUnknown, ConflictError, Draft, InvalidInput, LogSealed, NotFound

Client = Callable[[], Catalog]


@pytest.fixture
def other(client: Client, catalog: Catalog) -> Catalog:
    catalog.create_table("t", SCHEMA).append(rows(1))
    return client()


def ids(catalog: Catalog, name: str = "t") -> list[int]:
    return sorted(catalog.load_table(name).to_arrow()["id"].to_pylist())


def test_rows_of_a_partitioning_that_others_chose_too_by_another_id_do_not_land_in_the_wrong_one(
    catalog: Catalog, other: Catalog
) -> None:
    with pytest.raises(CommitConflict, match="changes columns, partitioning"), catalog.transaction() as tx:
        tx.load_table("t").alter([SetPartitioning(fields=("region",))]).append(rows(5))
        for field in ("id", "region"):
            other.load_table("t").alter([SetPartitioning(fields=(field,))])
    assert other.load_table("t").scan(filter=col("region") == "EU").to_arrow() == rows(1)


def test_what_expired_between_the_base_of_a_change_and_the_transaction_is_not_taken_for_nothing(
    catalog: Catalog, other: Catalog
) -> None:
    stage = engine.stage(catalog, "replace", "t", SCHEMA)
    for number in range(2, 5):
        other.load_table("t").append(rows(number))
    other.expire("t", retain_last=1, dry_run=False)
    with pytest.raises(ConflictError, match="has expired since"), catalog.transaction() as tx:
        engine.commit_stage(tx, stage)
    assert ids(catalog) == [1, 2, 3, 4]


def test_what_was_prepared_before_a_drop_and_its_undrop_is_a_conflict(
    catalog: Catalog, other: Catalog
) -> None:
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA)
    stages = [engine.stage(catalog, kind, "t", SCHEMA) for kind in ("replace", "create-or-replace")]
    create = engine.stage(catalog, "create", "n.u", SCHEMA)
    held_table, token, renaming_token = catalog.load_table("t"), catalog.token("t"), catalog.token("n.t")
    other.drop_table("t")
    other.undrop_table("t")
    other.drop_namespace("n", cascade=True)
    other.undrop_namespace("n")
    changes: list[Callable[[], object]] = [
        *(lambda stage=stage: engine.commit_stage(catalog, stage) for stage in (*stages, create)),
        lambda: held_table.overwrite(rows(2)),
        lambda: held_table.alter([SetProperty(key="k", value="v")], token=token),
        lambda: catalog.rename_table("n.t", "n.v", token=renaming_token),
    ]
    for change in changes:
        with pytest.raises(ConflictError, match="and restored since"):
            change()
    tx = other.begin()
    tx.load_table("t").append(rows(3))
    catalog.drop_table("t")
    catalog.undrop_table("t")
    with pytest.raises(ConflictError, match="and restored since"):
        tx.commit()
    assert ids(catalog) == [1]


def test_a_change_that_meets_a_purged_table_says_so(catalog: Catalog, other: Catalog) -> None:
    held_table = catalog.load_table("t")
    other.drop_table("t")
    other.vacuum(dropped_older_than=dt.timedelta(0), older_than=dt.timedelta(0), dry_run=False)
    with pytest.raises(LogSealed, match="was purged at version"):
        held_table.table_head.tracked.log.commit(held_table.table_head.view, lambda view, passed: Draft())
    with pytest.raises(NotFound, match="dropped"):
        held_table.append(rows(2))


def test_a_read_of_the_past_in_a_transaction_is_of_that_version_also_after_an_expiry(
    catalog: Catalog, client: Client
) -> None:
    """Manifests that expire are read anew: of the version that was asked for, with the steps that were on it."""
    table = catalog.create_table("t", SCHEMA)
    for number in range(45):
        table = table.append(rows(number))
    reader = client()
    with reader.transaction() as tx:
        tx.load_table("t").append(rows(100))
        past_table, current_table = tx.load_table("t").at(version=42), tx.load_table("t")
        catalog.load_table("t").overwrite(rows(1000))
        catalog.expire("t", version=42, dry_run=False)
        assert sorted(past_table.to_arrow()["id"].to_pylist()) == list(range(41))
        assert sorted(current_table.to_arrow()["id"].to_pylist()) == [*range(45), 100]


def test_what_a_transaction_decides_anew_is_about_the_version_that_it_meets_also_after_an_expiry(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of the newest version are read while it expires: what stood at the beginning must not be taken for it."""
    catalog.create_table("t", SCHEMA).append(rows(1))
    with pytest.raises(ConflictError), catalog.transaction() as tx:
        table = tx.load_table("t").overwrite(rows(2))
        tracked_log = table.table_head.tracked
        client().load_table("t").append(rows(3))
        look: list[object] = []
        read = type(tracked_log).read

        def expiring(self: object, view: object, ask: Callable[[object], object]) -> object:
            def once(seen: object) -> object:
                if not look:
                    look.append(seen)
                    raise NotFound("a manifest has expired")
                return ask(seen)

            return read(self, view, once)  # type: ignore[arg-type]

        monkeypatch.setattr(type(tracked_log), "read", expiring)
    assert look
    monkeypatch.undo()
    assert ids(catalog) == [1, 3]


def test_an_unknown_outcome_is_raised_at_the_end_of_the_block(
    catalog: Catalog, other: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = catalog.begin()
    commit = type(tx)._commit

    def unknown(*arguments: object) -> None:
        raise CommitUnknown("no answer", commit_id=tx.commit_id, location="")

    with pytest.raises(CommitUnknown), tx:
        tx.load_table("t").append(rows(2))
        with monkeypatch.context() as patch:
            patch.setattr(type(tx), "_commit", unknown)
            tx.commit()
    assert type(tx)._commit is commit
    tx.commit()
    assert ids(other) == [1, 2]


def test_a_transaction_does_not_make_a_warehouse_of_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(InvalidInput, match="not a lakelog warehouse"), Catalog(tmp_path).transaction() as tx:
        tx.create_namespace("a")
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize("what", ["table", "namespace", "not empty"])
def test_a_serializable_transaction_has_read_that_there_was_nothing_to_drop(
    catalog: Catalog, other: Catalog, what: str
) -> None:
    catalog.create_namespace("n")
    if what == "not empty":
        catalog.create_table("n.u", SCHEMA)
    tx = catalog.begin("serializable")
    if what == "table":
        assert not tx.drop_table("n.u", missing_ok=True)
        other.create_table("n.u", SCHEMA)
    elif what == "namespace":
        assert not tx.drop_namespace("n.u", missing_ok=True)
        other.create_namespace("n.u")
    else:
        with pytest.raises(InvalidInput):
            tx.drop_namespace("n")
        other.drop_table("n.u")
    tx.load_table("t").append(rows(2))
    with pytest.raises(CommitConflict, match="serializable"):
        tx.commit()


@pytest.mark.parametrize("when", ["before", "within", "meanwhile"])
def test_a_name_whose_table_was_dropped_by_its_place_is_free_in_a_transaction(
    catalog: Catalog, client: Client, tmp_path: Path, when: str
) -> None:
    place, other_catalog = str(tmp_path / "place"), client()
    catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    catalog.create_table("old", SCHEMA).append(rows(2))
    if when == "before":
        engine.drop_table_at(other_catalog, place)
    with catalog.transaction() as tx:
        if when == "meanwhile":
            engine.drop_table_at(other_catalog, place)
        if when == "within":
            engine.drop_table_at(tx, place)
        assert not tx.table_exists("t")
        if when == "before":
            tx.create_table("t", SCHEMA).append(rows(2))
        else:
            tx.rename_table("old", "t")
        if when == "meanwhile":
            assert not other_catalog.table_exists("t")  # and unlinks the name
    assert ids(other_catalog) == [2]
    assert other_catalog.undrop_table("t", to="back") == ("back",)
    assert ids(other_catalog, "back") == [1]


def test_a_name_that_led_nowhere_and_does_again_is_not_taken_away(
    catalog: Catalog, client: Client, tmp_path: Path
) -> None:
    place, other_catalog = str(tmp_path / "place"), client()
    catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    engine.drop_table_at(other_catalog, place)
    with (
        pytest.raises(CommitConflict, match="restored while its name was given"),
        catalog.transaction() as tx,
    ):
        tx.create_table("t", SCHEMA).append(rows(2))
        assert not other_catalog.table_exists("t")
        other_catalog.undrop_table("t")
    assert ids(other_catalog) == [1]


def test_what_was_prepared_before_an_earlier_step_is_a_conflict_that_says_so(
    catalog: Catalog, other: Catalog
) -> None:
    with catalog.transaction() as tx:
        held_table, stage = tx.load_table("t"), engine.stage(tx, "replace", "t", SCHEMA)
        held_table.append(rows(2))
        with pytest.raises(
            CommitConflict, match="an earlier change in the same transaction, which added files"
        ):
            engine.commit_stage(tx, stage)
        with pytest.raises(
            CommitConflict, match="an earlier change in the same transaction, which added files"
        ):
            held_table.overwrite(rows(3))
        engine.commit_stage(tx, engine.stage(tx, "replace", "t", SCHEMA))
        with pytest.raises(CommitConflict, match="same transaction, which replaced the table"):
            held_table.alter([RenameColumn(name=("region",), new_name="area")])
    assert ids(other) == []


def test_a_cascade_that_meets_something_new_at_the_end_is_a_conflict_that_says_so(
    catalog: Catalog, other: Catalog
) -> None:
    catalog.create_namespace("n")
    with (
        pytest.raises(CommitConflict, match="names were added to `n`") as caught,
        catalog.transaction() as tx,
    ):
        tx.drop_namespace("n", cascade=True)
        other.create_table("n.u", SCHEMA)
    assert type(caught.value) is CommitConflict
    assert ids(other, "n.u") == []


def test_a_conflict_names_the_table_and_the_other_writer(warehouse):
    ours = Catalog(warehouse, writer={"user": "ann"})
    theirs = Catalog(warehouse, writer={"user": "bob"})
    ours.create_namespace("n")
    for name in ("n.read", "n.gone", "n.rows"):
        ours.create_table(name, SCHEMA).append(rows(1))

    tx = ours.transaction("serializable")
    tx.load_table("n.read").to_arrow()
    tx.load_table("n.rows").append(rows(2))
    theirs.load_table("n.read").append(rows(3))
    with pytest.raises(CommitConflict, match="`n`.`read`, which this serializable .* by user=bob"):
        tx.commit()

    tx = ours.transaction()
    tx.load_table("n.gone").append(rows(2))
    tx.load_table("n.rows").append(rows(2))
    theirs.drop_table("n.gone")
    with pytest.raises(CommitConflict, match="changes `n`.`gone`, which was dropped .* by user=bob"):
        tx.commit()

    tx = ours.transaction()
    tx.load_table("n.rows").delete(col("id") == 1)
    tx.load_table("n.rows").append(rows(2))
    theirs.load_table("n.rows").append(rows(1))
    with pytest.raises(CommitConflict, match="changes of `n`.`rows` .* by user=bob: rows that it deletes"):
        tx.commit()
