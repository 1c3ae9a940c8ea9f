"""The same race between processes: on a folder, threads share more with each other than clients do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.races import RACERS, Outcome, Race, stored
from lakelog.log.errors import StorageError
from lakelog.log.stores.store import ObjectStore

PROCESSES = 4
AHEAD_US = 20_000
"""So long before a race its key is sent, for all to be waiting."""

# Not from the working folder: what lies there is not this program's.
COMMAND = (sys.executable, "-P", "-m", "lakelog.log.doctor.racer")


def processes(reader: ObjectStore, keys: Sequence[str], command: Sequence[str] = COMMAND) -> list[Race]:
    """Have 32 racers in four processes race for one key after the other. StorageError where a process fails."""
    each = RACERS // PROCESSES
    running = [
        subprocess.Popen(
            [*command, reader.url, str(number * each), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        for racer in running:
            _line(racer, reader)
        races = []
        for key in keys:
            moment_us = steady_clock_us() + AHEAD_US
            for racer in running:
                assert racer.stdin is not None
                racer.stdin.write(f"{moment_us} {key}\n")
                racer.stdin.flush()
            race = Race(key)
            for racer in running:
                race.outcomes += [Outcome(**outcome) for outcome in json.loads(_line(racer, reader))]
            races.append(stored(reader, race))
        return races
    finally:
        for racer in running:
            racer.kill()
            racer.communicate()


def _line(racer: subprocess.Popen[str], reader: ObjectStore) -> str:
    assert racer.stdout is not None
    line = racer.stdout.readline()
    if not line:
        raise StorageError(
            f"a process that was to write to {reader.url} ended with {racer.wait()}; run the doctor again",
            location=reader.url,
        )
    return line
