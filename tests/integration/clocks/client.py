"""What a client does in a process of its own, whose clock may be another one: python -m …client URL OPTIONS STEPS.

STEPS is Python that has `catalog`, `open_catalog` and `rows`. It calls `report` with what the test wants to know; that
is printed as JSON. With LAKELOG_TEST_LOCAL_DISK the files' stamps are of the process's own clock, as on a local disk.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log import LakelogError
from lakelog.log.stores import local_store


def main(url: str, options: str, steps: str) -> None:
    if os.environ.get("LAKELOG_TEST_LOCAL_DISK"):
        local_store.stamp_us = lambda fd: time.time_ns() // 1000
    reported: dict[str, Any] = {"clock_us": time.time_ns() // 1000}

    def open_catalog(**more: Any) -> Catalog:
        return Catalog(url, options=json.loads(options), **more)

    known = {
        "catalog": open_catalog(),
        "open_catalog": open_catalog,
        "rows": pa.table({"id": [1, 2]}),
        "dt": dt,
        "report": reported.update,
    }
    try:
        exec(steps, known)
    except LakelogError as error:
        reported |= {"error": error.kind, "message": error.message}
    print(json.dumps(reported))


if __name__ == "__main__":
    main(*sys.argv[1:])
