"""Parallel work: many objects are read at once, and the intents of a transaction are put at the same time.

Threads that want the same kind of work at once have a single thread do it for all.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from lakelog.log.costs import TallyThreads

THREADS_MAX = 16
POOL_THREADS_MAX = 256
INTERRUPTS_MAX = 100
BATCH = 32
"""Items per task, because handing over an item costs more than reading a local file's footer."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Handed:
    """Work that any thread may do, with the context of the thread that hands it over."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work, self.context, self.future = work, copy_context(), Future[None]()

    def run(self) -> None:
        try:
            self.context.run(self.work)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(None)


class _Pool:
    """Threads that stay, because starting a thread takes longer than most of its work. A forked child has none."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.threads = ThreadPoolExecutor(POOL_THREADS_MAX, "lakelog-parallel")


_pool = _Pool()


def run_in_parallel(works: Sequence[Callable[[], None]]) -> None:
    """Run all functions, and return when all have ended.

    The first runs in the calling thread, which then runs functions that no thread has begun. So nested
    parallel work never waits for a free thread, however few there are.
    """
    if len(works) < 2:
        for work in works:
            work()
        return
    handed_over = [_Handed(work) for work in works[1:]]
    queue = deque(handed_over)
    # While the interpreter exits, threads accept no work.
    with suppress(RuntimeError):
        for _ in range(min(len(handed_over), THREADS_MAX)):
            _pool.threads.submit(_work_off, queue)
    try:
        works[0]()
    finally:
        _work_off(queue)
        wait([work_item.future for work_item in handed_over])
    for work_item in handed_over:
        work_item.future.result()


def _work_off(waiting: deque[_Handed]) -> None:
    while waiting:
        with suppress(IndexError):  # another thread has taken the last item
            waiting.popleft().run()


def run_in_thread(name: str, work: Callable[[], None]) -> None:
    """Start to run `work` in a thread; the work ends by itself. Raises RuntimeError while the interpreter exits."""
    threading.Thread(target=work, name=f"lakelog-{name}", daemon=False).start()


def in_threads(function: Callable[[Item], Result], items: Sequence[Item], name: str) -> Iterator[Result]:
    """Yield the function's result for each item, in order.

    An error ends the iteration once all started batches have ended. `name` is the prefix of the threads'
    names.
    """

    def batch(start: int) -> list[Result]:
        return [function(item) for item in items[start : start + size]]

    # A few items that may each take long should not wait for each other.
    size = max(1, min(BATCH, len(items) // THREADS_MAX))
    with TallyThreads(THREADS_MAX, name) as executor:
        try:
            for results in executor.map(batch, range(0, len(items), size)):
                yield from results
        finally:
            executor.shutdown(cancel_futures=True)


@dataclass(eq=False)
class ThreadRequest:
    """A request of a thread that waits for it. `done` is its outcome, None until then."""

    done: Any = None
    woken: threading.Event = field(default_factory=threading.Event)
    group: "Sequence[Any]" = ()
    """The requests that its thread serves; empty unless it has the turn."""


W = TypeVar("W", bound=ThreadRequest)


def _never(own: Any) -> bool:
    return False


class ThreadTurns(Generic[W]):
    """Threads that want the same kind of work. A thread that finds no other at work has the turn.

    It serves all requests that wait at that moment. It does not wait for more. If a thread is interrupted, no
    other thread is left waiting for it.
    """

    def __init__(self, wait: Callable[[threading.Event, float | None], object]) -> None:
        self._wait = wait
        self._forget()
        _all_turns.add(self)

    def _forget(self) -> None:
        # A signal handler may make a request while its thread has the lock.
        self.lock = threading.RLock()
        self._queue: list[W] = []
        self._leader: W | None = None
        self._inside: set[int] = set()

    @property
    def waiting(self) -> int:
        """The number of requests that wait for the thread that has the turn."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Whether no thread has the turn."""
        return self._leader is None

    @property
    def is_inside(self) -> bool:
        """Whether the caller is a signal handler, which must not wait for the thread that it interrupted."""
        return threading.get_ident() in self._inside

    def take(
        self,
        own: W,
        work: Callable[[Sequence[W]], None],
        unfinished: Callable[[W], Any],
        elsewhere: Callable[[W], bool] = _never,
    ) -> None:
        """Return once `own` is done: by another thread, or by `work` on all waiting requests, which include `own`.

        `unfinished` gives the outcome of a request that an interrupted `work` has not done; None if that is
        unknown here. `elsewhere` is called under the `lock`. If it says that the request is served elsewhere,
        `take` returns at once.
        """
        if self.is_inside:
            work([own])
            return
        thread = threading.get_ident()
        interruption: BaseException | None = None
        interrupts = 0
        try:
            self._inside.add(thread)
            with self.lock:
                served_elsewhere = elsewhere(own)
                if not served_elsewhere:
                    self._queue.append(own)
                    self._leader = self._leader or own
            if not served_elsewhere:
                self._wait_or_work(own, work)
        finally:
            # This loop makes no call outside of the `try`, because a signal handler may raise anything at
            # each call.
            while True:
                try:
                    self._leave(own, unfinished)
                    self._inside.discard(thread)
                    break
                except BaseException as error:
                    interruption, interrupts = error, interrupts + 1
                    if interrupts == INTERRUPTS_MAX:
                        raise
        if interruption is not None:
            raise interruption

    def _wait_or_work(self, own: W, work: Callable[[Sequence[W]], None]) -> None:
        if self._leader is not own:
            self._wait(own.woken, None)
        if self._leader is own:
            with self.lock:
                own.group, self._queue = self._queue, []
            work(own.group)

    def pass_on(self, own: W) -> None:
        """Give the turn to the next request, and continue with the own group. May be cut off, and run again."""
        with self.lock:
            self._queue = [request for request in self._queue if request.done is None and request is not own]
            if self._leader is own:
                self._leader = self._queue[0] if self._queue else None
            if self._leader is not None and self._leader is not own:
                self._leader.woken.set()

    def _leave(self, own: W, unfinished: Callable[[W], Any]) -> None:
        """Hand over the turn. May be cut off, and run again."""
        for request in own.group:
            if request.done is None and (outcome := unfinished(request)) is not None:
                request.done = outcome  # otherwise another thread may have set its outcome
            request.woken.set()
        self.pass_on(own)
        own.group = ()


_all_turns: weakref.WeakSet[ThreadTurns[Any]] = weakref.WeakSet()


def _forget_all() -> None:
    """Forget all threads that work or wait, because a forked child has none of them."""
    _pool.forget()
    for turns in list(_all_turns):
        turns._forget()


os.register_at_fork(after_in_child=_forget_all)
