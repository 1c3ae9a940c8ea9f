"""The keys of a log's objects, relative to its root; log/README.md lists them.

Names in keys never come from users. Names that were read from stored objects have the forms of `grammar`.
"""

import re

from lakelog.log.errors import InvalidInput
from lakelog.log.format import WINDOW
from lakelog.log.grammar import check_id, check_key, is_id

VERSION_DIGITS = 20
_VERSIONED = re.compile(r"[0-9]{20}-")
_PROPOSAL = re.compile(r"[0-9]{20}/([0-9]{20})-([^/]+)\.json")
_WISH = re.compile(r"[0-9]{20}/[0-9]{20}-[^/]+\.wish")
_INBOX_FOLDER = re.compile(r"([0-9]{20})/")
_SNAPSHOT = re.compile(r"([0-9]{20})-[0-9a-f]{16}\.json")


def number(value: int) -> str:
    """Return a version in the fixed width of keys, so that the order of keys is the order of versions."""
    if not 0 <= value < 10**VERSION_DIGITS:
        raise InvalidInput(f"{value} is not a version: a version has at most {VERSION_DIGITS} digits")
    return f"{value:020d}"


class LogKeys:
    """The keys of a log. `prefix` is the log's root in the store; "" is the store's root."""

    def __init__(self, prefix: str) -> None:
        if prefix:
            check_key(prefix)
        self.folder = prefix
        self.log = f"{prefix}/_log" if prefix else "_log"
        self.latest = f"{self.log}/latest.json"
        self.snapshots = f"{self.log}/snapshots/"
        self.manifests = f"{self.log}/manifests/"
        self.inbox = f"{self.log}/inbox/"
        self.lost = f"{self.log}/_lost/"
        self._head = f"{self.log}/"

    def commit(self, version: int) -> str:
        return f"{self._head}{version:020d}.json"

    def base(self, base_number: int) -> str:
        return f"{self.log}/bases/{number(base_number)}.json"

    def snapshot(self, version: int, commit_hash: str) -> str:
        return f"{self.snapshots}{number(version)}-{commit_hash[:16]}.json"

    def snapshot_version(self, key: str) -> int | None:
        """Return the version in a snapshot's key, None for foreign objects."""
        match = _SNAPSHOT.fullmatch(key.removeprefix(self.snapshots))
        return None if match is None else int(match[1])

    def inbox_folder(self, seen: int) -> str:
        """Return the folder of the proposals whose authors saw `seen`, or a version near it."""
        return f"{self.inbox}{number(seen // WINDOW)}/"

    def proposal(self, seen: int, commit_id: str) -> str:
        check_id(commit_id, "a commit id")
        return f"{self.inbox_folder(seen)}{number(seen)}-{commit_id}.json"

    def proposal_of(self, key: str) -> tuple[int, str] | None:
        """Return the version and commit id in a listed proposal's key, None for foreign objects."""
        match = _PROPOSAL.fullmatch(key.removeprefix(self.inbox))
        if match is None or not is_id(match[2]) or self.proposal(int(match[1]), match[2]) != key:
            return None
        return int(match[1]), match[2]

    def wish(self, seen: int, commit_id: str) -> str:
        """Return the key at which a client that lost races after `seen` says that it would propose."""
        check_id(commit_id, "a commit id")
        return f"{self.inbox_folder(seen)}{number(seen)}-{commit_id}.wish"

    def is_wish(self, key: str) -> bool:
        return _WISH.fullmatch(key.removeprefix(self.inbox)) is not None

    def inbox_until(self, key: str) -> int | None:
        """Return the last version in which an object of the inbox may be applied.

        The folder decides if the key is not a proposal's. None for keys outside of the inbox's folders.
        """
        proposal = self.proposal_of(key)
        if proposal is not None:
            return proposal[0] + WINDOW
        match = _INBOX_FOLDER.match(key.removeprefix(self.inbox))
        return None if match is None else (int(match[1]) + 2) * WINDOW - 1

    def manifest(self, name: str) -> str:
        return f"{self.manifests}{name}"

    def sidecar(self, name: str) -> str:
        return f"{self.log}/sidecars/{name}"


def is_versioned(name: str) -> bool:
    """Return whether a name begins with a version and a dash."""
    return _VERSIONED.match(name) is not None


def blob_version(name: str) -> int:
    """Return the version at the start of a manifest's or sidecar's name. Raises InvalidInput if there is none."""
    if not is_versioned(name):
        raise InvalidInput(f"{name[:80]!r} does not begin with a version: a name of a dump does")
    return int(name[:VERSION_DIGITS])
