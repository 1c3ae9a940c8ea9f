"""Work side by side: the intents of one transaction go to their logs at the same time, many objects are read, and
threads that want the same at once let one of them do it for all.
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

from lakelog.log.costs import Threads

THREADS_MAX = 16
POOL_THREADS_MAX = 256
INTERRUPTS_MAX = 100
BATCH = 32
"""Handing one item to a thread costs more than reading a footer of a local file does."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Handed:
    """A piece of work that any thread may do, with the context of the one that hands it over."""

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
    """Threads that stay: to start one takes longer than most of what it would do. A forked child has none of them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.threads = ThreadPoolExecutor(POOL_THREADS_MAX, "lakelog-parallel")


_pool = _Pool()


def run_in_parallel(works: Sequence[Callable[[], None]]) -> None:
    """Run all of them and return when all have ended.

    The first runs in the calling thread, which then does what no other has begun: so works that have others run side by
    side wait for nothing but work, however few threads there are.
    """
    if len(works) < 2:
        for work in works:
            work()
        return
    handed = [_Handed(work) for work in works[1:]]
    waiting = deque(handed)
    # Where the interpreter ends, threads take nothing any more.
    with suppress(RuntimeError):
        for _ in range(min(len(handed), THREADS_MAX)):
            _pool.threads.submit(_work_off, waiting)
    try:
        works[0]()
    finally:
        _work_off(waiting)
        wait([each.future for each in handed])
    for each in handed:
        each.future.result()


def _work_off(waiting: deque[_Handed]) -> None:
    while waiting:
        with suppress(IndexError):  # another thread has taken the last one
            waiting.popleft().run()


def run_in_thread(name: str, work: Callable[[], None]) -> None:
    """Begin to run `work`, which ends by itself. RuntimeError where the interpreter ends."""
    threading.Thread(target=work, name=f"lakelog-{name}", daemon=False).start()


def in_threads(function: Callable[[Item], Result], items: Sequence[Item], name: str) -> Iterator[Result]:
    """Yield what the function returns for each item, in their order. An error ends it, once the batches that have begun
    have ended. `name` begins the names of the threads."""

    def batch(start: int) -> list[Result]:
        return [function(item) for item in items[start : start + size]]

    # A few items, of which each may take long, are not to wait for each other.
    size = max(1, min(BATCH, len(items) // THREADS_MAX))
    with Threads(THREADS_MAX, name) as executor:
        try:
            for results in executor.map(batch, range(0, len(items), size)):
                yield from results
        finally:
            executor.shutdown(cancel_futures=True)


@dataclass(eq=False)
class Wanted:
    """What a thread wants done, and waits for. `done` is what became of it, None until then."""

    done: Any = None
    woken: threading.Event = field(default_factory=threading.Event)
    group: "Sequence[Any]" = ()
    """Those whose work its thread does; none, unless it has the turn."""


W = TypeVar("W", bound=Wanted)


def _never(own: Any) -> bool:
    return False


class Turns(Generic[W]):
    """Threads that want the same kind of thing. The one that finds no other at work has the turn: it takes what all
    want that wait by then. None waits for company. Whatever interrupts a thread, no other one is left waiting for it.
    """

    def __init__(self, wait: Callable[[threading.Event, float | None], object]) -> None:
        self._wait = wait
        self._forget()
        _all_turns.add(self)

    def _forget(self) -> None:
        # A handler of a signal may want something while its thread has the lock.
        self.lock = threading.RLock()
        self._queue: list[W] = []
        self._leader: W | None = None
        self._inside: set[int] = set()

    @property
    def waiting(self) -> int:
        """How many wait for the one that has the turn."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Whether no thread has the turn."""
        return self._leader is None

    @property
    def is_inside(self) -> bool:
        """Whether the caller is a handler of a signal, which waits in vain for the thread that it has interrupted."""
        return threading.get_ident() in self._inside

    def take(
        self,
        own: W,
        work: Callable[[Sequence[W]], None],
        unfinished: Callable[[W], Any],
        elsewhere: Callable[[W], bool] = _never,
    ) -> None:
        """Return once `own` is done: by another thread, or by `work` on all that wait, `own` among them.

        `unfinished` says what becomes of what `work`, interrupted, has not done; None: that is not known here. What is
        taken off this thread's hands `elsewhere`, which is asked under the `lock`, is returned at once.
        """
        if self.is_inside:
            work([own])
            return
        thread = threading.get_ident()
        interrupt: BaseException | None = None
        interrupts = 0
        try:
            self._inside.add(thread)
            with self.lock:
                is_elsewhere = elsewhere(own)
                if not is_elsewhere:
                    self._queue.append(own)
                    self._leader = self._leader or own
            if not is_elsewhere:
                self._wait_or_work(own, work)
        finally:
            # Without a call outside of the `try`: at each, a handler of a signal may raise anything.
            while True:
                try:
                    self._leave(own, unfinished)
                    self._inside.discard(thread)
                    break
                except BaseException as error:
                    interrupt, interrupts = error, interrupts + 1
                    if interrupts == INTERRUPTS_MAX:
                        raise
        if interrupt is not None:
            raise interrupt

    def _wait_or_work(self, own: W, work: Callable[[Sequence[W]], None]) -> None:
        if self._leader is not own:
            self._wait(own.woken, None)
        if self._leader is own:
            with self.lock:
                own.group, self._queue = self._queue, []
            work(own.group)

    def pass_on(self, own: W) -> None:
        """Let the next one have the turn, while this one goes on with its group. May be cut off, and run again."""
        with self.lock:
            self._queue = [each for each in self._queue if each.done is None and each is not own]
            if self._leader is own:
                self._leader = self._queue[0] if self._queue else None
            if self._leader is not None and self._leader is not own:
                self._leader.woken.set()

    def _leave(self, own: W, unfinished: Callable[[W], Any]) -> None:
        """Hand over. May be cut off, and run again."""
        for each in own.group:
            if each.done is None:
                each.done = unfinished(each)
            each.woken.set()
        self.pass_on(own)
        own.group = ()


_all_turns: weakref.WeakSet[Turns[Any]] = weakref.WeakSet()


def _forget_all() -> None:
    """A forked child has none of the threads that are at work, or wait."""
    _pool.forget()
    for each in list(_all_turns):
        each._forget()


os.register_at_fork(after_in_child=_forget_all)
