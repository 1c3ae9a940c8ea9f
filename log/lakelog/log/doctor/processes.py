"""The same race between processes: on a folder, threads share more with each other than clients do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.races import RACERS, Outcome, Race, stored
from lakelog.log.doctor.report import CannotTry
from lakelog.log.stores.store import ObjectStore

PROCESSES = 4
AHEAD_US = 20_000
"""So long before a race its key is sent, for all to be waiting."""

# Not from the working folder: what lies there is not this program's.
COMMAND = (sys.executable, "-P", "-m", "lakelog.log.doctor.racer")


def processes(reader: ObjectStore, keys: Sequence[str], command: Sequence[str] = COMMAND) -> list[Race]:
    """Have 32 racers in four processes race for one key after the other. CannotTry where a process fails."""
    each = RACERS // PROCESSES
    running: list[subprocess.Popen[str]] = []
    try:
        for number in range(PROCESSES):
            running.append(_started([*command, reader.url, str(number * each), str(each)]))
        for racer in running:
            _line(racer)
        races = []
        for key in keys:
            moment_us = steady_clock_us() + AHEAD_US
            for racer in running:
                assert racer.stdin is not None
                with suppress(BrokenPipeError):  # it has ended, as its missing answer says
                    racer.stdin.write(f"{moment_us} {key}\n")
                    racer.stdin.flush()
            race = Race(key)
            for racer in running:
                race.outcomes += [Outcome(**outcome) for outcome in json.loads(_line(racer))]
            races.append(stored(reader, race))
        return races
    finally:
        for racer in running:
            racer.kill()
            racer.communicate()


def _started(command: Sequence[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # A signal from the terminal is for the doctor, which ends its racers.
            start_new_session=True,
        )
    except OSError as error:
        raise CannotTry(f"this host could not start {command[0]}: {error.strerror}") from error


def _line(racer: subprocess.Popen[str]) -> str:
    assert racer.stdout is not None
    line = racer.stdout.readline()
    if not line:
        raise CannotTry(f"a process that was to race ended with {racer.wait()}")
    return line
