"""A writer in Python: works until it is killed. First it retries what its predecessor left open."""

from __future__ import annotations

import random
import sys
import time

from tests.processes.journal import FAILED, UNKNOWN, Journal, Journals
from tests.processes.work import NotLoaded, Request, Work, perform, repeatable
from tests.processes.world import World, begin, first_id

from lakelog.log.errors import CommitUnknown, ConflictError, FormatError, LakelogError, StorageError

TRIES_MAX = 5


def run(world_file: str, writer: str, incarnation: int) -> None:
    """Be incarnation `incarnation` of a writer. Never returns: the process that started it kills it."""
    world = begin(world_file, writer)
    Writer(world, writer, incarnation).work()


class Writer:
    def __init__(self, world: World, writer: str, incarnation: int) -> None:
        self._name = f"{writer}.{incarnation}"
        self._journals = world.journals
        self._journal = Journal(world.journals / f"{writer}.{incarnation:06}.jsonl")
        self._writer = writer
        self._rng = random.Random(f"{world.seed} {self._name}")
        self._number = 0
        self._ids = first_id(world.writers.index(writer), incarnation)
        self._work = Work(world.catalog(writer), writer, self._rng, self._next_ids)

    def work(self) -> None:
        self._finish_what_was_left()
        while True:
            self._number += 1
            key = f"{self._name}.{self._number}"
            try:
                request = self._work.prepare(key)
            except (StorageError, ConflictError, CommitUnknown) as error:
                # Nothing was asked for, though looking may have finished what another writer had begun.
                print(f"{key}: could not prepare: {error!r}", flush=True)
                continue
            except LakelogError as error:
                if isinstance(error, FormatError):
                    raise
                continue  # what was about to be changed is gone
            if request is None:
                continue
            asked = 1
            while self._ask(key, request, again=asked > 1) == UNKNOWN and asked < TRIES_MAX:
                if self._rng.random() < 0.2:
                    break  # some do not care
                time.sleep(0.01 * 2**asked)
                asked += 1

    def _finish_what_was_left(self) -> None:
        journals = Journals(self._journals)
        journals.read_on()
        open_ = [a for key, a in journals.asked.items() if key.startswith(f"{self._writer}.") and a.doubtful]
        # Most retry at once, some only after others have asked for more, some never.
        for asked in open_[-3:]:
            if repeatable(asked.request) and self._rng.random() < 0.7:
                self._ask(asked.key, asked.request, again=True)

    def _ask(self, key: str, request: Request, *, again: bool) -> str:
        """Note the request, perform it, note the answer."""
        self._journal.write({"key": key, "request": request, "again": again})
        try:
            answer, error = perform(self._work.catalog, request, self._work.transaction), None
        except Exception as raised:
            answer, error = classify(raised, again=again), raised
        noted = {} if error is None else {"error": f"{type(error).__name__}: {error}"}
        self._journal.write({"key": key, "answer": answer} | noted)
        return answer

    def _next_ids(self, count: int) -> int:
        first = self._ids
        self._ids += count
        return first


def classify(error: Exception, *, again: bool) -> str:
    """Say what an error means for the request. One that must never happen is raised."""
    if isinstance(error, NotLoaded):
        cause = error.__cause__
        if isinstance(cause, FormatError) or not isinstance(cause, LakelogError):
            raise error
        return UNKNOWN if again else FAILED
    if isinstance(error, FormatError) or not isinstance(error, LakelogError):
        raise error
    if isinstance(error, CommitUnknown):
        return UNKNOWN
    if isinstance(error, StorageError):
        # This attempt had no effect; an earlier one may have had.
        return UNKNOWN if again else FAILED
    return FAILED


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
