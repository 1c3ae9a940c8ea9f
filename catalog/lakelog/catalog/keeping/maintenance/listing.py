"""Lists of folders with many objects: of a bucket, several parts of one are listed side by side.

A bucket answers with a page of 1,000 keys, and the next page can be asked for only by the last key of the one before.
So a folder of a million is a thousand answers, one after the other. Who knows keys that may be there can begin
between them. Such bounds decide how the work is split and nothing else: each key is in exactly one part, wherever the
bounds are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import islice

import pyarrow as pa

from lakelog.log.costs import Threads
from lakelog.log.stores import ObjectStore

ALONE = 10_000
"""So many objects are listed one page after the other, before it is known that there are more."""

AT_ONCE = 16
IN_PART = 20_000
"""A thread lists so many, and hands over: what waits in memory is bounded, however the bounds lie."""

FILES_BETWEEN = 5_000
VERSIONS_BETWEEN = 64

Listed = tuple[str, int]


def listed(store: ObjectStore, prefix: str, bounds: Sequence[str]) -> Iterator[Listed]:
    """Yield the objects whose keys begin with the prefix, with their sizes, in the order of keys. `bounds` are keys."""
    # A folder is always read whole.
    if not store.is_bucket:
        yield from store.list_sizes(prefix)
        return
    first = list(islice(store.list_sizes(prefix), ALONE))
    yield from first
    if len(first) < ALONE:
        return
    reached = first[-1][0]
    # Keys are in the order of their bytes, which that of Python's texts is not.
    between = sorted(
        {key for key in bounds if key.startswith(prefix) and key.encode() > reached.encode()}, key=str.encode
    )
    yield from _side_by_side(store, prefix, list(zip([reached, *between], [*between, None], strict=True)))


def bounds_of(prefix: str, live: Sequence[pa.Table], version: int) -> list[str]:
    """Return keys between which about as many data files of a table are: by those that it has, and by its versions,
    from which the names of files begin."""
    known = [
        path
        for files in live
        for path in files["path"]
        .take(pa.array(range(0, files.num_rows, FILES_BETWEEN), pa.int64()))
        .to_pylist()
    ]
    step = max(1, version // VERSIONS_BETWEEN)
    return [
        f"{prefix}{path}" for path in (*known, *(f"data/{each:020d}" for each in range(step, version, step)))
    ]


def _side_by_side(
    store: ObjectStore, prefix: str, parts: Sequence[tuple[str, str | None]]
) -> Iterator[Listed]:
    """List the parts, each the keys after the first bound up to the second one, as many ahead as there are threads."""

    def part(after: str, until: str | None) -> tuple[list[Listed], bool]:
        """Return the objects of a part, and whether there may be more of it behind them."""
        found: list[Listed] = []
        for key, size in store.list_sizes(prefix, after):
            if until is not None and key.encode() > until.encode():
                break
            found.append((key, size))
            if len(found) == IN_PART:
                return found, True
        return found, False

    waiting = iter(parts)
    ahead: deque[tuple[Future[tuple[list[Listed], bool]], str | None]] = deque()
    with Threads(AT_ONCE, "lakelog-listing") as pool:
        try:
            ahead.extend((pool.submit(part, *each), each[1]) for each in islice(waiting, AT_ONCE))
            while ahead:
                future, until = ahead.popleft()
                found, has_more = future.result()
                if has_more:
                    ahead.appendleft((pool.submit(part, found[-1][0], until), until))
                else:
                    ahead.extend((pool.submit(part, *each), each[1]) for each in islice(waiting, 1))
                yield from found
        finally:
            pool.shutdown(cancel_futures=True)
