"""The check that each change happened once: what proposals, retries and combined versions could break. Pure."""

from collections import deque
from collections.abc import Iterator

from lakelog.log.format import WINDOW, Commit

REMEMBERED = 4 * WINDOW
"""Versions whose ids are kept. A proposal ends with its window, and a retry comes soon."""


class Ids:
    """The ids of the changes of the last versions, one of which after the other is passed."""

    def __init__(self) -> None:
        self._where: dict[str, tuple[int, bool]] = {}
        self._versions: deque[tuple[int, list[str]]] = deque()

    def passed(self, commit: Commit) -> Iterator[str]:
        """Take the next version that has an effect; yield what is wrong about its ids."""
        while self._versions and self._versions[0][0] <= commit.version - REMEMBERED:
            for id in self._versions.popleft()[1]:
                del self._where[id]
        decided = [(each.commit_id, each.refused is None) for each in commit.changes]
        new: list[str] = []
        for id, applies in decided or [(commit.commit_id, True)]:
            before = self._where.get(id)
            if before is None:
                self._where[id] = commit.version, applies
                new.append(id)
            else:
                yield f"{_does(applies)} change {id}, which version {before[0]} {_does(before[1])} already"
        self._versions.append((commit.version, new))


def _does(applies: bool) -> str:
    return "applies" if applies else "refuses"
