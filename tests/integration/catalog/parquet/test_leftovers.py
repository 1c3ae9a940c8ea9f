"""A change whose files cannot be committed leaves none behind; one that may have happened leaves all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from tests.everywhere import replaced
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, StreamBatch, Table, col, engine
from lakelog.catalog.core import parquet
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.engine import DataFile
from lakelog.log import CommitUnknown, NotFound

Other = Callable[[Table], object]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table(
        "t", SCHEMA, partition_by=["region"], properties={"lakelog.write.delete.mode": "copy-on-write"}
    )
    return table.append(rows(1, 2, 3)).append(rows(4, 5, region="US"))


def unused_texts(catalog: Catalog) -> list[str]:
    return [finding.where for finding in catalog.fsck(deep=True).found]


@contextmanager
def beaten(other: Other, table: Table) -> Iterator[None]:
    """Inside, `other` happens once in the middle of a change: when its files have been written."""
    left = [other]

    def first(write: Callable[..., Any]) -> Callable[..., Any]:
        def written(*arguments: Any, **named: Any) -> Any:
            files = write(*arguments, **named)
            assert files
            while left:
                left.pop()(table)
            return files

        return written

    with ExitStack() as patches:
        for name in ("copied_files", "written_files", "written_partitions"):
            patches.enter_context(replaced(parquet, name, first(getattr(parquet, name))))
        yield
        assert not left, "nothing was written, so that nothing was in the way"


CHANGES = {
    "overwrite": (lambda table: table.overwrite(rows(9)), CommitConflict),
    "rename": (
        lambda table: engine.rename_partition(table, {"region": "EU"}, {"region": "DE"}),
        CommitConflict,
    ),
    "truncate": (lambda table: engine.truncate_partitions(table, [{"region": "EU"}]), None),
    "delete": (lambda table: table.delete(col("id") == 1), None),
    "compact": (lambda table: table.append(rows(6)).compact(), None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_cannot_be_committed_is_deleted(catalog: Catalog, table: Table, change: str) -> None:
    make, fails = CHANGES[change]
    with beaten(lambda table: table.refresh().delete(col("id") == 2), table):
        if fails:
            with pytest.raises(fails):
                make(table)
        else:
            make(table)
    # A delete goes on over the other one. Its copy, of which no row is left, is for vacuum: attempts at a commit may
    # differ in whether they need it.
    assert len(unused_texts(catalog)) == (1 if change == "delete" else 0)


def test_the_files_of_a_batch_that_is_there_already_are_deleted(catalog: Catalog, table: Table) -> None:
    def batch() -> StreamBatch:
        return StreamBatch(stream="s", number=0)

    with beaten(lambda table: table.append(rows(7), batch=batch()), table):
        table.append(rows(7), batch=batch())
    assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 7]
    assert not unused_texts(catalog)


def test_what_may_have_been_committed_stays(catalog: Catalog, table: Table) -> None:
    def lost(*_: Any, **__: Any) -> Any:
        raise CommitUnknown("no answer", commit_id="c", location="t")

    with patch("lakelog.catalog.core.writes.file_changes.commit", lost), pytest.raises(CommitUnknown):
        table.append(rows(8))
    assert len(unused_texts(catalog)) == 1


def test_a_compaction_whose_version_cannot_be_read_any_more_keeps_its_files(
    catalog: Catalog, table: Table
) -> None:
    table = table.append(rows(6))
    real = TableHead.entries

    def entries(head: TableHead, paths: Collection[str]) -> dict[str, DataFile]:
        if head.version > table.version:
            raise NotFound("version 3 has expired")
        return real(head, paths)

    with (
        patch.object(TableHead, "entries", entries),
        pytest.raises(CommitUnknown, match="has expired"),
    ):
        table.compact()
    assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 6]
