"""Threads of one catalog that change the same table or namespace at once: their changes share versions."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.patience import PATIENCE_S, barrier, wait_until

from lakelog.catalog import Catalog, CommitConflict, TableExists, engine
from lakelog.catalog.core.logs import TrackedLog, places, writing_as
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.writes import joint_appends
from lakelog.cli.main import run as run_command
from lakelog.log import each_change, expiry, open_store

THREADS = 8
EACH = 6


class Slow:
    """A store in which the put of a commit takes a moment, as on S3, so that others come meanwhile.

    The first put below `held` waits until another thread does, so that two at least meet on any machine.
    """

    held = ""
    others_wait: Callable[[], bool]

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if Slow.held and key.startswith(Slow.held):
            Slow.held = ""
            wait_until(Slow.others_wait, "that another thread waits")
        threading.Event().wait(0.01)
        is_found: bool = self._store.put_if_absent(key, data)
        return is_found


def hold_first(tracked: TrackedLog[Any]) -> None:
    """Hold the next commit of this log until another thread of this process wants to commit too."""

    def others_wait() -> bool:
        turns = joint_appends._turns.get(tracked)
        return bool(tracked.log.sharing.waiting or (turns is not None and turns.waiting))

    Slow.others_wait, Slow.held = others_wait, f"{tracked.log.keys.folder}/"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(places, "open_store", lambda url, options: Slow(open_store(url, options)))
    return str(tmp_path / uuid.uuid4().hex)


def side_by_side(work: Callable[[int], object]) -> None:
    """Run `work` in threads that begin together, and raise the first error of one."""
    errors: list[BaseException] = []
    ready = barrier(THREADS)

    def run(number: int) -> None:
        try:
            ready.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_appends_of_threads_share_versions_and_each_stays_known(catalog: Catalog, client: Any) -> None:
    table = catalog.create_table("t", SCHEMA)

    def append(number: int) -> None:
        for i in range(EACH):
            with writing_as({"query": f"q{number}"}):
                catalog.load_table("t").append(rows(100 * number + i, region=f"r{number}"))

    hold_first(table.table_head.tracked)
    side_by_side(append)
    assert table.refresh().version - 1 < THREADS * EACH

    expected = sorted(100 * number + i for number in range(THREADS) for i in range(EACH))
    other_table = client().load_table("t")
    read = other_table.scan(row_ids=True).to_arrow()
    assert sorted(read["id"].to_pylist()) == expected
    assert sorted(read["_row_id"].to_pylist()) == list(range(len(expected)))
    # Histories and audits have an entry for each, with its own author.
    every = list(other_table.history())
    assert (
        sum(entry.details.get("added_files", 0) for entry in every)
        == other_table.table_head.state.files.file_count
    )
    # The one that put a file for several says no rows of its own.
    history = [entry for entry in every if "of_changes" not in entry.details]
    assert Counter(entry.operation for entry in history) == {"append": len(expected), "create": 1}
    assert Counter(entry.writer.get("query") for entry in history[:-1]) == {
        f"q{n}": EACH for n in range(THREADS)
    }
    assert len({entry.commit_id for entry in history}) == len(history)
    assert [entry.version for entry in history] == sorted((e.version for e in history), reverse=True)
    assert {entry.details.get("added_rows", entry.details.get("rows")) for entry in history[:-1]} == {1}
    audited_entries = [entry for entry in client().audit() if entry.operations == ("append",)]
    assert {entry.commit_id for entry in audited_entries} == {entry.commit_id for entry in every[:-1]}
    # Each row came in its version, and none twice.
    changes = other_table.changes(1).to_arrow()
    assert sorted(changes["id"].to_pylist()) == expected
    came = dict(zip(changes["id"].to_pylist(), changes["_commit_version"].to_pylist(), strict=True))
    for version in {*came.values()}:
        past_rows = other_table.at(version=version).scan().to_arrow()["id"].to_pylist()
        assert sorted(past_rows) == sorted(id for id, since in came.items() if since <= version)


def test_a_write_that_is_committed_again_is_found_in_a_version_of_many(catalog: Catalog, client: Any) -> None:
    table = catalog.create_table("t", SCHEMA)
    writes = [engine.begin_write(table) for _ in range(THREADS)]
    tracked_log = table.table_head.tracked
    files = [
        write_files(
            tracked_log.store,
            tracked_log.prefix,
            write,
            rows(number).to_reader(),
            table.metadata.schema,
            table.metadata.spec,
            table.metadata.sort_order,
            properties={},
        )
        for number, write in enumerate(writes)
    ]

    def commit(number: int) -> None:
        for _ in range(EACH):
            engine.commit_write(table, writes[number], "append", files[number])

    hold_first(tracked_log)
    side_by_side(commit)
    head = client().load_table("t")
    assert sorted(head.scan().to_arrow()["id"].to_pylist()) == list(range(THREADS))
    assert any(commit.changes for commit in head.table_head.commits())
    expiry.expire(head.table_head.tracked.log, head.append(rows(99)).version)
    for number in range(THREADS):
        engine.commit_write(table, writes[number], "append", files[number])
    assert len(client().load_table("t").scan().to_arrow()) == THREADS + 1


def test_tables_of_threads_share_versions_of_their_namespace_and_a_name_is_given_once(
    catalog: Catalog, client: Any
) -> None:
    catalog.create_namespace("a")
    taken_texts: list[str] = []

    def create(number: int) -> None:
        for i in range(EACH):
            catalog.create_table(f"a.t{number}_{i}", SCHEMA)
            try:
                catalog.create_table(f"a.common{i}", SCHEMA)
            except TableExists:
                taken_texts.append(f"common{i}")

    hold_first(catalog._tree.namespace(("a",)).tracked)
    side_by_side(create)
    names = {f"t{number}_{i}" for number in range(THREADS) for i in range(EACH)}
    names |= {f"common{i}" for i in range(EACH)}
    other_client = client()
    assert {name[-1] for name in other_client.list_tables("a")} == names
    assert Counter(taken_texts) == {f"common{i}": THREADS - 1 for i in range(EACH)}
    history = [entry for entry in other_client.history("a") if entry.operation == "link"]
    assert len(history) == len(names)
    assert len({entry.version for entry in history}) < len(names)
    for name in names:
        assert other_client.load_table(f"a.{name}").append(rows(1)).version == 2


def test_appends_share_versions_beside_changes_that_do_not(catalog: Catalog, client: Any) -> None:
    """Deletes, a new column and a rollback go by themselves, each on the state that it finds."""
    table = catalog.create_table("t", SCHEMA).append(rows(*range(50), region="old"))
    appended_numbers: list[int] = []

    def change(number: int) -> None:
        for i in range(EACH):
            table = catalog.load_table("t")
            if number == 0:
                table.delete(f"id = {i}")
            elif number == 1 and i == 2:
                table.alter([{"change": "add-column", "name": ["more"], "type": "integer"}])
            else:
                try:
                    table.append(rows(1000 * number + i))
                    appended_numbers.append(1000 * number + i)
                except CommitConflict as error:
                    assert "column" in str(error)

    hold_first(table.table_head.tracked)
    side_by_side(change)
    other_table = client().load_table("t")
    assert sorted(other_table.scan().to_arrow()["id"].to_pylist()) == sorted(
        [*range(EACH, 50), *appended_numbers]
    )
    assert any(len(each_change(commit)) > 1 for commit in other_table.table_head.commits())
    assert table.id == other_table.id


def test_the_commands_and_fsck_know_versions_of_many(
    catalog: Catalog, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = catalog.create_table("t", SCHEMA)
    hold_first(table.table_head.tracked)
    side_by_side(lambda number: catalog.load_table("t").append(rows(number)))
    table = table.refresh()
    assert any(commit.changes for commit in table.table_head.commits())
    shared_version = next(commit.version for commit in table.table_head.commits() if commit.changes)
    assert table.at(version=shared_version).history()._repr_html_().count("append") == 1  # the newest change
    assert run_command(["history", "t", "--warehouse", warehouse]) == 0
    for_several = sum("of_changes" in entry.details for entry in table.history())
    assert capsys.readouterr().out.count("append") == THREADS + for_several
    assert run_command(["fsck", "--warehouse", warehouse]) == 0, capsys.readouterr().out
