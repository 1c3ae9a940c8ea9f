"""Work side by side: the intents of one transaction go to their logs at the same time, and many objects are read."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS_MAX = 16
BATCH = 32
"""Handing one item to a thread costs more than reading a footer of a local file does."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_in_parallel(works: Sequence[Callable[[], None]]) -> None:
    """Run all of them and return when all have ended. The first runs in the calling thread."""
    if len(works) < 2:
        for work in works:
            work()
        return
    with ThreadPoolExecutor(min(len(works) - 1, THREADS_MAX), "lakelog-parallel") as executor:
        futures = [executor.submit(work) for work in works[1:]]
        works[0]()
    for future in futures:
        future.result()


def run_in_thread(name: str, work: Callable[[], None]) -> None:
    """Begin to run `work`, which ends by itself. RuntimeError where the interpreter ends."""
    threading.Thread(target=work, name=f"lakelog-{name}", daemon=False).start()


def in_threads(function: Callable[[Item], Result], items: Sequence[Item], name: str) -> Iterator[Result]:
    """Yield what the function returns for each item, in their order. An error ends it, once the batches that have begun
    have ended. `name` begins the names of the threads."""

    def batch(start: int) -> list[Result]:
        return [function(item) for item in items[start : start + size]]

    # A few items, of which each may take long, are not to wait for each other.
    size = max(1, min(BATCH, len(items) // THREADS_MAX))
    with ThreadPoolExecutor(THREADS_MAX, name) as executor:
        try:
            for results in executor.map(batch, range(0, len(items), size)):
                yield from results
        finally:
            executor.shutdown(cancel_futures=True)
