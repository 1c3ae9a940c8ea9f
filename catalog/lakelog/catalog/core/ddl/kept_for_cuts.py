"""Which versions saved cuts keep.

Expiry and vacuum ask this before they delete for good. A log's place shows which namespaces may have cuts of
it: the root, and the namespaces whose folders contain it. Names and moves do not matter, so a client that may
read only these folders finds all cuts that count. It must not know which files are deleted.
"""

from __future__ import annotations

from collections.abc import Collection

from lakelog.catalog.core.ddl.saved_cuts import versions_of
from lakelog.catalog.core.logs.name_tree import NameTree
from lakelog.log.errors import NotFound
from lakelog.log.participants import is_url

_NAMESPACE = "n-"
"""The prefix of a namespace's folder name."""


class NeededVersions:
    """The oldest version of each log that a saved cut needs.

    Reads the cuts of a namespace once, on first use. With `settled`, no cut of a namespace is being saved
    when they are read. That is due after a commit that says which versions or files go. Costs a GET for each
    namespace and each of its cuts.

    Raises UnsupportedFormat if writers of a namespace need a feature that is unknown here: it may keep versions.
    """

    def __init__(self, tree: NameTree, *, settled: bool = False) -> None:
        self._logs = tree.logs
        self._settled = settled
        self._known: dict[str, dict[str, int]] = {}

    def get(self, location: str, *, without: Collection[str] = ()) -> int | None:
        """Return the oldest version that cuts need of the log at a location; None if no cut has it.

        Cuts of the namespaces `without`, given by location, do not count: they go together with the log.
        """
        versions = [
            oldest[location]
            for holder in holders_of(location)
            if holder not in without and location in (oldest := self._needed_by(holder))
        ]
        return min(versions, default=None)

    def _needed_by(self, holder: str) -> dict[str, int]:
        if holder not in self._known:
            self._known[holder] = self._read(holder)
        return self._known[holder]

    def _read(self, holder: str) -> dict[str, int]:
        namespace_log = self._logs.namespace(holder)
        try:
            view = namespace_log.settled() if self._settled else namespace_log.current()
        except NotFound:
            # the root of an empty warehouse, or a folder that has tables of a namespace without its log
            return {}
        if view.purged:
            return {}  # dropped objects can be restored with their cuts; purged objects cannot
        namespace_log.log.check_writable(view)
        oldest: dict[str, int] = {}
        for name, cut in view.state.cuts.items():
            try:
                versions = versions_of(namespace_log, name, cut)
            except NotFound:
                return self._read(holder)  # dropped after the names were read
            for location, version in versions.items():
                oldest[location] = min(version, oldest.get(location, version))
        return oldest


def holders_of(location: str) -> list[str]:
    """Return the locations of the namespaces that may have saved cuts of a log; the root first.

    Some of them may not exist.
    """
    parts = [] if is_url(location) else location.split("/")
    return ["", *("/".join(parts[: at + 1]) for at, part in enumerate(parts) if part.startswith(_NAMESPACE))]
