"""Lists of folders with many objects. In a bucket, several parts of a folder are listed in parallel.

A bucket answers with a page of 1,000 keys, and only the last key of a page leads to the next page. So a
folder of a million objects takes a thousand answers in sequence. A client that knows keys that may exist can
begin between them. Such bounds only decide how the work is split. Each key is in exactly one part, wherever
the bounds are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import islice

import pyarrow as pa

from lakelog.log.costs import TallyThreads
from lakelog.log.stores import ObjectStore

ALONE = 10_000
"""The number of objects that are listed page by page before the folder counts as large."""

AT_ONCE = 16
IN_PART = 20_000
"""A thread hands over its list after this many objects. So memory is bounded, whatever the bounds are."""

FILES_BETWEEN = 5_000
VERSIONS_BETWEEN = 64

Listed = tuple[str, int]


def listed(store: ObjectStore, prefix: str, bounds: Sequence[str]) -> Iterator[Listed]:
    """Yield the objects whose keys begin with the prefix, with their sizes, in the order of keys.

    `bounds` are keys.
    """
    # A local folder is always read as a whole.
    if not store.is_bucket:
        yield from store.list_sizes(prefix)
        return
    first = list(islice(store.list_sizes(prefix), ALONE))
    yield from first
    if len(first) < ALONE:
        return
    last_key = first[-1][0]
    # Keys are in the order of their bytes, which differs from the order of Python strings.
    between = sorted(
        {key for key in bounds if key.startswith(prefix) and key.encode() > last_key.encode()}, key=str.encode
    )
    yield from _side_by_side(store, prefix, list(zip([last_key, *between], [*between, None], strict=True)))


def bounds_of(prefix: str, live: Sequence[pa.Table], version: int) -> list[str]:
    """Return keys with about as many data files of a table between each two of them.

    They come from the table's files, and from its versions, with which the names of files begin.
    """
    known_paths = [
        path
        for files in live
        for path in files["path"]
        .take(pa.array(range(0, files.num_rows, FILES_BETWEEN), pa.int64()))
        .to_pylist()
    ]
    step = max(1, version // VERSIONS_BETWEEN)
    return [
        f"{prefix}{path}"
        for path in (*known_paths, *(f"data/{number:020d}" for number in range(step, version, step)))
    ]


def _side_by_side(
    store: ObjectStore, prefix: str, parts: Sequence[tuple[str, str | None]]
) -> Iterator[Listed]:
    """List the parts in parallel, as many ahead as there are threads.

    A part has the keys after its first bound up to its second bound.
    """

    def part(after: str, until: str | None) -> tuple[list[Listed], bool]:
        """Return the objects of a part, and whether more of its objects may follow."""
        objects: list[Listed] = []
        for key, size in store.list_sizes(prefix, after):
            if until is not None and key.encode() > until.encode():
                break
            objects.append((key, size))
            if len(objects) == IN_PART:
                return objects, True
        return objects, False

    remaining_parts = iter(parts)
    ahead: deque[tuple[Future[tuple[list[Listed], bool]], str | None]] = deque()
    with TallyThreads(AT_ONCE, "lakelog-listing") as pool:
        try:
            ahead.extend(
                (pool.submit(part, *bounds), bounds[1]) for bounds in islice(remaining_parts, AT_ONCE)
            )
            while ahead:
                future, until = ahead.popleft()
                objects, has_more = future.result()
                if has_more:
                    ahead.appendleft((pool.submit(part, objects[-1][0], until), until))
                else:
                    ahead.extend(
                        (pool.submit(part, *bounds), bounds[1]) for bounds in islice(remaining_parts, 1)
                    )
                yield from objects
        finally:
            pool.shutdown(cancel_futures=True)
