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
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(one.member))
    waiting.start()
    other.go_on.set()
    assert (other.member, other.member, other.computed) == (1, 1, 1)
    one.go_on.set()
    waiting.join()
    assert found == [1]
