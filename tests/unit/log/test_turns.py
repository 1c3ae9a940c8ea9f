"""Threads that let one of them work for all: none is left waiting, whatever interrupts another, and wherever."""

from __future__ import annotations

import dis
import os
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from tests.patience import PATIENCE_S

from lakelog.log.parallel import ThreadRequest, ThreadTurns

Work = Callable[[Sequence[ThreadRequest]], None]


def new_turns() -> ThreadTurns[ThreadRequest]:
    return ThreadTurns(lambda event, timeout_s: event.wait(timeout_s))


def start(work: Callable[[], object], *, traced: Callable[..., Any] | None = None) -> threading.Thread:
    def run() -> None:
        sys.settrace(traced)
        try:
            work()
        except (KeyboardInterrupt, ValueError):
            pass
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def wait_for(turns: ThreadTurns[ThreadRequest], count: int) -> None:
    while turns.waiting < count:
        threading.Event().wait(0.0005)


_CALLS = {
    code: {
        after.offset: None
        for instruction, after in pairwise(dis.get_instructions(code))
        if instruction.opname.startswith(("CALL", "JUMP_BACKWARD"))
    }
    for code in (ThreadTurns.take.__code__, ThreadTurns.pass_on.__code__, ThreadTurns._leave.__code__)
}
"""Where Python runs handlers of signals in a function, besides its start: after calls, and in loops."""


def interrupted_at(number: int, error: type[BaseException], reached: list[int]) -> Callable[..., Any]:
    """Return a trace function that raises where a handler of a signal can, at the place with that number."""
    remaining_numbers = [number]

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        places = _CALLS.get(frame.f_code)
        if places is None:
            return None
        frame.f_trace_opcodes = True
        if event == "call" or (event == "opcode" and frame.f_lasti in places):
            remaining_numbers[0] -= 1
            if remaining_numbers[0] == -1:
                reached.append(frame.f_lineno)
                raise error
        return trace

    return trace


def test_an_outcome_from_elsewhere_is_kept_though_it_comes_as_the_turn_ends() -> None:
    own = ThreadRequest()

    def unfinished(each: ThreadRequest) -> None:
        each.done = "elsewhere"

    new_turns().take(own, lambda group: None, unfinished)
    assert own.done == "elsewhere"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("role", ["leader", "waiter"])
def test_an_interrupt_anywhere_leaves_no_thread_waiting(role: str, error: type[BaseException]) -> None:
    for number in range(200):
        reached_numbers = interrupt_one(role, interrupted_at, number, error)
        if not reached_numbers:
            return
    raise AssertionError("more places than expected")


def interrupt_one(
    role: str, tracer: Callable[..., Any], number: int, error: type[BaseException]
) -> list[int]:
    """Have one thread work for four, and interrupt it or one that waits. Return in which line, if in any."""
    reached_numbers: list[int] = []
    turns, works, all_wait = new_turns(), threading.Event(), threading.Event()

    def work(group: Sequence[ThreadRequest]) -> None:
        works.set()
        assert all_wait.wait(PATIENCE_S)
        for request in group:
            request.done = "done"

    owns, threads = [ThreadRequest() for _ in range(4)], list[threading.Thread]()

    def begin(own: ThreadRequest, is_spoilt: bool) -> None:
        number_before = turns.waiting
        traced = tracer(number, error, reached_numbers) if is_spoilt else None
        threads.append(start(lambda: turns.take(own, work, lambda each: "unfinished"), traced=traced))
        while threads[-1].is_alive() and not (
            works.is_set() if own is owns[0] else turns.waiting > number_before
        ):
            threading.Event().wait(0.0005)
            if own is not owns[0] and turns._leader is own:
                break  # it leads, where the first one was interrupted before it did

    for i, own in enumerate(owns):
        begin(own, i == (0 if role == "leader" else 1))
    all_wait.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"left waiting: interrupted in line {reached_numbers}"
    assert turns.waiting == 0 and turns._leader is None and not turns._inside
    assert all(own.done in ("done", "unfinished") for own in owns[2:])
    return reached_numbers


def test_a_handler_of_a_signal_passes_on_where_its_thread_has_the_lock() -> None:
    turns = new_turns()
    own, other_requests = ThreadRequest(), ThreadRequest()

    def handler(group: Sequence[ThreadRequest]) -> None:
        turns.pass_on(group[0])
        group[0].done = "handled"

    def work(group: Sequence[ThreadRequest]) -> None:
        with turns.lock:
            turns.take(other_requests, handler, lambda each: None)
        own.done = "done"

    thread = start(lambda: turns.take(own, work, lambda each: None))
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert (own.done, other_requests.done) == ("done", "handled")


def test_a_forked_child_has_a_lock_of_its_own() -> None:
    turns = new_turns()
    holds, goes_on = threading.Event(), threading.Event()

    def hold() -> None:
        with turns.lock:
            holds.set()
            goes_on.wait(PATIENCE_S)

    thread = start(hold)
    assert holds.wait(PATIENCE_S)
    child = os.fork()
    if child == 0:
        own = ThreadRequest()
        turns.take(own, lambda group: setattr(own, "done", 1), lambda each: None)
        os._exit(0 if own.done == 1 else 1)
    goes_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join(PATIENCE_S)
