"""One log, version by version, with its hash chain verified on the way.

It reads the objects themselves and trusts none of them: an object that is missing, altered, or does not continue the
one before it is reported in its place, and so is the rest. Of expired versions the tombstones are verified.
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
from lakelog.log.format import ABORTED, Settled, Tombstone
from lakelog.log.listing import HOLE_MAX
from lakelog.log.replay import hash_before_expiry
from lakelog.log.view import effective

_VERSION = re.compile(r"([0-9]{20})\.json")
_SEARCHED_FROM_VERSIONS = 256
"""Below this number of versions, reading all of them is faster than searching for those of a time."""

Read: TypeAlias = Commit | Tombstone | str
"""The object at a version: an entry, or as text why none can be read."""


@dataclass(frozen=True, slots=True)
class AuditedVersion:
    """One version, with its effect. `entry` is None where only the `problem` is known."""

    version: int
    entry: Commit | Tombstone | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of a log. `anchors` are hashes of commits that other objects name; up to `expired` versions may be
    tombstones, and `buried` is the newest that is one. `problems` are those of the other objects."""

    head: int
    expired: int
    buried: int
    anchors: dict[int, tuple[str, str]]
    problems: tuple[str, ...] = ()


def extent_of(log: Log[Any]) -> Extent:
    """Find the range of a log. Costs four GETs and a LIST, which also finds objects beyond a missing version."""
    problems: list[str] = []
    anchors: dict[int, tuple[str, str]] = {}
    hint = log.replay.hinted_root()
    if hint is not None:
        anchors[hint.version] = (hint.commit_hash, log.replay.at(log.keys.latest))
    expired = buried = 0
    try:
        base = last_base(log)
    except FormatError as error:
        problems.append(str(error))
    else:
        if base is not None:
            expired = base.root.version
            with suppress(FormatError):  # it is reported in its place
                buried = newest_tombstone(log.replay, base)
            anchors[expired] = (base.root.commit_hash, log.replay.at(log.keys.base(base.number)))
    anchor = max(anchors, default=0)
    listed = _listed(log, anchor - 1)
    # An anchor can be forged, and so can a key: neither makes a head that is not there.
    head = anchor if anchor in listed else 0
    if anchor and not head:
        listed = _listed(log, 0)
    for version in (*listed, *([] if anchor in listed else [anchor])):
        if version - head > HOLE_MAX:
            problems.append(
                f"{log.replay.at(log.keys.commit(version))} is named or there, but no version after {head} is: "
                "either most of the log is lost, or the object does not belong there"
            )
            break
        head = max(head, version)
    return Extent(head, expired, buried, anchors, tuple(problems))


def _listed(log: Log[Any], after: int) -> list[int]:
    """Return the versions after one whose keys are there, in their order."""
    found = log.store.list_after(f"{log.keys.log}/0", log.keys.commit(max(after, 0)))
    return [int(match[1]) for key in found if (match := _VERSION.fullmatch(key.rpartition("/")[2]))]


def audited_versions(
    log: Log[Any],
    extent: Extent,
    *,
    since_us: int | None,
    until_us: int | None,
    newest_first: bool,
    verify: bool,
    batch: int,
) -> Iterator[AuditedVersion]:
    """Yield the versions of a time range, the newest or the oldest first. Aborted intents are verified, not yielded.

    Reads `batch` versions at once, and one beyond each end of the range.
    """
    first, last = 1, extent.head
    if last > _SEARCHED_FROM_VERSIONS:
        first = first if since_us is None else max(1, _last_at(log, extent.head, since_us - 1))
        last = last if until_us is None else _last_at(log, extent.head, until_us)
    chain = _Chain(log, extent, verify)
    for version, this, following in _with_following(log, first, last, extent.head, newest_first, batch):
        for each in chain.checked(version, this, following, newest_first):
            if each.entry is not None:
                if since_us is not None and each.entry.time_us < since_us:
                    if newest_first:
                        return
                    continue
                if until_us is not None and each.entry.time_us > until_us:
                    if not newest_first:
                        return
                    continue
            yield each


def goes_on_expired(log: Log[Any], version: int, extent: Extent) -> bool:
    """Return whether a version later than an expired `version` has expired too. Usually costs one GET, or none."""
    for later in range(extent.buried, version, -1):
        this = _read(log, later, later)[0]
        if isinstance(this, Tombstone) and this.outcome != ABORTED:
            return True
    return False


def without_expired(
    log: Log[Any], versions: Iterator[AuditedVersion], extent: Extent, newest_first: bool
) -> Iterator[AuditedVersion]:
    """Yield versions without the commits before the newest tombstone, which a cleaner has not come to yet: they have
    expired too. It may be at work meanwhile, and in any order."""
    buried = extent.buried
    for each in versions:
        if isinstance(each.entry, Tombstone) and each.version > buried:
            buried = each.version if newest_first else max(each.version, _buried_by_now(log))
        if not (isinstance(each.entry, Commit) and each.version <= buried):
            yield each


def _buried_by_now(log: Log[Any]) -> int:
    with suppress(FormatError):  # it is reported in its place
        base = last_base(log)
        return 0 if base is None else newest_tombstone(log.replay, base)
    return 0


def _with_following(
    log: Log[Any], first: int, last: int, head: int, newest_first: bool, batch: int
) -> Iterator[tuple[int, Read, Read | None]]:
    """Yield each version with the one after it, None after the head."""
    if newest_first:
        following = _read(log, last + 1, last + 1)[0] if last < head else None
        for end in range(last, first - 1, -batch):
            start = max(first, end - batch + 1)
            for version, this in reversed(list(enumerate(_read(log, start, end), start))):
                yield version, this, following
                following = this
        return
    before: Read | None = None
    until = min(last + 1, head)
    for start in range(first, until + 1, batch):
        for version, this in enumerate(_read(log, start, min(start + batch - 1, until)), start):
            if before is not None:
                yield version - 1, before, this
            before = this
    if before is not None and until == last:
        yield last, before, None


def _read(log: Log[Any], first: int, last: int) -> list[Read]:
    return [
        _decoded(log, version, data)
        for version, data in enumerate(log.replay.get_versions(range(first, last + 1)), first)
    ]


def _decoded(log: Log[Any], version: int, data: bytes | None) -> Read:
    if data is None:
        return f"{log.replay.at(log.keys.commit(version))} is missing"
    try:
        return log.replay.entry(version, data)
    except FormatError as error:
        return str(error)


class _Chain:
    """Verifies the versions of one log: each by itself, and that it continues the one before it."""

    def __init__(self, log: Log[Any], extent: Extent, verify: bool) -> None:
        self.log = log
        self.anchors = extent.anchors
        self.expired = extent.expired
        self.verify = verify

    def checked(
        self, version: int, this: Read, following: Read | None, newest_first: bool
    ) -> list[AuditedVersion]:
        """Return the entries for one version and for its link with the `following` one, in the requested order."""
        found: list[AuditedVersion] = []
        if (
            self.verify
            and not isinstance(this, str)
            and following is not None
            and not isinstance(following, str)
        ):
            link = self._broken_link(this, following)
            if link is not None:
                found.append(AuditedVersion(version + 1, problem=link))
        if isinstance(this, str):
            found.append(AuditedVersion(version, problem=this))
        else:
            found += self._of_entry(this, following)
        return found if newest_first else found[::-1]

    def _of_entry(self, entry: Commit | Tombstone, following: Read | None) -> list[AuditedVersion]:
        found = (
            [AuditedVersion(entry.version, problem=problem) for problem in self._misfits(entry)]
            if self.verify
            else []
        )
        settled: Settled | None = None
        if isinstance(entry, Commit) and entry.intent is not None:
            try:
                settled = self._settled(entry, following)
            except (FormatError, InvalidInput) as error:
                return [*found, AuditedVersion(entry.version, problem=str(error))]
            if settled is None:
                return found
        effect = effective(entry, settled)
        return found if effect is None else [*found, AuditedVersion(entry.version, entry=effect)]

    def _settled(self, intent: Commit, following: Read | None) -> Settled | None:
        """Return what became of an intent: the commit after it says so, else the decision; None while undecided."""
        if isinstance(following, Commit) and following.settles is not None:
            return following.settles
        settled = self.log.replay.decided(intent)
        if settled is None and following is not None:
            raise FormatError(
                f"{self._at(intent.version)} is part of a transaction whose decision is missing, although a later "
                "version exists"
            )
        return settled

    def _misfits(self, entry: Commit | Tombstone) -> Iterator[str]:
        where = self._at(entry.version)
        if entry.version == 1 and entry.prev:
            yield f"{where} is the first version, but continues another one"
        if isinstance(entry, Tombstone) and not self._may_be_expired(entry.version):
            yield f"{where} is a tombstone, but no base says that version {entry.version} expired: it was removed"
        anchored = self.anchors.get(entry.version)
        if anchored is not None and anchored[0] != hash_before_expiry(entry):
            yield f"{where} is not the commit that {anchored[1]} was made of: one of the two was replaced"

    def _may_be_expired(self, version: int) -> bool:
        if version > self.expired:
            # It may have expired since the range of the log was found.
            try:
                base = last_base(self.log)
            except FormatError:
                return False
            self.expired = 0 if base is None else base.root.version
        return version <= self.expired

    def _broken_link(self, before: Commit | Tombstone, entry: Commit | Tombstone) -> str | None:
        if entry.prev != hash_before_expiry(before):
            return (
                f"the hash chain breaks between versions {before.version} and {entry.version}: "
                f"{self._at(entry.version)} continues another commit than the one before it; one of them was replaced"
            )
        if (entry.log_id != before.log_id) != entry.reopens:
            return f"{self._at(entry.version)} belongs to log {entry.log_id}, not to {before.log_id}"
        return None

    def _at(self, version: int) -> str:
        return self.log.replay.at(self.log.keys.commit(version))


def _last_at(log: Log[Any], head: int, time_us: int) -> int:
    """Return the newest version at or before `time_us`, or an older one; 0 for none."""
    low, high = 0, head + 1
    while high - low > 1:
        middle = (low + high) // 2
        version, read_us = _time_at(log, middle, low)
        if read_us is not None and read_us > time_us:
            high = version
        else:
            low = middle
    return low


def _time_at(log: Log[Any], version: int, low: int) -> tuple[int, int | None]:
    """Return the newest version from `low` to `version` that has an effect, and its time; None where there is none."""
    while version > low:
        this = _read(log, version, version)[0]
        if isinstance(this, Tombstone) and this.outcome != ABORTED:
            return version, this.time_us
        if isinstance(this, Commit):
            if this.intent is None:
                return version, this.time_us
            following = _read(log, version + 1, version + 1)[0]
            settled = following.settles if isinstance(following, Commit) else None
            if settled is not None and settled.outcome != ABORTED:
                return version, settled.time_us
        version -= 1
    return version, None
