"""Servers that die during a commit: the client finds its snapshot or not, and what it sends again happens once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})

SERVER = """
import os, sys
from lakelog.catalog import Catalog
from lakelog.rest import WritableAnswers, serve, writing
from lakelog.catalog.engine import iceberg_commits

die = sys.argv[2]
def dying(*arguments, **named):
    os._exit(9)

catalog = Catalog(sys.argv[1])
if die == "before the commit":
    iceberg_commits._settle = dying
elif die == "before the answer":
    writing.WritableAnswers._after_commit = dying
serve(WritableAnswers(catalog), port=0, began=lambda url, server: print(url, flush=True))
"""


@contextmanager
def server(warehouse: str, die: str = "never") -> Iterator[str]:
    """Run a server in a process of its own, which dies as `die` says."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, warehouse, die], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def opened(url: str) -> Any:
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", type="rest", uri=url)


@pytest.mark.parametrize("die", ["before the commit", "before the answer"])
def test_a_client_learns_what_became_of_its_commit(tmp_path: Path, die: str) -> None:
    warehouse = str(tmp_path / "w")
    with server(warehouse) as url:
        lake = opened(url)
        lake.create_namespace("ns")
        lake.create_table("ns.t", schema=ROWS.schema)
    with server(warehouse, die) as url:
        table = opened(url).load_table("ns.t")
        sent_commits: list[Any] = []
        commit = table.catalog.commit_table

        def remembered(table: Any, requirements: Any, updates: Any) -> Any:
            sent_commits.append((requirements, updates))
            return commit(table, requirements, updates)

        table.catalog.commit_table = remembered
        with pytest.raises(Exception, match=r"(?i)connection|remote|commit"):
            table.append(ROWS)
    requirements, updates = sent_commits[0]
    snapshot_id = updates[0].snapshot.snapshot_id
    with server(warehouse) as url:
        lake = opened(url)
        table = lake.load_table("ns.t")
        was_committed = die == "before the answer"
        assert (table.snapshot_by_id(snapshot_id) is not None) == was_committed
        # Sent again, it happens once.
        lake.commit_table(table, requirements, updates)
        lake.commit_table(table, requirements, updates)
        assert lake.load_table("ns.t").scan().to_arrow().num_rows == 3
    catalog = Catalog(warehouse)
    assert catalog.load_table("ns.t").version == 2 and catalog.fsck().found == []
