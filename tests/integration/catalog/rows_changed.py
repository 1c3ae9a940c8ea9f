"""Changing rows as an engine does: by positions in files, and by rewriting files."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.table import Table
from lakelog.log import WriteRef


def rows(ids: range) -> pa.Table:
    """Return rows with these ids, each with a name made from its id."""
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]})


def two_files(catalog: Catalog) -> Table:
    """Return a new table `t` with the rows 0 to 9 in one file, 10 to 19 in another."""
    table = catalog.create_table("t", pa.schema({"id": pa.int64(), "name": pa.string()}))
    for first in (0, 10):
        table = table.append(rows(range(first, first + 10)))
    return table


def positions(path: str, rows: Iterable[int]) -> dict[str, str]:
    """Return rows of a file as the adapter sends them."""
    return {"path": path, "positions": base64.b64encode(BitMap(rows).serialize()).decode()}


def paths_of(table: Table) -> list[str]:
    """Return the data files of a table, the oldest write first."""
    return sorted(table.plan()["path"].to_pylist())


def path_with(table: Table, id: int) -> str:
    """Return the one file that holds the row with this id."""
    for path in paths_of(table):
        if id in ids_in(table, path):
            return path
    raise AssertionError(f"no file holds {id}")


def ids_in(table: Table, path: str) -> list[int]:
    """Return the ids of all rows of a file, deleted ones included, by position."""
    import pyarrow.parquet as pq

    physical = table.schema.find(("id",)).physical
    with table.table_head.tracked.store.open_input(
        f"{table.table_head.tracked.prefix}/{path}".lstrip("/")
    ) as source:
        found_rows: list[int] = pq.read_table(source, columns=[physical])[physical].to_pylist()
    return found_rows


def files_of(table: Table, write: WriteRef, rows: pa.Table) -> list[DataFile]:
    return written_files(table.table_head.tracked, table.metadata, write, rows) if rows.num_rows else []


def deleted(table: Table, ids: Sequence[int], **more: Any) -> Table:
    """Delete the rows with these ids by their positions."""
    return engine.commit_rows(
        table, engine.begin_write(table), "delete", deletes=deletes_of(table, ids), **more
    )


def updated(table: Table, ids: Sequence[int], name: str, **more: Any) -> Table:
    """Give the rows with these ids another name, by deleting them and adding others."""
    write = engine.begin_write(table)
    files = files_of(table, write, pa.table({"id": list(ids), "name": [name] * len(ids)}))
    return engine.commit_rows(table, write, "update", files, deletes=deletes_of(table, ids), **more)


def rewritten(table: Table, operation: str, removed: Sequence[str], rows: pa.Table, **more: Any) -> Table:
    """Put `rows` in the place of whole files."""
    write = engine.begin_write(table)
    return engine.commit_rows(table, write, operation, files_of(table, write, rows), removed=removed, **more)


def compacted(table: Table, removed: Sequence[str] | None = None) -> Table:
    """Rewrite these files, or all, as one."""
    removed = paths_of(table) if removed is None else removed
    found_live_rows = [live_rows(table, path) for path in removed]
    return rewritten(table, "compact", removed, pa.concat_tables(found_live_rows))


def live_rows(table: Table, path: str) -> pa.Table:
    """Return the rows of one file that are in the table."""
    from lakelog.catalog.core.parquet.reading import read_files

    plan = table.plan()
    first_plan = plan.filter(pa.array([row == path for row in plan["path"].to_pylist()]))
    schema, batches = read_files(
        table.table_head.tracked.store,
        table.table_head.tracked.prefix,
        first_plan,
        table.schema,
        table.metadata.specs,
    )
    return pa.Table.from_batches(list(batches), schema=schema)


def deletes_of(table: Table, ids: Sequence[int]) -> list[dict[str, str]]:
    """Return the positions of the rows with these ids that are live."""
    found = []
    for path in paths_of(table):
        live = set(live_rows(table, path)["id"].to_pylist())
        rows = [at for at, id in enumerate(ids_in(table, path)) if id in ids and id in live]
        if rows:
            found.append(positions(path, rows))
    return found


def rows_of(table: Table) -> list[tuple[int, str | None]]:
    """Return all rows, sorted by id."""
    found_rows = table.to_arrow()
    return sorted(zip(found_rows["id"].to_pylist(), found_rows["name"].to_pylist(), strict=True))
