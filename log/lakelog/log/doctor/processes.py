"""The same race between processes, because threads share more in a folder than clients do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from lakelog.log.clocks import steady_clock_us
from lakelog.log.doctor.races import RACERS, KeyRace, RacerOutcome, stored
from lakelog.log.doctor.report import CannotTry
from lakelog.log.stores.store import ObjectStore

PROCESSES = 4
AHEAD_US = 20_000
"""How long before a race its key is sent, so that all racers are waiting."""

# Modules of the working folder are ignored, because they are not this program's.
COMMAND = (sys.executable, "-P", "-m", "lakelog.log.doctor.racer")


def processes(reader: ObjectStore, keys: Sequence[str], command: Sequence[str] = COMMAND) -> list[KeyRace]:
    """Have 32 racers in four processes race for each key. Raises CannotTry if a process fails."""
    racers_per_process = RACERS // PROCESSES
    racer_processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(PROCESSES):
            racer_processes.append(
                _started([*command, reader.url, str(number * racers_per_process), str(racers_per_process)])
            )
        for racer in racer_processes:
            _line(racer)
        races = []
        for key in keys:
            moment_us = steady_clock_us() + AHEAD_US
            for racer in racer_processes:
                assert racer.stdin is not None
                with suppress(BrokenPipeError):  # it has ended, as its missing answer shows
                    racer.stdin.write(f"{moment_us} {key}\n")
                    racer.stdin.flush()
            race = KeyRace(key)
            for racer in racer_processes:
                race.outcomes += [RacerOutcome(**outcome) for outcome in json.loads(_line(racer))]
            races.append(stored(reader, race))
        return races
    finally:
        for racer in racer_processes:
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
