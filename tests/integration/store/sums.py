"""The smallest projection there is."""

from __future__ import annotations

from lakelog.log import Commit, NoFeatures, StateDump


class Sum(NoFeatures):
    """A log whose state is the sum of its events."""

    def initial(self) -> int:
        return 0

    def apply(self, state: int, commit: Commit, blobs: object) -> int:
        return state + sum(int(event["n"]) for event in commit.events)

    def dump(self, state: int, version: int, for_base: bool = False) -> StateDump:
        return StateDump(state, {}, ())

    def stored(self, dump: StateDump) -> None:
        return

    def load(self, root: int) -> int:
        return root
