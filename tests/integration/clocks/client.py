"""The work of clients in a process of its own, whose clock may differ.

Each line of its input is a client: JSON with the `url` and `options` of a warehouse, the `environment` of its
credentials, and `steps`, which is Python that has `catalog`, `open_catalog` and `rows`. It calls `report` with what the
test wants to know; that is printed as a line of JSON. A client has stores of its own, which know no earlier answer.
With LAKELOG_TEST_LOCAL_DISK the files' stamps are of the process's own clock, as on a local disk.
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
from lakelog.log import LakelogError, wait_for_background
from lakelog.log.stores import local_store


def run(url: str, options: dict[str, str], steps: str, environment: dict[str, str]) -> dict[str, Any]:
    os.environ.update(environment)
    reported: dict[str, Any] = {"clock_us": time.time_ns() // 1000}

    def open_catalog(**more: Any) -> Catalog:
        return Catalog(url, options=options, **more)

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
    wait_for_background()
    return reported


if __name__ == "__main__":
    if os.environ.get("LAKELOG_TEST_LOCAL_DISK"):
        local_store.stamp_us = lambda fd: time.time_ns() // 1000
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
