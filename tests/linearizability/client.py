"""A client's process: performs operations on its subject, and notes when it called and when it had the answer.

One JSON object a line, in a file of each process: a call, with what is asked for, or an answer. Both times are of the
clock that all processes of a machine share. A process that is killed leaves a call without an answer; its successor
retries it, if it can be retried, or leaves it open.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.linearizability.subjects import SUBJECTS, TRIES_MAX, Operation
from tests.patience import wait_until
from tests.processes.world import World, begin

from lakelog.catalog import Catalog, LogOptions
from lakelog.log.errors import CommitUnknown, FormatError, LakelogError, StorageError

PATIENCE_S = 0.2
"""With a transaction of another client, which may be dead or stopped. It affects only when things happen."""
NEW_CATALOG = 0.15
RETRIES_OF_THE_DEAD = 0.7


def run(world_file: str, subject: str, client: int, incarnation: int, operations: int) -> None:
    """Be incarnation `incarnation` of a client, which performs so many operations over all of its lives."""
    world = begin(world_file, f"c{client}")
    Client(world, subject, client, incarnation).work(operations)


class Client:
    def __init__(self, world: World, subject: str, client: int, incarnation: int) -> None:
        self._world = world
        self._subject = SUBJECTS[subject]
        self._client = client
        self._rng = random.Random(f"{world.seed} {client}.{incarnation}")
        self._before = list(lines(world, client))
        self._fd = os.open(journal(world, client, incarnation), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._new_catalog()

    def work(self, operations: int) -> None:
        wait_until((Path(self._world.folder) / "go").exists, "the beginning")
        self._retry_what_was_left()
        number = max((int(line["key"].rpartition(".")[2]) for line in self._before), default=0)
        while number < operations:
            number += 1
            if self._rng.random() < NEW_CATALOG:
                self._new_catalog()
            try:
                operation = self._subject.draw(self._catalog, self._rng, self._client, number)
            except FormatError:
                raise
            except LakelogError:
                continue  # its name leads to nothing, or the store did not let it through
            again = False
            for _ in range(TRIES_MAX):
                if self._ask(f"{self._client}.{number}", operation, again=again) or not repeatable(operation):
                    break
                again = True

    def _new_catalog(self) -> None:
        """Go on as a process that has read nothing."""
        self._since = 0
        options = LogOptions(
            proposals=self._world.proposals, patience_s=PATIENCE_S, patience_each_s=PATIENCE_S / 8
        )
        self._catalog = Catalog(self._world.warehouse, options=self._world.options, log_options=options)

    def _retry_what_was_left(self) -> None:
        calls = {line["key"]: line for line in self._before if "call" in line}
        remaining_calls = calls.keys() - {line["key"] for line in self._before if "return" in line}
        for key in sorted(remaining_calls):
            if repeatable(calls[key]["operation"]) and self._rng.random() < RETRIES_OF_THE_DEAD:
                self._ask(key, calls[key]["operation"], again=True)

    def _ask(self, key: str, operation: Operation, *, again: bool) -> bool:
        """Perform an operation, with its call and its answer noted; return whether its outcome is known."""
        called_number = time.monotonic_ns()
        self._note(key=key, call=called_number, since=self._since, operation=operation, again=again)
        said: dict[str, Any] = {}
        try:
            said["answer"] = self._subject.perform(self._catalog, operation)
        except CommitUnknown as error:
            said["unknown"] = repr(error)
        except FormatError:
            raise
        except StorageError as error:
            # This attempt had no effect; an earlier one may have had.
            said["unknown" if again else "failed"] = repr(error)
        except LakelogError as error:
            said["failed"] = repr(error)
        if not operation.get("is_cut"):  # which may be of a moment before
            self._since = called_number
        if "unknown" not in said:
            self._note(key=key, **{"return": time.monotonic_ns()}, **said)
        return "unknown" not in said

    def _note(self, **line: Any) -> None:
        data = json.dumps(line).encode() + b"\n"
        assert os.write(self._fd, data) == len(data)


def repeatable(operation: Operation) -> bool:
    return "token" in operation or "stage" in operation


def journal(world: World, client: int, incarnation: int) -> Path:
    return Path(world.folder) / f"c{client}.{incarnation:03}.jsonl"


def lines(world: World, client: int) -> Iterator[dict[str, Any]]:
    """Yield all that the client's processes have noted, in order."""
    for path in sorted(Path(world.folder).glob(f"c{client}.*.jsonl")):
        # The last line may be half of one, of a process that was killed.
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)
