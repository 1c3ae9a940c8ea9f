"""The part of a log's check for derived objects: bases, snapshots, the hint, manifests.

A base is derived too. But once the commits before it are tombstones, it is the only truth about them. If
other derived objects are lost, that costs only time; a client that can replay the log can write them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic

from lakelog.log.checks.findings import Findings
from lakelog.log.checks.standing import BrokenState, CheckStanding, LogJudge, StateOrigin
from lakelog.log.errors import FormatError
from lakelog.log.format import (
    COMMITTED,
    Commit,
    LogBase,
    SettledIntent,
    SnapshotRoot,
    Tombstone,
    decode_root,
    hash_of,
)
from lakelog.log.grammar import is_blob, shortened
from lakelog.log.keys import blob_version
from lakelog.log.listing import LogListing
from lakelog.log.log import Log
from lakelog.log.replay import given_up_by, hash_before_expiry
from lakelog.log.view import UNREADABLE, LogView, S, view_of

OBJECTS_AT_ONCE = 64
MANIFESTS_AT_ONCE = 8

RESTORE = "restore this object from a backup"
REWRITE = "lakelog fsck --repair writes it anew from the log"
WHICH_IS_RIGHT = (
    "find out which of both is right, and restore the other from a backup: a repair takes no side"
)


class DerivedObjects(Generic[S]):
    """The derived objects of a log, read and checked on their own; `compare` checks them against a replay."""

    def __init__(
        self, log: Log[S], judge: LogJudge[S], findings: Findings, listing: LogListing, hint: bytes | None
    ) -> None:
        self.log = log
        self.judge = judge
        self.findings = findings
        self.listing = listing
        self.last_base: LogBase | None = None
        self.bases: dict[int, LogBase] = {}
        self.roots: dict[int, list[str]] = {}
        """Keys of the sound snapshots and hint, by version."""
        self.broken: dict[str, BrokenState] = {}
        """The broken snapshots and hint, by key."""
        self._hint = hint
        self._hinted = ""
        self._bad_manifests: set[str] = set()
        self._used: set[str] = set()

    def at(self, key: str) -> str:
        return self.log.replay.at(key)

    def read(self) -> None:
        """Read bases, hint, snapshots and manifests, and check each on its own."""
        self.read_bases(range(1, max(self.listing.bases, default=0) + 1))
        sums: dict[str, str] = {}
        if self._hint is not None:
            self._take(self.log.keys.latest, self._hint, sums)
        for start in range(0, len(self.listing.snapshots), OBJECTS_AT_ONCE):
            keys = self.listing.snapshots[start : start + OBJECTS_AT_ONCE]
            for key, data in zip(keys, self.log.store.get_many(keys), strict=True):
                if data is not None:  # otherwise expiry has removed it since the listing
                    self._take(key, data, sums)
        truth = self._manifests_of_the_last_base()
        self._check_manifests(sums | truth, truth)

    def _manifests_of_the_last_base(self) -> dict[str, str]:
        if self.last_base is None:
            return {}
        try:
            return dict(self.judge.manifests(self.last_base.root.state))
        except UNREADABLE as error:
            where = self.at(self.log.keys.base(self.last_base.number))
            self.findings.damage(
                "base-disagrees", where, f"its state cannot be read: {shortened(repr(error))}", RESTORE
            )
            self.bases.pop(self.last_base.root.version)
            self.last_base = None
            return {}

    def read_bases(self, numbers: Iterable[int]) -> None:
        """Read more bases, and check each on its own and against the base before it."""
        log, findings = self.log, self.findings
        for number in numbers:
            key = log.keys.base(number)
            data = log.store.get(key)
            if data is None and number > max(self.listing.bases, default=0):
                continue
            if data is None:
                findings.damage(
                    "base-missing",
                    self.at(key),
                    f"base {number} is missing, and a later one is there",
                    RESTORE,
                )
                continue
            try:
                base = log.replay.base(number, data)
            except FormatError as error:
                findings.damage("base-altered", self.at(key), said(error, self.at(key)), RESTORE)
                continue
            findings.count("bases")
            problem = self._wrong_base(base)
            if problem:
                findings.damage("base-disagrees", self.at(key), f"base {number} {problem}", RESTORE)
                continue
            self.bases[base.root.version] = base
            self.last_base = base

    def _wrong_base(self, base: LogBase) -> str | None:
        previous = self.last_base
        if previous is not None and base.root.version <= previous.root.version:
            return f"is at version {base.root.version}, not after version {previous.root.version} of the one before it"
        return None

    def _take(self, key: str, data: bytes, sums: dict[str, str]) -> None:
        """Check a snapshot or the hint on its own."""
        keys = self.log.keys
        self.findings.count("snapshots")
        try:
            root = decode_root(data, self.at(key), self.log.replay.features)
        except FormatError as error:
            self._bad_root(key, data, "altered", said(error, self.at(key)))
            return
        head = self.listing.versions.last
        if key != keys.latest and key != keys.snapshot(root.version, root.commit_hash):
            self._bad_root(
                key,
                data,
                "misplaced",
                f"holds the snapshot of version {root.version}: it was copied or moved",
            )
            return
        if root.version > head:
            self.findings.damage(
                "head-lost",
                self.at(key),
                f"this snapshot is of version {root.version} of log {root.log_id}, but the log ends at {head}: either "
                "the newest commits are lost, or the snapshot was copied from elsewhere",
                f"restore {self.at(keys.commit(root.version))} and those before it from a backup; if this snapshot "
                "does not belong here, delete it",
            )
            return
        try:
            manifest_sums = self.judge.manifests(root.state)
        except UNREADABLE as error:
            self._bad_root(key, data, "altered", f"its state cannot be read: {shortened(repr(error))}")
            return
        self.roots.setdefault(root.version, []).append(key)
        if (
            key == keys.latest and root.uses != ()
        ):  # the hint of a state without manifests can be written alone
            self._hinted = keys.snapshot(root.version, root.commit_hash)
        if not self.is_outdated(root):
            sums.update(manifest_sums)

    def _bad_root(self, key: str, data: bytes, kind: str, what: str) -> None:
        finding_kind = self._kind(key, kind)
        self.broken[key] = BrokenState(
            kind in ("altered", "misplaced"), hash_of(data), f"{finding_kind}: {what}"
        )
        self.findings.repairable(finding_kind, self.at(key), what, REWRITE)

    def _kind(self, key: str, kind: str) -> str:
        return f"hint-{kind}" if key == self.log.keys.latest else f"snapshot-{kind}"

    def is_outdated(self, root: SnapshotRoot) -> bool:
        """Return whether a later base has given up a manifest that the root uses, which may be deleted.

        No reader starts from such a root.
        """
        newer_bases = [base for base in self.bases.values() if base.number > root.base]
        return any(
            root.uses is None or base.root.version > root.version or given_up_by(base, root.uses)
            for base in newer_bases
        )

    def _check_manifests(self, sums: Mapping[str, str], truth: Mapping[str, str]) -> None:
        log, names = self.log, sorted(sums)
        self._used = set(names)
        for start in range(0, len(names), MANIFESTS_AT_ONCE):
            batch = names[start : start + MANIFESTS_AT_ONCE]
            for name, data in zip(
                batch, log.store.get_many([log.keys.manifest(name) for name in batch]), strict=True
            ):
                self.findings.count("manifests")
                if data is not None and hash_of(data) == sums[name]:
                    continue
                self._bad_manifests.add(name)
                where = self.at(log.keys.manifest(name))
                kind = "manifest-missing" if data is None else "manifest-altered"
                problem = (
                    "a manifest is missing"
                    if data is None
                    else "a manifest's content is not what was written there"
                )
                if name in truth:
                    self.findings.damage(kind, where, f"{problem}; the last base needs it", RESTORE)
                else:
                    self.findings.repairable(kind, where, f"{problem}; only snapshots need it", REWRITE)

    def compare(self, entry: Commit | Tombstone, standing: CheckStanding[S]) -> None:
        """Check the derived objects at the version of `entry` against it, and against the state after it if known.

        If that state is unknown or not fully readable, a base, snapshot or hint provides it from here on.
        """
        base = self.bases.get(entry.version)
        if base is not None:
            self._compare_base(base, entry, standing)
        for key in self.roots.get(entry.version, ()):
            data = self.log.store.get(key) if key != self.log.keys.latest else self._hint
            if data is None:
                continue
            root = decode_root(data, self.at(key), self.log.replay.features)
            if not names(root, entry):
                problem = f"names another commit than version {entry.version} is"
                self._bad_root(key, data, "disagrees", problem)
            elif not self.is_outdated(root):
                self._compare_root(key, data, root, standing)

    def _compare_root(self, key: str, data: bytes, root: SnapshotRoot, standing: CheckStanding[S]) -> None:
        is_spoiled = self._is_spoiled(root)
        if is_spoiled:
            why = "names a manifest that is missing or altered"
            self.broken.setdefault(key, BrokenState(False, hash_of(data), why))
        if standing.view is None or (standing.spoiled and not is_spoiled):
            view = self._view_of(root)
            if view is not None:
                standing.take(view, StateOrigin.ROOT, spoiled=is_spoiled)
        elif standing.origin.is_replayed and not standing.spoiled:
            difference = self._difference(root, standing.view)
            if difference is None:
                return
            problem = f"is not the state at version {root.version}: {difference}"
            if standing.origin is StateOrigin.COMMITS:
                self._bad_root(key, data, "differs", problem)
            else:
                # Both are derived from commits that have expired, so nothing shows which of them is right.
                self.findings.damage(self._kind(key, "differs"), self.at(key), problem, WHICH_IS_RIGHT)

    def _is_spoiled(self, root: SnapshotRoot) -> bool:
        return bool(self._bad_manifests) and not self._bad_manifests.isdisjoint(
            self.judge.manifests(root.state)
        )

    def before(self, commit: Commit, standing: CheckStanding[S]) -> None:
        """Take the state before `commit` from a sound snapshot of the version before it, which is broken."""
        for key in self.roots.get(commit.version - 1, ()):
            data = self.log.store.get(key) if key != self.log.keys.latest else self._hint
            root = None if data is None else decode_root(data, self.at(key), self.log.replay.features)
            if root is not None and root.commit_hash == commit.prev and root.log_id == commit.log_id:
                standing.take(self._view_of(root), StateOrigin.ROOT, spoiled=self._is_spoiled(root))
                return
        standing.lose()

    def committed(self, intent: Commit) -> SettledIntent | None:
        """Return the outcome of an intent if a derived object at its version, sound on its own, says committed."""
        base = self.bases.get(intent.version)
        roots = [] if base is None else [base.root]
        for key in self.roots.get(intent.version, ()):
            data = self.log.store.get(key) if key != self.log.keys.latest else self._hint
            if data is not None:
                roots.append(decode_root(data, self.at(key), self.log.replay.features))
        for root in roots:
            if names(root, intent) and root.settles is not None and root.settles.outcome == COMMITTED:
                return root.settles
        return None

    def _compare_base(self, base: LogBase, entry: Commit | Tombstone, standing: CheckStanding[S]) -> None:
        where = self.at(self.log.keys.base(base.number))
        if not names(base.root, entry):
            self.findings.damage(
                "base-disagrees", where, f"names another commit than version {entry.version} is", RESTORE
            )
        elif base is not self.last_base:
            return
        elif standing.view is None:
            standing.take(self._view_of(base.root), StateOrigin.BASE, spoiled=self._is_spoiled(base.root))
            if standing.view is not None and not standing.spoiled:
                self.judge.begins(standing.view.state)
                difference = self._difference(base.root, standing.view)
                if difference is not None:
                    # The state was taken from this base only.
                    self.findings.damage(
                        "base-disagrees", where, f"contradicts itself: {difference}", RESTORE
                    )
        elif isinstance(entry, Commit):
            difference = self._difference(base.root, standing.view)
            if difference is not None:
                self.findings.damage(
                    "base-disagrees", where, f"is not the state replayed: {difference}", RESTORE
                )

    def _view_of(self, root: SnapshotRoot) -> LogView[S] | None:
        try:
            return view_of(root, self.log.projection, self.log.location)
        except UNREADABLE:
            return None

    def _difference(self, root: SnapshotRoot, view: LogView[S]) -> str | None:
        for name in (
            "log_id",
            "time_us",
            "fence",
            "sealed",
            "purged",
            "settles",
            "features",
            "writer_features",
        ):
            if getattr(root, name) != getattr(view, name):
                return f"{name} is {getattr(root, name)!r} there, and {getattr(view, name)!r} in a replay"
        if self._is_spoiled(root):
            return None  # already reported
        stored_view = self._view_of(root)
        if stored_view is None:
            return "its state cannot be read"
        return self.judge.difference(view.state, stored_view.state)

    def finish(self, head: int, standing: CheckStanding[S]) -> None:
        """Check facts that need all versions: unused objects and missing objects."""
        log, findings = self.log, self.findings
        for name in sorted(self.listing.manifests - self._used):
            where = self.at(log.keys.manifest(name))
            if is_blob(name) and blob_version(name) > head:
                findings.damage(
                    "head-lost",
                    where,
                    f"this manifest is of version {blob_version(name)}, but the log ends at version {head}: either the "
                    "newest commits are lost, or the manifest was copied from elsewhere",
                    "restore the newest commits from a backup; if it does not belong here, delete it",
                )
            else:
                findings.note(
                    "manifest-unused",
                    where,
                    "no snapshot in use names this manifest",
                    "leave it to vacuum",
                )
        for version, base in self.bases.items():
            if version > head and log.store.get(log.keys.commit(version)) is None:
                findings.damage(
                    "head-lost",
                    self.at(log.keys.base(base.number)),
                    f"this base is of version {version}, but the log ends at version {head}: the newest are lost",
                    f"restore {self.at(log.keys.commit(version))} and those before it from a backup",
                )
        snapshot_every = log.options.snapshot_every_versions
        last = 0 if self.last_base is None else self.last_base.root.version
        if self._hint is None and snapshot_every and head >= max(snapshot_every, last + snapshot_every):
            self._no_hint(f"there is no hint, though the log has {head} versions: reading it takes long")
        elif self._hint is None and standing.origin is StateOrigin.ROOT and not standing.spoiled:
            self._no_hint(
                "there is no hint, and without one readers cannot go past what is damaged before it"
            )
        has_hint = self._hinted and log.keys.latest not in self.broken
        if has_hint and self._hinted not in self.listing.snapshots:
            version = log.keys.snapshot_version(self._hinted) or 0
            if version > last and log.store.get(self._hinted) is None:
                findings.repairable(
                    "snapshot-missing",
                    self.at(self._hinted),
                    f"the hint is of version {version}, but the snapshot of that version is missing",
                    REWRITE,
                )

    def _no_hint(self, what: str) -> None:
        self.findings.repairable("hint-missing", self.at(self.log.keys.latest), what, REWRITE)


def said(error: Exception, where: str) -> str:
    """Return an error's text about the object at `where`, without the place and the advice, which a finding has."""
    return str(error).removeprefix(f"{where} ").split("; restore")[0] or repr(error)


def names(root: SnapshotRoot, entry: Commit | Tombstone) -> bool:
    """Return whether a root was taken of exactly this commit."""
    return root.log_id == entry.log_id and root.commit_hash == hash_before_expiry(entry)
