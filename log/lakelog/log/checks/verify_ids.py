"""The check that each change happened once, despite proposals, retries and combined versions. Pure."""

from collections import deque
from collections.abc import Iterator

from lakelog.log.format import WINDOW, Commit

REMEMBERED = 4 * WINDOW
"""Versions whose ids are kept. A proposal ends with its window, and a retry comes soon."""


class RecentIds:
    """The ids of the changes of the last versions, which are passed in sequence."""

    def __init__(self) -> None:
        self._where: dict[str, tuple[int, bool]] = {}
        self._versions: deque[tuple[int, list[str]]] = deque()

    def passed(self, commit: Commit) -> Iterator[str]:
        """Take the next version that has an effect; yield the problems of its ids."""
        while self._versions and self._versions[0][0] <= commit.version - REMEMBERED:
            for id in self._versions.popleft()[1]:
                del self._where[id]
        change_ids = [(change.commit_id, change.refused is None) for change in commit.changes]
        new_ids: list[str] = []
        for id, applies in change_ids or [(commit.commit_id, True)]:
            earlier = self._where.get(id)
            if earlier is None:
                self._where[id] = commit.version, applies
                new_ids.append(id)
            else:
                yield f"{_does(applies)} change {id}, which version {earlier[0]} {_does(earlier[1])} already"
        self._versions.append((commit.version, new_ids))


def _does(applies: bool) -> str:
    return "applies" if applies else "refuses"
