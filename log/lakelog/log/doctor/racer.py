"""Racers in a process of its own: `python -m lakelog.log.doctor.racer FOLDER FIRST COUNT`.

Reads lines from its input, each a moment of the steady clock in microseconds and a key, races for each key at that
moment with COUNT threads, and writes one line of JSON with the outcomes. It reports that it is ready by an empty line.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.races import Outcome, attempt
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.store import ObjectStore


def folder(root: str) -> ObjectStore:
    """The folder, without syncs: who creates a file does not depend on them."""
    return LocalStore(root, fsync=False)


def main(arguments: Sequence[str], store_of: Callable[[str], ObjectStore] = folder) -> None:
    store, first, count = store_of(arguments[0]), int(arguments[1]), int(arguments[2])
    print(flush=True)
    for line in sys.stdin:
        moment_us, _, key = line.rstrip("\n").partition(" ")
        outcomes: list[Outcome] = []

        def run(
            racer: int, key: str = key, moment_us: int = int(moment_us), outcomes: list[Outcome] = outcomes
        ) -> None:
            threading.Event().wait(max(0, moment_us - steady_clock_us()) / 1e6)
            outcomes.append(attempt(store, key, racer))

        started = [threading.Thread(target=run, args=(racer,)) for racer in range(first, first + count)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        print(json.dumps([asdict(outcome) for outcome in outcomes]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
