"""Which versions saved cuts keep: what expiry and vacuum ask before they delete for good.

A log's place shows which namespaces may have cuts of it: those whose folders it is in, and the root. Names and moves
are of no matter, so a client that may read these folders, and no other, finds all cuts that count. It must not know
what is deleted.
"""

from __future__ import annotations

from collections.abc import Collection

from lakelog.catalog.core.ddl.saved_cuts import versions_of
from lakelog.catalog.core.logs import NameTree
from lakelog.log.errors import NotFound
from lakelog.log.participants import is_url

_NAMESPACE = "n-"
"""What the name of a namespace's folder begins with."""


class NeededVersions:
    """The oldest version of each log that a saved cut needs. Reads the cuts of a namespace once, on first use.

    With `settled`, as is due after a commit that says what goes, no cut of a namespace is being saved when they are
    read. Costs for each namespace one GET, and one for each of its cuts.
    """

    def __init__(self, tree: NameTree, *, settled: bool = False) -> None:
        self._logs = tree.logs
        self._settled = settled
        self._known: dict[str, dict[str, int]] = {}

    def get(self, location: str, *, without: Collection[str] = ()) -> int | None:
        """Return the oldest version that is needed of the log at a location, None where no cut has it.

        Cuts of the namespaces `without`, by location, do not count: they go together with the log.
        """
        versions = [
            needed[location]
            for holder in holders_of(location)
            if holder not in without and location in (needed := self._needed_by(holder))
        ]
        return min(versions, default=None)

    def _needed_by(self, holder: str) -> dict[str, int]:
        if holder not in self._known:
            self._known[holder] = self._read(holder)
        return self._known[holder]

    def _read(self, holder: str) -> dict[str, int]:
        tracked = self._logs.namespace(holder)
        try:
            view = tracked.settled() if self._settled else tracked.current()
        except NotFound:
            return {}  # the root of an empty warehouse, or a folder in which a namespace has tables and not its log
        needed: dict[str, int] = {}
        # What was dropped can be restored, with its cuts; what was purged cannot.
        for name, cut in {} if view.purged else view.state.cuts.items():
            try:
                versions = versions_of(tracked, name, cut)
            except NotFound:
                return self._read(holder)  # dropped after the names were read
            for location, version in versions.items():
                needed[location] = min(version, needed.get(location, version))
        return needed


def holders_of(location: str) -> list[str]:
    """Return the locations of the namespaces that may have saved cuts of a log, if they exist; the root first."""
    parts = [] if is_url(location) else location.split("/")
    return ["", *("/".join(parts[: at + 1]) for at, part in enumerate(parts) if part.startswith(_NAMESPACE))]
