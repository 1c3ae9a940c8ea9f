"""Members that are computed once: no object waits for another."""

from __future__ import annotations

import threading

from tests.patience import PATIENCE_S

from lakelog.log.once import once


class Slow:
    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.computed = 0

    @once
    def member(self) -> int:
        assert self.go_on.wait(PATIENCE_S), "another object of the class holds this one up"
        self.computed += 1
        return self.computed


def test_an_object_that_waits_holds_up_no_other() -> None:
    one, other = Slow(), Slow()
    numbers: list[int] = []
    waiting_thread = threading.Thread(target=lambda: numbers.append(one.member))
    waiting_thread.start()
    other.go_on.set()
    assert (other.member, other.member, other.computed) == (1, 1, 1)
    one.go_on.set()
    waiting_thread.join()
    assert numbers == [1]
