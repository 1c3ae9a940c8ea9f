"""Retries of changes that a dead process had proposed: what is reported as failed is not committed by others later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.integration.catalog.ddl.test_definitions import ONE, TWO
from tests.integration.catalog.rows_changed import deletes_of
from tests.integration.catalog.writes.test_identity import written

from lakelog.catalog import (
    AlreadyExists,
    Catalog,
    CommitConflict,
    CommitUnknown,
    InvalidInput,
    LogOptions,
    NotFound,
    Table,
    engine,
)
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.logs import TrackedLog
from lakelog.log import FeatureNames
from lakelog.log.changes import refusal_in
from lakelog.log.format import ProposedChange
from lakelog.log.proposals.inbox import ProposalInbox, proposals_of

SCHEMA = pa.schema({"id": pa.int64()})
ROWS = pa.table({"id": [1]}, schema=SCHEMA)


def leave_proposed(change: Callable[[], object]) -> None:
    """Do what a process does that dies once its change is proposed."""

    def die(tracked: Any, view: Any, decide: Any, *, commit_id: str, base: int, shared: bool = False) -> None:
        assert shared
        draft = decide(view, ())
        proposed_change = ProposedChange(
            commit_id=commit_id, base=base, write=draft.write, events=draft.events
        )
        [(data, _)] = proposals_of(view.log_id, view.version, FeatureNames(), [proposed_change])
        assert data is not None
        ProposalInbox(tracked.log.replay).put(view.version, commit_id, data)
        raise CommitUnknown("dead", commit_id=commit_id, location=tracked.location)

    with patch.object(TrackedLog, "commit", die), pytest.raises(CommitUnknown):
        change()


def combine(path: Path, *, table: bool = False, rows: pa.Table = ROWS) -> None:
    """Have another process commit what is proposed to the namespace, or to the table."""
    catalog = Catalog(str(path), log_options=LogOptions(proposals=True))
    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        if table:
            catalog.load_table("n.t").append(rows)
        else:
            catalog.alter_namespace("n", set={"combined": "yes"})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA)
    for table in (False, True):
        combine(tmp_path, table=table)  # which says first that there may be proposals
    return Catalog(str(tmp_path))


@dataclass
class Case:
    """A change that may be proposed, what is in its way for a while, and how one sees that it happened."""

    change: Callable[[Catalog, Any], object]
    begin: Callable[[Catalog], Any]
    block: Callable[[Catalog], object]
    unblock: Callable[[Catalog], object]
    happened: Callable[[Catalog], object]
    error: type[Exception] = AlreadyExists


def staged(kind: str) -> Callable[[Catalog], Any]:
    return lambda catalog: engine.stage(catalog, kind, "n.new", SCHEMA)


CASES = {
    "a namespace": Case(
        lambda catalog, token: catalog.create_namespace("n.new", token=token),
        lambda catalog: catalog.token("n.new"),
        lambda other: other.create_namespace("n.new"),
        lambda other: other.drop_namespace("n.new"),
        lambda catalog: catalog.namespace_exists("n.new"),
    ),
    "a table": Case(
        lambda catalog, stage: engine.commit_stage(catalog, stage),
        staged("create"),
        lambda other: other.create_table("n.new", SCHEMA),
        lambda other: other.drop_table("n.new"),
        lambda catalog: catalog.table_exists("n.new"),
    ),
    "a table whose name a view takes": Case(
        lambda catalog, stage: engine.commit_stage(catalog, stage),
        staged("create"),
        lambda other: engine.create_view(other, "n.new", ONE),
        lambda other: other.drop_view("n.new"),
        lambda catalog: catalog.table_exists("n.new"),
    ),
    "a table or another": Case(
        lambda catalog, stage: engine.commit_stage(catalog, stage),
        staged("create-or-replace"),
        lambda other: other.create_table("n.new", SCHEMA),
        lambda other: other.rename_table("n.new", "n.old"),
        lambda catalog: catalog.table_exists("n.new"),
        CommitConflict,
    ),
    "a view": Case(
        lambda catalog, token: engine.create_view(catalog, "n.new", ONE, token=token),
        lambda catalog: catalog.token("n.new"),
        lambda other: engine.create_view(other, "n.new", TWO),
        lambda other: other.drop_view("n.new"),
        lambda catalog: catalog.list_views("n"),
    ),
}


def test_properties_that_contradict_each_other_are_not_both_committed(
    catalog: Catalog, tmp_path: Path
) -> None:
    started_token = catalog.token("n")
    slow = {"lakelog.maintenance.vacuum-age": "30d"}
    leave_proposed(lambda: catalog.alter_namespace("n", set=slow, token=started_token))
    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        other_catalog = Catalog(str(tmp_path), log_options=LogOptions(proposals=True))
        other_catalog.alter_namespace("n", set={"lakelog.maintenance.keep-for": "1d"})
    assert slow.keys().isdisjoint(Catalog(str(tmp_path)).load_namespace("n"))
    with pytest.raises(InvalidInput, match="shorter than"):
        Catalog(str(tmp_path)).alter_namespace("n", set=slow, token=started_token)


@pytest.mark.parametrize("kind", CASES)
def test_what_a_dead_process_proposed_is_committed_by_others(
    catalog: Catalog, tmp_path: Path, kind: str
) -> None:
    case = CASES[kind]
    begun = case.begin(catalog)
    leave_proposed(lambda: case.change(catalog, begun))
    combine(tmp_path)
    assert case.happened(Catalog(str(tmp_path)))
    # The retry finds that, and does nothing more.
    case.change(Catalog(str(tmp_path)), begun)


@pytest.mark.parametrize("kind", CASES)
def test_a_retry_that_fails_for_what_is_in_the_way_now_is_not_committed_later(
    catalog: Catalog, tmp_path: Path, kind: str
) -> None:
    case, other_catalog = CASES[kind], Catalog(str(tmp_path))
    begun = case.begin(catalog)
    leave_proposed(lambda: case.change(catalog, begun))
    case.block(other_catalog)
    retrying_catalog = Catalog(str(tmp_path))
    with pytest.raises(case.error):
        case.change(retrying_catalog, begun)
    case.unblock(other_catalog)
    combine(tmp_path)
    assert not case.happened(Catalog(str(tmp_path)))
    # It stays refused, and is said to be once.
    with pytest.raises((AlreadyExists, CommitConflict)):
        case.change(Catalog(str(tmp_path)), begun)
    namespace = Catalog(str(tmp_path))._tree.namespace(("n",)).tracked
    refused_commits = [
        commit for commit in namespace.log.commits() if refusal_in(commit, begun.commit_id) is not None
    ]
    assert len(refused_commits) == 1


def test_a_table_is_not_refused_by_its_own_link_that_comes_meanwhile(
    catalog: Catalog, tmp_path: Path
) -> None:
    stage, other_catalog = engine.stage(catalog, "create", "n.new", SCHEMA), Catalog(str(tmp_path))
    leave_proposed(lambda: engine.commit_stage(catalog, stage))
    other_catalog.create_table("n.new", SCHEMA)
    looked_flags: list[bool] = []

    def look(*given: Any) -> Any:
        found_log = before(*given)
        if not looked_flags:
            looked_flags.append(found_log is None)
            other_catalog.drop_table("n.new")
            combine(tmp_path)  # after the retry has looked whether it happened, before it looks at the name
        return found_log

    before = staging._committed_before
    with patch.object(staging, "_committed_before", look):
        table = engine.commit_stage(Catalog(str(tmp_path)), stage)
    assert looked_flags == [True]
    assert table.id == stage.table_id


def test_a_retried_append_finds_its_rows_in_the_table_that_had_its_name(
    catalog: Catalog, tmp_path: Path
) -> None:
    rows = pa.table({"id": [7]})
    token = catalog.token("n.t")
    leave_proposed(lambda: catalog.load_table("n.t").append(rows, token=token))
    combine(tmp_path, table=True)
    other_catalog = Catalog(str(tmp_path))
    other_catalog.rename_table("n.t", "n.old")
    other_catalog.create_table("n.t", SCHEMA)
    other_catalog.drop_table("n.t")
    other_catalog.undrop_table("n.t")  # a seal is among its versions
    retrying_catalog = Catalog(str(tmp_path))
    assert retrying_catalog.load_table("n.t").append(rows, token=token).scan().to_arrow().num_rows == 0
    assert (
        retrying_catalog.load_table("n.t").truncate(token=token).version
        == retrying_catalog.load_table("n.t").version
    )
    assert retrying_catalog.load_table("n.old").scan().to_arrow()["id"].to_pylist().count(7) == 1
    folder = Path(retrying_catalog.load_table("n.t").location)
    assert not list(folder.glob("data/*"))


def late_append(catalog: Catalog) -> tuple[Table, dict[str, Any]]:
    """The table, and a write that began on a version which soon expires."""
    table = catalog.load_table("n.t")
    late = written(table, ROWS, {})
    return table.append(ROWS).append(ROWS), late


def test_files_whose_base_has_expired_are_not_refused_while_others_may_commit_them(
    catalog: Catalog, tmp_path: Path
) -> None:
    table, late = late_append(catalog)
    leave_proposed(lambda: engine.commit_write(table, **late))
    catalog.expire("n.t", version=table.version, dry_run=False)
    retrying_table = Catalog(str(tmp_path)).load_table("n.t")
    with pytest.raises(NotFound, match="has expired"):
        engine.commit_write(retrying_table, **late)
    combine(tmp_path, table=True)
    assert table.refresh().row_count == 4


def test_files_that_were_committed_before_their_base_expired_are_found(
    catalog: Catalog, tmp_path: Path
) -> None:
    table, late = late_append(catalog)
    finished_table = engine.commit_write(table, **late)
    catalog.expire("n.t", retain_last=1, dry_run=False)
    again = engine.commit_write(Catalog(str(tmp_path)).load_table("n.t"), **late)
    assert again.row_count == finished_table.row_count == 4


def test_an_overwrite_that_happened_before_its_base_expired_is_found(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.load_table("n.t").append(ROWS)
    late = written(table, ROWS, {}) | {"operation": "truncate"}
    finished_table = engine.commit_write(table, **late)
    finished_table.append(ROWS)
    catalog.expire("n.t", retain_last=1, dry_run=False)
    again = engine.commit_write(Catalog(str(tmp_path)).load_table("n.t"), **late)
    assert (finished_table.row_count, again.row_count) == (1, 2)


def test_rows_that_were_changed_before_their_base_expired_are_found(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.load_table("n.t")
    write, deletes = engine.begin_write(table), deletes_of(table, [1])
    finished_table = engine.commit_rows(table, write, "delete", deletes=deletes)
    late = engine.begin_write(table)
    catalog.load_table("n.t").append(ROWS).append(ROWS)
    catalog.expire("n.t", retain_last=1, dry_run=False)
    table = Catalog(str(tmp_path)).load_table("n.t")
    assert (
        engine.commit_rows(table, write, "delete", deletes=deletes).row_count == finished_table.row_count + 2
    )
    with pytest.raises(NotFound, match="has expired"):
        engine.commit_rows(table, late, "delete", deletes=deletes)
