"""Makes the golden warehouse of a table to which several threads have appended in one version, as `warehouse_v1` makes
its own.

`python -m tests.format.catalog.appends_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from dataclasses import replace

from tests.format.catalog.warehouse_v1 import SCHEMA, build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.core.state import RowsAppended, encode
from lakelog.catalog.core.writes.file_changes import change_of, commit_write
from lakelog.catalog.engine import DataFile
from lakelog.log import CarriedChange


def fill(catalog: Catalog) -> None:
    head = catalog.create_table("t", schema_from_spark(SCHEMA)).table_head
    for authors in (("ada", "bob"), ()):
        write = head.begin_write()
        file = DataFile(
            path=f"data/{write.version:020}-{write.id}-0.parquet",
            size_bytes=2000,
            rows=3,
            spec_id=head.metadata.spec.id,
            write_id=write.id,
        )
        carries = [
            CarriedChange(
                head.logs.new_id(),
                head.version,
                {"engine": "golden", "user": user},
                encode([RowsAppended(rows=rows)]),
            )
            for rows, user in enumerate(authors, 1)
        ]
        change = replace(change_of("append", [file], None, None, []), carries=carries)
        head = commit_write(head, write, change, None)


if __name__ == "__main__":
    write_objects(build(fill))
