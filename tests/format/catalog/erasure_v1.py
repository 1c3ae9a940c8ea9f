"""Makes the golden warehouse of a table of which rows were erased, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.erasure_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

import pyarrow as pa
from tests.format.catalog.clones_v1 import added
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog
from lakelog.catalog.core.state import ErasureEnded, HistoryExpired, RowsErased, encode
from lakelog.log import Draft, expiry, wait_for_background

SCHEMA = pa.schema([("id", pa.int64())])
STATEMENT = (
    '{"format":1,"erasure":"erasure-1","filter":"id = ?","logs":[],"lost":[],"left":[],"out_of_reach":[]}'
)


def fill(catalog: Catalog) -> None:
    table = added(added(catalog.create_table("a", SCHEMA), 3), 10)
    catalog.expire("a", version=2, dry_run=False)
    # There are no bytes behind these files.
    head = table.truncate().table_head
    said = RowsErased(erasure="erasure-1", filter="id = ?", reference="ticket 7")
    version = head.version + 1
    draft = Draft(events=encode([said, HistoryExpired(version=version)]), fence=version)
    head.tracked.commit(head.view, lambda view, passed: draft)
    catalog.expire("a", version=version, dry_run=False)
    expiry.blank(head.tracked.log)
    ended = ErasureEnded(erasure="erasure-1", statement=STATEMENT, signature="ab" * 64, signed_by="cd" * 32)
    view = head.tracked.commit(
        head.tracked.current(), lambda view, passed: Draft(events=encode([ended]))
    ).view
    added(catalog.load_table("a"), 4)
    again = RowsErased(erasure="erasure-2", filter="id > ?")
    view = head.tracked.commit(
        head.tracked.current(), lambda view, passed: Draft(events=encode([again]))
    ).view
    head.tracked.log.snapshot(view)
    wait_for_background()


if __name__ == "__main__":
    write_objects(build(fill))
