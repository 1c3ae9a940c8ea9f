"""Racers in a separate process: `python -m lakelog.log.doctor.racer FOLDER FIRST COUNT`.

Reads lines from its input, each with a moment of the steady clock in microseconds and a key. It races for
each key at that moment with COUNT threads, and writes a line of JSON with the outcomes. An empty line reports
that it is ready.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.races import RacerOutcome, attempt
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.store import ObjectStore


def folder(root: str) -> ObjectStore:
    """Return the folder without syncs, because they do not affect which racer creates a file."""
    return LocalStore(root, fsync=False)


def main(arguments: Sequence[str], store_of: Callable[[str], ObjectStore] = folder) -> None:
    store, first, count = store_of(arguments[0]), int(arguments[1]), int(arguments[2])
    print(flush=True)
    for line in sys.stdin:
        moment_us, _, key = line.rstrip("\n").partition(" ")
        outcomes: list[RacerOutcome] = []

        def run(
            racer: int,
            key: str = key,
            moment_us: int = int(moment_us),
            outcomes: list[RacerOutcome] = outcomes,
        ) -> None:
            threading.Event().wait(max(0, moment_us - steady_clock_us()) / 1e6)
            outcomes.append(attempt(store, key, racer))

        racer_threads = [threading.Thread(target=run, args=(racer,)) for racer in range(first, first + count)]
        for thread in racer_threads:
            thread.start()
        for thread in racer_threads:
            thread.join()
        print(json.dumps([asdict(outcome) for outcome in outcomes]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
