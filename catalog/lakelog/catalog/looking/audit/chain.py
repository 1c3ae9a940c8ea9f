"""A log, version by version, with a verified hash chain.

It reads the objects themselves and trusts none of them. An object that is missing, altered, or does not
continue the object before it is reported in its place, and so is the rest. The tombstones of expired versions
are verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from lakelog.log import Commit, FormatError, Log
from lakelog.log.burial import newest_tombstone
from lakelog.log.errors import InvalidInput
from lakelog.log.expiry import last_base
from lakelog.log.format import ABORTED, SettledIntent, Tombstone
from lakelog.log.history import search
from lakelog.log.listing import HOLE_MAX
from lakelog.log.replay import broken_link, hash_before_expiry
from lakelog.log.view import effective

_VERSION = re.compile(r"([0-9]{20})\.json")
_SEARCHED_FROM_VERSIONS = 256
"""Below this number of versions, reading all of them is faster than searching for a time."""

ReadVersion: TypeAlias = Commit | Tombstone | str
"""The object at a version: an entry, or the reason why none can be read, as text."""


@dataclass(frozen=True, slots=True)
class AuditedVersion:
    """A version with its effect. `entry` is None if only the `problem` is known."""

    version: int
    entry: Commit | Tombstone | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LogExtent:
    """The range of a log.

    `anchors` are commit hashes that other objects name. Versions up to `expired` may be tombstones, and
    `buried` is the newest tombstone. `problems` are problems of the other objects.
    """

    head: int
    expired: int
    buried: int
    anchors: dict[int, tuple[str, str]]
    problems: tuple[str, ...] = ()


def extent_of(log: Log[Any]) -> LogExtent:
    """Find the range of a log.

    Makes four GETs and a LIST, which also finds objects beyond a missing version.
    """
    problems: list[str] = []
    anchors: dict[int, tuple[str, str]] = {}
    hint = log.replay.hinted_root()
    if hint is not None:
        anchors[hint.version] = (hint.commit_hash, log.replay.at(log.keys.latest))
    expired_version = buried_version = 0
    try:
        base = last_base(log)
    except FormatError as error:
        problems.append(str(error))
    else:
        if base is not None:
            expired_version = base.root.version
            with suppress(FormatError):  # it is reported in its place
                buried_version = newest_tombstone(log.replay, base)
            anchors[expired_version] = (base.root.commit_hash, log.replay.at(log.keys.base(base.number)))
    anchor = max(anchors, default=0)
    versions = _listed(log, anchor - 1)
    # An anchor can be forged, and so can a key. Neither makes a head that does not exist.
    head = anchor if anchor in versions else 0
    if anchor and not head:
        versions = _listed(log, 0)
    for version in (*versions, *([] if anchor in versions else [anchor])):
        if version - head > HOLE_MAX:
            problems.append(
                f"{log.replay.at(log.keys.commit(version))} is named or there, but no version after {head} is: "
                "either most of the log is lost, or the object does not belong there"
            )
            break
        head = max(head, version)
    return LogExtent(head, expired_version, buried_version, anchors, tuple(problems))


def _listed(log: Log[Any], after: int) -> list[int]:
    """Return the versions after `after` whose keys exist, in their order."""
    keys = log.store.list_after(f"{log.keys.log}/0", log.keys.commit(max(after, 0)))
    return [int(match[1]) for key in keys if (match := _VERSION.fullmatch(key.rpartition("/")[2]))]


def audited_versions(
    log: Log[Any],
    extent: LogExtent,
    *,
    since_us: int | None,
    until_us: int | None,
    newest_first: bool,
    verify: bool,
    batch: int,
) -> Iterator[AuditedVersion]:
    """Yield the versions of a time range, the newest or the oldest first.

    Aborted intents are verified, not yielded. Reads `batch` versions at once, and a version beyond each end
    of the range.
    """
    first, last = 1, extent.head
    if last > _SEARCHED_FROM_VERSIONS:
        first = first if since_us is None else max(1, _last_at(log, extent.head, since_us - 1))
        last = last if until_us is None else _last_at(log, extent.head, until_us)
    chain = _Chain(log, extent, verify)
    for version, entry, next_entry in _with_following(log, first, last, extent.head, newest_first, batch):
        for checked_version in chain.checked(version, entry, next_entry, newest_first):
            if checked_version.entry is not None:
                if since_us is not None and checked_version.entry.time_us < since_us:
                    if newest_first:
                        return
                    continue
                if until_us is not None and checked_version.entry.time_us > until_us:
                    if not newest_first:
                        return
                    continue
            yield checked_version


def goes_on_expired(log: Log[Any], version: int, extent: LogExtent) -> bool:
    """Return whether a version later than an expired `version` has expired too.

    Usually makes a GET, or none.
    """
    for later in range(extent.buried, version, -1):
        entry = _read(log, later, later)[0]
        if isinstance(entry, Tombstone) and entry.outcome != ABORTED:
            return True
    return False


def without_expired(
    log: Log[Any], versions: Iterator[AuditedVersion], extent: LogExtent, newest_first: bool
) -> Iterator[AuditedVersion]:
    """Yield versions without the commits before the newest tombstone.

    They have expired too, and a cleaner will replace them. It may be at work at the same time, and in any
    order.
    """
    newest_buried = extent.buried
    for audited_version in versions:
        if isinstance(audited_version.entry, Tombstone) and audited_version.version > newest_buried:
            newest_buried = (
                audited_version.version if newest_first else max(audited_version.version, _buried_by_now(log))
            )
        if not (isinstance(audited_version.entry, Commit) and audited_version.version <= newest_buried):
            yield audited_version


def _buried_by_now(log: Log[Any]) -> int:
    with suppress(FormatError):  # it is reported in its place
        base = last_base(log)
        return 0 if base is None else newest_tombstone(log.replay, base)
    return 0


def _with_following(
    log: Log[Any], first: int, last: int, head: int, newest_first: bool, batch: int
) -> Iterator[tuple[int, ReadVersion, ReadVersion | None]]:
    """Yield each version with the version after it, None after the head."""
    if newest_first:
        next_entry = _read(log, last + 1, last + 1)[0] if last < head else None
        for end in range(last, first - 1, -batch):
            start = max(first, end - batch + 1)
            for version, entry in reversed(list(enumerate(_read(log, start, end), start))):
                yield version, entry, next_entry
                next_entry = entry
        return
    previous_entry: ReadVersion | None = None
    until = min(last + 1, head)
    for start in range(first, until + 1, batch):
        for version, entry in enumerate(_read(log, start, min(start + batch - 1, until)), start):
            if previous_entry is not None:
                yield version - 1, previous_entry, entry
            previous_entry = entry
    if previous_entry is not None and until == last:
        yield last, previous_entry, None


def _read(log: Log[Any], first: int, last: int) -> list[ReadVersion]:
    return [
        _decoded(log, version, data)
        for version, data in enumerate(log.replay.get_versions(range(first, last + 1)), first)
    ]


def _decoded(log: Log[Any], version: int, data: bytes | None) -> ReadVersion:
    if data is None:
        return f"{log.replay.at(log.keys.commit(version))} is missing"
    try:
        return log.replay.entry(version, data)
    except FormatError as error:
        return str(error)


class _Chain:
    """Verifies the versions of a log: each on its own, and that it continues the version before it."""

    def __init__(self, log: Log[Any], extent: LogExtent, verify: bool) -> None:
        self.log = log
        self.anchors = extent.anchors
        self.expired = extent.expired
        self.verify = verify

    def checked(
        self, version: int, this: ReadVersion, next_read: ReadVersion | None, newest_first: bool
    ) -> list[AuditedVersion]:
        """Return the entries for a version and for its link with the `next_read` version, in the requested
        order."""
        entries: list[AuditedVersion] = []
        if (
            self.verify
            and not isinstance(this, str)
            and next_read is not None
            and not isinstance(next_read, str)
        ):
            link = self._broken_link(this, next_read)
            if link is not None:
                entries.append(AuditedVersion(version + 1, problem=link))
        if isinstance(this, str):
            entries.append(AuditedVersion(version, problem=this))
        else:
            entries += self._of_entry(this, next_read)
        return entries if newest_first else entries[::-1]

    def _of_entry(self, entry: Commit | Tombstone, next_read: ReadVersion | None) -> list[AuditedVersion]:
        entries = (
            [AuditedVersion(entry.version, problem=problem) for problem in self._misfits(entry)]
            if self.verify
            else []
        )
        settlement: SettledIntent | None = None
        if isinstance(entry, Commit) and entry.intent is not None:
            try:
                settlement = self._settled(entry, next_read)
            except (FormatError, InvalidInput) as error:
                return [*entries, AuditedVersion(entry.version, problem=str(error))]
            if settlement is None:
                return entries
        effect = effective(entry, settlement)
        return entries if effect is None else [*entries, AuditedVersion(entry.version, entry=effect)]

    def _settled(self, intent: Commit, next_read: ReadVersion | None) -> SettledIntent | None:
        """Return the outcome of an intent.

        The commit after it says so, else the decision. None while undecided.
        """
        if isinstance(next_read, Commit) and next_read.settles is not None:
            return next_read.settles
        settlement = self.log.replay.decided(intent)
        if settlement is None and next_read is not None:
            raise FormatError(
                f"{self._at(intent.version)} is part of a transaction whose decision is missing, although a later "
                "version exists"
            )
        return settlement

    def _misfits(self, entry: Commit | Tombstone) -> Iterator[str]:
        where = self._at(entry.version)
        if entry.version == 1 and entry.prev:
            yield f"{where} is the first version, but continues another one"
        if isinstance(entry, Tombstone) and not self._may_be_expired(entry.version):
            yield f"{where} is a tombstone, but no base says that version {entry.version} expired: it was removed"
        anchor = self.anchors.get(entry.version)
        if anchor is not None and anchor[0] != hash_before_expiry(entry):
            yield f"{where} is not the commit that {anchor[1]} was made of: one of the two was replaced"

    def _may_be_expired(self, version: int) -> bool:
        if version > self.expired:
            # It may have expired after the range of the log was read.
            try:
                base = last_base(self.log)
            except FormatError:
                return False
            self.expired = 0 if base is None else base.root.version
        return version <= self.expired

    def _broken_link(self, commit_before: Commit | Tombstone, entry: Commit | Tombstone) -> str | None:
        why = broken_link(commit_before, entry)
        if why is None:
            return None
        return (
            f"the hash chain breaks between versions {commit_before.version} and {entry.version}: "
            f"{self._at(entry.version)} {why}; one of them was replaced"
        )

    def _at(self, version: int) -> str:
        return self.log.replay.at(self.log.keys.commit(version))


def _last_at(log: Log[Any], head: int, time_us: int) -> int:
    """Return the newest version at or before `time_us`, or an older version.

    0 if there is none. An unreadable version has the time of the version before it.
    """

    def time_at(version: int, data: bytes | None, low: int) -> int | None:
        entry = _decoded(log, version, data)
        while version > low:
            if isinstance(entry, Tombstone) and entry.outcome != ABORTED:
                return entry.time_us
            if isinstance(entry, Commit):
                if entry.intent is None:
                    return entry.time_us
                next_entry = _read(log, version + 1, version + 1)[0]
                settlement = next_entry.settles if isinstance(next_entry, Commit) else None
                if settlement is not None and settlement.outcome != ABORTED:
                    return settlement.time_us
            version -= 1
            entry = _read(log, version, version)[0]
        return None

    return search(log.replay, head + 1, time_us, time_at)
