"""Commits of files that an engine has written itself, and of other changes that only its statements make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelog.catalog.core.files import DataFile, DeletedPositions, TableEstimates
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.parquet import FoundFile
from lakelog.catalog.core.schema import Filter, ValuesTaken, as_predicate
from lakelog.catalog.core.state import BRANCH, TAG
from lakelog.catalog.core.writes import (
    RewrittenFiles,
    StreamBatch,
    alter,
    compaction_commit,
    file_changes,
    row_changes,
)
from lakelog.catalog.engine.operations import of_table
from lakelog.catalog.table import Table
from lakelog.log import WriteRef


def begin_write(table: Table) -> WriteRef:
    """Return the id of a new write, which starts from this version. The names of its files have this id."""
    return table._writable("write to").begin_write()


@of_table
def commit_write(
    table: Table,
    write: WriteRef | None,
    operation: str,
    files: Sequence[DataFile],
    *,
    filter: Filter | None = None,
    deletes: Sequence[DeletedPositions | Mapping[str, Any]] | None = None,
    copies: Sequence[DataFile] | None = None,
    batch: StreamBatch | None = None,
    values: Sequence[ValuesTaken] = (),
    token: Token | None = None,
) -> Table:
    """Commit files that were written under `data/` (append, overwrite by `filter`, overwrite-partitions,
    truncate).

    `values` are values of identity columns that the write took for new rows. `deletes` are all matching rows
    in files that match in part, if known. `copies` have the remaining rows of these files, if the table
    deletes by copying. Raises CommitConflict, NoSuchTable, WriteFenced, and BatchCommitted if the table has
    the batch.
    """
    head = table._writable("write to")
    change = file_changes.change_of(operation, files, filter, batch, values, deletes, copies)
    return table._with(file_changes.commit_write(head, write, change, token))


@of_table
def commit_rows(
    table: Table,
    write: WriteRef,
    operation: str,
    files: Sequence[DataFile] = (),
    *,
    removed: Sequence[str] = (),
    deletes: Sequence[DeletedPositions | Mapping[str, Any]] = (),
    condition: Filter | None = None,
    values: Sequence[ValuesTaken] = (),
    reads_others: bool = False,
    inserted: int | None = None,
    updated: int | None = None,
    token: Token | None = None,
) -> Table:
    """Commit a change of rows that was prepared by reading this version: delete, update, merge or compact.

    `files` were written under `data/`, and replace the files `removed`. In other files, the live rows at the
    positions in `deletes` are deleted. `condition` is true for all rows that were read. `values` are values
    of identity columns that were taken for new rows. With `reads_others`, a delete of rows depends on other
    rows of the table too, as by a subquery. Of the rows in `files`, `inserted` are new rows of a merge, and
    `updated` replace other rows. The rest are copies. Without these counts, the history does not know how
    many rows an update or merge changed. Raises CommitConflict, NoSuchTable, WriteFenced, and InvalidInput if
    this version lacks the files or rows.
    """
    head = table._writable("change rows of")
    change = row_changes.row_change(
        operation,
        files,
        removed,
        deletes,
        None if condition is None else as_predicate(condition),
        values,
        reads_others=reads_others,
        inserted=inserted,
        updated=updated,
    )
    return table._with(row_changes.commit_rows(head, write, change, token))


@of_table
def commit_compaction(
    table: Table, write: WriteRef, groups: Sequence[RewrittenFiles], *, token: Token | None = None
) -> tuple[Table, list[int]]:
    """Commit groups that were planned on this version.

    Returns the indexes of groups that are not committed because other clients have changed their files.
    """
    base = table._writable("compact").at_write(write)
    head, lost_groups = compaction_commit.commit(base, groups, write=write, token=token)
    return table._with(head), lost_groups


@of_table
def commit_statistics(table: Table, estimates: TableEstimates, *, token: Token | None = None) -> Table:
    """Keep statistics that an engine has computed from all rows of this version, for query planners."""
    table._check_main("analyzed")
    return table._with(alter.set_statistics(table._writable("compute statistics of"), estimates, token))


@of_table
def add_found_files(
    table: Table,
    found_files: Sequence[FoundFile],
    *,
    ignore_extra_columns: bool = False,
    token: Token | None = None,
) -> Table:
    """As `Table.add_files`, for an engine that has read the files' footers itself."""
    return table._add_found(found_files, ignore_extra_columns=ignore_extra_columns, token=token)


@of_table
def replace_tag(table: Table, name: str, version: int | None = None, *, token: Token | None = None) -> Table:
    """As `Table.create_tag`, in place of an existing tag. Raises NoSuchRef."""
    return table._set_ref(TAG, name, version, token, replace=True, is_known=True)


@of_table
def replace_branch(
    table: Table, name: str, version: int | None = None, *, token: Token | None = None
) -> Table:
    """As `Table.create_branch`, in place of an existing branch, whose rows are lost. Raises NoSuchRef."""
    return table._set_ref(BRANCH, name, version, token, replace=True, is_known=True)
