"""The odd answers that every store in a network has to understand, as the faulty proxy gives them."""

from __future__ import annotations

from tests.processes.faulty_proxy import Chance

ODD_ANSWERS = [
    ["409"],
    ["500"],
    ["503"],
    ["reset"],
    ["lost-409"],
    ["lost-500"],
    ["lost-503"],
    ["lost-reset"],
    ["500", "reset", "lost-500"],
    ["409"] * 4,
    ["409", "lost-reset"],
    ["late", "late"],
]
"""Each is for the conditional PUTs of one commit, one after another. All of them have to end with one commit."""


class Truncating(Chance):
    """Breaks off the next answers to reads."""

    def __init__(self, left: int) -> None:
        super().__init__(0)
        self.left = left

    def fault(self, command: str, conditional: bool) -> str:
        self.left -= command == "GET"
        return "truncated" if command == "GET" and self.left >= 0 else ""
