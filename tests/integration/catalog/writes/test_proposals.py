"""Processes that propose appends and names to each other: what is acknowledged is there once, with its own author."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S, wait_until

from lakelog.catalog import Catalog, LogOptions, StreamBatch
from lakelog.log import AlreadyExists
from lakelog.log.changes import combined_ids

SCHEMA = pa.schema({"id": pa.int64()})
PROCESSES = 3


@pytest.fixture
def catalogs(tmp_path: Path) -> list[Catalog]:
    """Each is as a process of its own; they propose at once, and not only after lost races."""
    Catalog(str(tmp_path)).create_table("t", SCHEMA)
    return [Catalog(str(tmp_path), log_options=LogOptions(proposals=True)) for _ in range(PROCESSES)]


def at_once(works: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_appends_that_others_commit_are_there_once_with_ids_authors_and_versions(
    catalogs: list[Catalog], tmp_path: Path
) -> None:
    appends, rounds = 10, 0

    def append(catalog: Catalog, first: int) -> Callable[[], None]:
        def work() -> None:
            table = catalog.load_table("t")
            for i in range(appends):
                table = table.append(pa.table({"id": [first + i]}, schema=SCHEMA))

        return work

    def meet() -> bool:
        nonlocal rounds
        firsts = [(catalog, n * 2 + k) for n, catalog in enumerate(catalogs) for k in range(2)]
        at_once([append(catalog, (rounds * 2 * PROCESSES + n) * 1000) for catalog, n in firsts])
        rounds += 1
        return any(
            combined_ids(commit) for commit in Catalog(str(tmp_path)).load_table("t").table_head.commits()
        )

    # Whether any process finds what another proposes is chance: they go on until it happens.
    wait_until(meet, "that one process commits what another proposes")
    count = rounds * 2 * PROCESSES * appends
    catalog = Catalog(str(tmp_path))
    table = catalog.load_table("t")
    ids = table.scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == [n * 1000 + i for n in range(rounds * 2 * PROCESSES) for i in range(appends)]
    assert table.version - 1 < count
    # Row ids follow one another, though several processes gave them, and rows of many share a file.
    assert sorted(table.scan(row_ids=True).to_arrow()["_row_id"].to_pylist()) == list(range(count))
    assert table.table_head.all_files().num_rows < count
    commits = list(table.table_head.commits())
    combined_commits = [commit for commit in commits if combined_ids(commit)]
    assert combined_commits
    history = [entry for entry in table.history() if entry.operation == "append"]
    assert sum("of_changes" not in entry.details for entry in history) == count
    audited_entries = [entry for entry in catalog.audit(table="t") if "append" in entry.operations]
    assert sum("of_changes" not in entry.details for entry in audited_entries) == count
    by_others = {id for commit in combined_commits for id in combined_ids(commit)}
    assert {entry.commit_id for entry in audited_entries if "combined_by" in entry.details} == by_others
    assert not [finding for finding in catalog.fsck().found if finding.severity.name != "NOTE"]


def test_threads_that_came_together_propose_their_rows_once_others_keep_winning(
    catalogs: list[Catalog], tmp_path: Path
) -> None:
    threads = 8
    tables = [catalog.load_table("t") for catalog in catalogs]

    def append(number: int) -> Callable[[], None]:
        def work() -> None:
            table = tables[number % PROCESSES]
            for i in range(4):
                table = table.append(pa.table({"id": [number * 1000 + i]}, schema=SCHEMA))

        return work

    at_once([append(number) for number in range(PROCESSES * threads)])
    table = Catalog(str(tmp_path)).load_table("t")
    expected = [number * 1000 + i for number in range(PROCESSES * threads) for i in range(4)]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    history = [entry for entry in table.history() if entry.operation == "append"]
    assert sum("of_changes" not in entry.details for entry in history) == len(expected)


def test_one_name_is_given_once_and_a_batch_is_committed_once(
    catalogs: list[Catalog], tmp_path: Path
) -> None:
    outcomes: list[str] = []

    def work(catalog: Catalog, number: int) -> Callable[[], None]:
        def work() -> None:
            for i in range(6):
                catalog.create_table(f"own_{number}_{i}", SCHEMA)
                try:
                    catalog.create_table(f"shared_{i}", SCHEMA)
                    outcomes.append(f"shared_{i}")
                except AlreadyExists:
                    pass
                rows = pa.table({"id": [i]}, schema=SCHEMA)
                catalog.load_table("t").append(rows, batch=StreamBatch(stream="s", number=i))

        return work

    at_once([work(catalog, n) for n, catalog in enumerate(catalogs)])
    assert sorted(outcome for outcome in outcomes if "shared" in outcome) == [f"shared_{i}" for i in range(6)]
    catalog = Catalog(str(tmp_path))
    assert len(catalog.list_tables()) == 1 + 6 * PROCESSES + 6
    ids = catalog.load_table("t").scan().to_arrow()["id"].to_pylist()
    assert len(ids) == len(set(ids)) and 5 in ids  # a batch below the last one is not added any more
