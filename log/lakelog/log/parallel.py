"""Several callables side by side: the intents of one transaction go to their logs at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

THREADS_MAX = 16


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
