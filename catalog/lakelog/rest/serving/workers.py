"""A server in several processes that share a listening socket.

The first process answers nothing. It starts the others, and starts a process anew if it dies. A process that ends soon
after its start is started anew a little later, so that a fault of all of them does not keep a machine busy.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from socket import socket

from lakelog.log.clocks import steady_clock_us
from lakelog.rest.serving.settings import ServerSettings

_PAUSE_S = 1.0
_CODES_IN_ORDER = (0, -signal.SIGTERM)
"""A process that gets the signal before it serves ends by it."""
_LOGGER = logging.getLogger("lakelog.rest")

WorkerProgram = Callable[[socket], None]
"""Serves at a socket until it gets a signal. It can be pickled, as it runs in a new process."""


@dataclass(frozen=True, slots=True)
class WorkersOutcome:
    """How the processes have ended: by Ctrl-C, and all of them in order or not."""

    is_interrupted: bool
    is_in_order: bool


def serve_in_workers(
    program: WorkerProgram, listener: socket, settings: ServerSettings, workers: int
) -> WorkersOutcome:
    """Run `program` in so many processes until a signal comes.

    Each process gets the signal to end, and finishes the requests that it has begun. The listener is closed then; while
    the processes drain, they have it open. Only the main thread may call it.
    """
    supervisor = WorkerSupervisor(program, listener, workers)
    former_handlers = {
        number: signal.signal(number, supervisor.on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        supervisor.run()
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)
        # As long as a process has the socket open, clients connect to it, and would wait for an answer in vain.
        listener.close()
        is_in_order = supervisor.end(settings.limits.drain_s + settings.limits.stop_s)
    return WorkersOutcome(supervisor.is_interrupted, is_in_order)


class WorkerSupervisor:
    """Keeps a number of processes running."""

    def __init__(self, program: WorkerProgram, listener: socket, workers: int) -> None:
        self._program = program
        self._listener = listener
        self._workers = workers
        self._context = multiprocessing.get_context("spawn")
        self._processes: list[BaseProcess] = []
        self._stopping = threading.Event()
        self.is_interrupted = False

    def on_signal(self, number: int, frame: object) -> None:
        self.is_interrupted = self.is_interrupted or number == signal.SIGINT
        self._stopping.set()

    def run(self) -> None:
        """Start the processes, and start anew those that die, until a signal comes."""
        for _ in range(self._workers):
            self._start()
        while not self._stopping.is_set():
            wait([process.sentinel for process in self._processes], timeout=0.2)
            dead_processes = [process for process in self._processes if not process.is_alive()]
            for process in dead_processes if not self._stopping.is_set() else ():
                _LOGGER.error(
                    "process %s of the server has ended with code %s", process.pid, process.exitcode
                )
                self._processes.remove(process)
            if dead_processes and not self._stopping.wait(_PAUSE_S):
                for _ in range(self._workers - len(self._processes)):
                    self._start()

    def end(self, stop_s: float) -> bool:
        """End all processes: by a signal, and by force if that has no effect. Return whether all ended in order."""
        for process in self._processes:
            process.terminate()
        deadline_us = steady_clock_us() + round((stop_s + 10) * 1_000_000)
        for process in self._processes:
            process.join(max(0.0, (deadline_us - steady_clock_us()) / 1_000_000))
            if process.is_alive():
                _LOGGER.error("process %s of the server did not end, and is killed", process.pid)
                process.kill()
                process.join()
        return all(process.exitcode in _CODES_IN_ORDER for process in self._processes)

    def _start(self) -> None:
        process = self._context.Process(target=self._program, args=(self._listener,), daemon=True)
        process.start()
        self._processes.append(process)
