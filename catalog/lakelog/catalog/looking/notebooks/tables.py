"""A table in a notebook: its facts, columns, properties, first rows and last changes.

The facts are known. Rows come from a single file, which must be small, and changes from the last few versions.
"""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from lakelog.catalog.core.logs import TableHead, as_operation
from lakelog.catalog.core.parquet import read_files
from lakelog.catalog.core.state import MAIN, entries_of
from lakelog.catalog.core.tools import HtmlTable, as_html
from lakelog.catalog.looking.notebooks.cells import cell_of, counted
from lakelog.catalog.looking.notebooks.failures import DisplayFailures
from lakelog.catalog.looking.pictures import definition_of, what
from lakelog.catalog.times import exact_text, time_us
from lakelog.log.secrets import masked, masked_urls

ROWS_SHOWN = 5
COLUMNS_SHOWN = 20
CHANGES_SHOWN = 5

FILE_BYTES_MAX = 32 * 1024 * 1024
"""A larger file is not read for a display."""


def table_html(head: TableHead) -> str:
    """Return the display of a version of a table.

    Reads a part of a manifest if the table has manifests, a data file of at most `FILE_BYTES_MAX` with its deletion
    vector, and the commits of the last versions.
    """
    failures = DisplayFailures()
    facts: dict[str, object] = {}
    tables: list[HtmlTable] = []
    with failures.part("facts"):
        definition = definition_of(head.metadata, head.version)
        facts |= _facts(head)
        facts |= {
            "partitioned by": ", ".join(definition.partitioning),
            "clustered by": ", ".join(definition.clustering),
            "comment": definition.comment,
        }
        columns = [
            (column.name, column.type if column.nullable else f"{column.type} NOT NULL", column.comment)
            for column in definition.columns
        ]
        width = 3 if any(comment for *_, comment in columns) else 2
        tables.append(
            HtmlTable(("column", "type", "comment")[:width], [column[:width] for column in columns])
        )
        tables.append(HtmlTable(("property", "value"), list(definition.properties.items())))
    with failures.part("display"), as_operation(head.logs, "show", head.name):
        with failures.part("rows"):
            tables.append(_first_rows(head))
        if not failures.is_store_down:
            with failures.part("changes"):
                tables.append(_last_changes(head))
    notes = [table.heading for table in tables if table.heading and not table.rows]
    return as_html(f"Table {head.name}", facts, tables, notes=[*notes, *failures.lines])


def _facts(head: TableHead) -> dict[str, object]:
    files = head.state.files
    return {
        "version": f"{head.version:,}",
        "committed at": exact_text(head.time_us),
        "branch or tag": None if head.ref == MAIN else head.ref,
        "location": masked_urls(head.url),
        "rows": f"{files.row_count:,} in {counted(files.file_count, 'file')}, {files.size_bytes:,} bytes",
    }


def _first_rows(head: TableHead) -> HtmlTable:
    """Return the first rows of a file. The heading says if there are none, and why."""
    row_count = head.state.files.row_count
    if not row_count:
        return HtmlTable((), (), "No rows.")
    fields = [field.name for field in head.schema.fields]
    plan = head.plan_bound(None, limit=ROWS_SHOWN)
    sizes = list(zip(plan["rows"].to_pylist(), plan["size"].to_pylist(), strict=True))
    small = [place for place, (_, size) in enumerate(sizes) if size <= FILE_BYTES_MAX]
    if not small:
        return HtmlTable((), (), "The first file is too large to be read for a display: head() reads it.")
    place = max(small, key=lambda place: (min(sizes[place][0], ROWS_SHOWN), -sizes[place][1]))
    rows = _rows_of(head, plan.slice(place, 1), fields[:COLUMNS_SHOWN])
    left_out = len(fields) - COLUMNS_SHOWN
    of_columns = f", the first {COLUMNS_SHOWN} of {len(fields):,} columns" if left_out > 0 else ""
    of_file = ", of a single file" if rows.num_rows < min(row_count, ROWS_SHOWN) else ""
    heading = f"{rows.num_rows:,} of {counted(row_count, 'row')}{of_file}{of_columns}"
    cells = [tuple(cell_of(column[number]) for column in rows.columns) for number in range(rows.num_rows)]
    return HtmlTable(rows.schema.names, cells, heading, is_wide=True)


def _rows_of(head: TableHead, plan: pa.Table, columns: list[str]) -> pa.Table:
    """Return the first rows of the only file of a plan."""
    log = head.tracked
    schema, batches = read_files(
        log.store,
        log.prefix,
        plan,
        head.schema,
        head.metadata.specs,
        columns=columns,
        open_url=log.log.replay.open_url,
    )
    rows = pa.Table.from_batches([], schema)
    for batch in batches:
        rows = pa.concat_tables([rows, pa.Table.from_batches([batch], schema)]).slice(0, ROWS_SHOWN)
        if rows.num_rows == ROWS_SHOWN:
            break
    return rows


def _last_changes(head: TableHead) -> HtmlTable:
    """Return the changes of the last versions, the newest first."""
    if head.tracked.transaction.creates_log:
        return HtmlTable((), ())
    first = max(1, head.state.expired, head.version - CHANGES_SHOWN + 1)
    commits = head.tracked.log.commits(first, head.version, newest_first=True)
    own = (commit for commit in commits if commit.log_id == head.id)
    rows = [
        (
            entry.version,
            exact_text(time_us(entry.committed_at)),
            masked(what(entry)),
            entry.writer.get("user"),
        )
        for entry in islice(entries_of(own), CHANGES_SHOWN)
    ]
    return HtmlTable(("version", "time", "operation", "user"), rows, "Last changes")
