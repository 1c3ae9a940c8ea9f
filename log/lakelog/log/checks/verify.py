"""Checking a log offline: every object by itself, against its neighbours, and derived objects against a replay.

It reads everything once, in batches, and trusts no object. A broken object is reported and skipped, so the
rest is still checked. It changes nothing; `repair` rewrites derived objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic

from lakelog.log.checks import lost
from lakelog.log.checks.findings import Findings
from lakelog.log.checks.standing import BrokenState, CheckStanding, LogJudge, StateOrigin
from lakelog.log.checks.verify_derived import OBJECTS_AT_ONCE, RESTORE, DerivedObjects, said
from lakelog.log.checks.verify_ids import RecentIds
from lakelog.log.checks.verify_inbox import check_inbox
from lakelog.log.decisions import commits_another
from lakelog.log.errors import FormatError, LakelogError, NotFound, UnsupportedFormat
from lakelog.log.format import (
    ABORTED,
    COMMITTED,
    FORMAT,
    Commit,
    Decision,
    Intent,
    SettledIntent,
    Tombstone,
    decode_entry,
    hash_of,
)
from lakelog.log.listing import LogListing, list_log
from lakelog.log.log import Log
from lakelog.log.replay import broken_link
from lakelog.log.view import UNREADABLE, LogView, S, advance, effective, empty_view

ALL_TOGETHER = "restore the objects of this log from one backup"


@dataclass(frozen=True, slots=True)
class DecisionRead:
    """The object at the place of an intent's decision. `decision` is None if it is missing or broken."""

    where: str
    decision: Decision | None
    broken: str = ""
    is_void: bool = False


@dataclass(slots=True)
class VerifiedLog(Generic[S]):
    """The result of a log's check. `view` is the newest state that could be derived, None if there is none.

    `head` is the newest version, and `first` the oldest that can be read. `complete` says whether `view` is
    the state that readers have to see. `origin` is its source, and `spoiled` says whether a broken manifest
    makes part of it unreadable. `broken` are the broken snapshots by key. `hint` is the hash of the hint's
    bytes ("" if there was none). `roots` are the versions of snapshots.

    `intents` are those of all commits by version, each with its outcome (None: undecided). `undecided` is the
    intent at the head without a decision. `unread` are the versions without a sound entry. `committed` are
    the ids of the expired commits of transactions that committed. `evidence` says whether a snapshot, hint or
    base says that a transaction committed, although its decision does not. Those objects must then be kept.
    """

    log_id: str
    head: int
    first: int
    view: LogView[S] | None
    complete: bool
    origin: StateOrigin = StateOrigin.NOTHING
    spoiled: bool = False
    broken: dict[str, BrokenState] = field(default_factory=dict)
    hint: str = ""
    roots: list[int] = field(default_factory=list)
    intents: dict[int, tuple[Intent, SettledIntent | None]] = field(default_factory=dict)
    log_ids: list[str] = field(default_factory=list)
    undecided: Commit | None = None
    unread: set[int] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    evidence: bool = False


def verify(
    log: Log[S],
    judge: LogJudge[S],
    findings: Findings,
    *,
    log_id: str | None = None,
) -> VerifiedLog[S]:
    """Check the log. `log_id` is the id it must have, if the catalog knows it. Raises NotFound if there is no log.

    Makes three LISTs and about a GET for each object below `_log/`, in parallel rounds.
    """
    hint = log.store.get(log.keys.latest)
    listing = list_log(log.store, log.keys)
    if listing.is_empty:
        raise NotFound(f"there is no log at {log.location}; check the location")
    derived = DerivedObjects(log, judge, findings, listing, hint)
    derived.read()
    checking = _Verification(log, judge, findings, listing, derived, log_id)
    result = checking.run()
    result.broken, result.hint = derived.broken, "" if hint is None else hash_of(hint)
    snapshot_versions = (log.keys.snapshot_version(key) for key in listing.snapshots)
    result.roots = sorted(
        {*derived.roots, *(version for version in snapshot_versions if version is not None)}
    )
    derived.finish(result.head, checking.standing)
    check_inbox(log, findings, listing.inbox, result.head)
    for folder, text in lost.kept(log, listing.lost):
        findings.note("lost-kept", folder, text, lost.TODO)
    for key in listing.foreign:
        findings.note(
            "foreign-object",
            log.replay.at(key),
            "this object is not lakelog's",
            "delete it if no other program needs it",
        )
    return result


class _Verification(Generic[S]):
    """The walk over all versions, from the first to the last."""

    def __init__(
        self,
        log: Log[S],
        judge: LogJudge[S],
        findings: Findings,
        listing: LogListing,
        derived_objects: DerivedObjects[S],
        log_id: str | None,
    ) -> None:
        self.log = log
        self.judge = judge
        self.findings = findings
        self.listing = listing
        self.derived = derived_objects
        last_base = derived_objects.last_base
        self.own_id = log_id or (None if last_base is None else last_base.log_id)
        self.standing = CheckStanding[S](empty_view(log.projection), StateOrigin.COMMITS)
        self.time_us = 0
        self.result = VerifiedLog[S](
            log_id="", head=listing.versions.last, first=1, view=None, complete=False
        )
        self._named: set[str] = set()
        self._ids = RecentIds()

    def run(self) -> VerifiedLog[S]:
        result, previous = self.result, None
        if not self.listing.versions:
            where = self._at(1)
            self.findings.damage("commit-missing", where, "all commits of this log are missing", RESTORE)
        last: tuple[int, Commit | Tombstone | None] | None = None
        for version, entry in self._entries():
            if last is not None:
                previous = self._step(*last, previous, entry)
            last = version, entry
        if last is not None:
            self._step(*last, previous, None)
        decided_head = result.head - (result.undecided is not None)
        result.view = view = self.standing.view
        result.complete = view is not None and view.version == decided_head
        result.origin, result.spoiled = self.standing.origin, self.standing.spoiled
        if view is not None:
            result.log_id = view.log_id
        for name in sorted(self.listing.sidecars - self._named):
            self.findings.note(
                "sidecar-unused",
                self.log.replay.at(self.log.keys.sidecar(name)),
                "no commit names this sidecar: of a commit that did not happen, or of one that is lost",
                "leave it to vacuum",
            )
        return result

    def _entries(self) -> Iterator[tuple[int, Commit | Tombstone | None]]:
        """Yield the entry at each version from 1 on, None if it is missing or broken, which is reported.

        Of a long hole only the first version is yielded, because a key with any number can be forged.
        """
        head, log = self.result.head, self.log
        for first, last in self.listing.versions.ranges():
            for start in range(first, last + 1, OBJECTS_AT_ONCE):
                self.findings.progress(f"{log.location}: version {start:,} of {head:,}")
                versions = range(start, min(start + OBJECTS_AT_ONCE, last + 1))
                for version, data in zip(
                    versions, log.store.get_many([log.keys.commit(v) for v in versions]), strict=True
                ):
                    yield version, self._decoded(version, data)
            if last < head:
                self.findings.damage(
                    "commit-missing",
                    self._at(last + 1),
                    f"version {last + 1} and many after it are missing, and version {head} is there",
                    RESTORE,
                )
                yield last + 1, None

    def _decoded(self, version: int, data: bytes | None) -> Commit | Tombstone | None:
        where = self._at(version)
        if data is None:
            self.findings.damage(
                "commit-missing", where, f"version {version} is missing, and a later one is there", RESTORE
            )
            return None
        try:
            entry = decode_entry(data, where, self.log.replay.features)
        except UnsupportedFormat as error:
            self.findings.damage("unsupported", where, str(error), "upgrade lakelog, then check again")
            return None
        except FormatError as error:
            self.findings.damage("commit-altered", where, said(error, where), RESTORE)
            return None
        self.findings.count("commits")
        if entry.version != version:
            self.findings.damage(
                "commit-misplaced",
                where,
                f"holds version {entry.version}: it was copied or moved",
                "delete it if there was no such version, else " + RESTORE,
            )
            return None
        return entry

    def _step(
        self,
        version: int,
        entry: Commit | Tombstone | None,
        commit_before: Commit | Tombstone | None,
        next_commit: Commit | Tombstone | None,
    ) -> Commit | Tombstone | None:
        """Take an entry between the sound `commit_before` and `next_commit`. Returns it if it is sound."""
        if entry is None or not self._continues(commit_before, entry, next_commit):
            self.result.unread.add(version)
            self.standing.lose()
            return None
        if not self.result.log_ids or self.result.log_ids[-1] != entry.log_id:
            self.result.log_ids.append(entry.log_id)
        outcome = None
        if isinstance(entry, Commit):
            self._named.update(sidecar.name for sidecar in entry.sidecars)
            if entry.intent is not None:
                outcome = self._settled(entry, entry.intent, next_commit)
                self.result.intents[entry.version] = (entry.intent, outcome)
                if outcome is None:
                    return self._leave_undecided(entry)
            self._apply(entry, outcome)
        else:
            self._pass_tombstone(entry)
        self._check_time(entry, outcome)
        self.derived.compare(entry, self.standing)
        return entry

    def _continues(
        self,
        commit_before: Commit | Tombstone | None,
        entry: Commit | Tombstone,
        next_commit: Commit | Tombstone | None,
    ) -> bool:
        """Return whether an entry belongs here. Of two entries that do not fit, report the wrong one."""
        fits_after = next_commit is not None and broken_link(entry, next_commit) is None
        if commit_before is None:
            problem = "is not version 1" if entry.version == 1 and entry.prev else None
            if self.own_id not in (None, entry.log_id) and not fits_after:
                problem = f"belongs to log {entry.log_id}, and this is the place of {self.own_id}"
            if problem:
                self._foreign(entry.version, f"{problem}: it was copied or moved")
            return not problem
        link = broken_link(commit_before, entry)
        if link is None:
            return True
        if fits_after and commit_before.version == 1:
            self._foreign(1, f"is not what version 2 continues ({self._at(2)} {link})")
            self.standing.lose()
            return True
        doubt = (
            ""
            if next_commit is not None or self.own_id == commit_before.log_id
            else f", or {self._at(commit_before.version)} is wrong"
        )
        self._foreign(entry.version, f"{link}{doubt}")
        return False

    def _foreign(self, version: int, what: str) -> None:
        self.findings.damage("commit-foreign", self._at(version), what, RESTORE)

    def _settled(
        self, commit: Commit, intent: Intent, next_commit: Commit | Tombstone | None
    ) -> SettledIntent | None:
        """Return the outcome of an intent, from the commit after it and from its decision, which have to agree."""
        stated_outcome = next_commit.settles if isinstance(next_commit, Commit) else None
        derived_outcome = self.derived.committed(commit)
        decision_read = read_decision(self.log, commit)
        if decision_read.is_void:
            self.findings.note(
                "intent-void",
                decision_read.where,
                f"is an intent of transaction {intent.txn}, in which this log takes no part: it counts as aborted",
                "find out which client wrote this object",
            )
        if derived_outcome is not None and (
            decision_read.decision is None or decision_read.decision.outcome != COMMITTED
        ):
            self.result.evidence = True
        if decision_read.decision is None:
            if stated_outcome is None and derived_outcome is not None:
                stated_outcome = derived_outcome
            if next_commit is not None or decision_read.broken or derived_outcome is not None:
                self.findings.damage(
                    "decision-altered" if decision_read.broken else "decision-missing",
                    decision_read.where,
                    (decision_read.broken or f"the decision of transaction {intent.txn} is missing")
                    + f"; {self._at(commit.version)} is its intent"
                    + (
                        ""
                        if derived_outcome is None
                        else ", and what was derived from it says that it committed"
                    ),
                    RESTORE,
                )
            return stated_outcome
        decided_outcome = decision_read.decision.settled
        too_early = decided_outcome.outcome == COMMITTED and decided_outcome.time_us < commit.time_us
        if derived_outcome is not None and (too_early or decided_outcome.outcome != COMMITTED):
            self._disagrees(
                decision_read,
                decided_outcome,
                f"what was derived from {self._at(commit.version)}",
                derived_outcome,
            )
            if too_early and stated_outcome is None:
                return derived_outcome
        if stated_outcome is not None and stated_outcome != decided_outcome:
            self._disagrees(decision_read, decided_outcome, self._at(commit.version + 1), stated_outcome)
            return stated_outcome
        if commits_another(decision_read.decision, commit):
            self.findings.damage(
                "decision-disagrees",
                decision_read.where,
                f"does not commit version {commit.version} of {self.log.location}, whose intent names it",
                ALL_TOGETHER,
            )
        return decided_outcome

    def _disagrees(
        self, read: DecisionRead, decided_intent: SettledIntent, other: str, intent: SettledIntent
    ) -> None:
        message = f"says {_as_text(decided_intent)}, and {other} says {_as_text(intent)}"
        self.findings.damage("decision-disagrees", read.where, message, ALL_TOGETHER)

    def _leave_undecided(self, commit: Commit) -> Commit:
        if commit.version == self.result.head:
            self.result.undecided = commit
            txn = commit.intent.txn if commit.intent is not None else ""
            self.findings.repairable(
                "transaction-undecided",
                self._at(commit.version),
                f"transaction {txn} has no decision here: its writer is still working, or died, or "
                f"{read_decision(self.log, commit).where} is lost",
                "the next writer of this log aborts it, and so does lakelog fsck --repair of the whole warehouse",
            )
        else:
            self.standing.lose()
        return commit

    def _apply(self, commit: Commit, settled_intent: SettledIntent | None) -> None:
        """Fold a commit into the view, if there is a view."""
        standing = self.standing
        if standing.view is None or standing.view.version != commit.version - 1:
            self.derived.before(commit, standing)
        effect = effective(commit, settled_intent)
        blobs = [] if effect is None else self._sidecars(commit)
        where = self._at(commit.version)
        for problem in () if effect is None else self._ids.passed(effect):
            todo = "see whether its rows or names are there twice; find out which client wrote this object"
            self.findings.damage("change-twice", where, problem, todo)
        try:
            if effect is not None:
                self.judge.passed(effect, blobs)
            if standing.view is None or blobs is None:
                standing.lose()
                return
            standing.view = advance(
                standing.view, commit, commit.hash, blobs, self.log.projection, where, settled_intent
            )
            if effect is not None:
                self._check_features(standing.view, effect, blobs)
        except UNREADABLE as error:
            kind = "unsupported" if isinstance(error, UnsupportedFormat) else "commit-disagrees"
            self.findings.damage(kind, where, said(error, where), ALL_TOGETHER)
            standing.lose()

    def _check_features(self, view_after: LogView[S], commit: Commit, blobs: Sequence[bytes]) -> None:
        """Report features that a commit uses and that neither it nor a commit before it names."""
        used = self.log.projection.uses(commit, blobs)
        unnamed = (used.readers - {*view_after.features}) | (used.writers - {*view_after.writer_features})
        if unnamed:
            self.findings.damage(
                "feature-unnamed",
                self._at(commit.version),
                f"uses {', '.join(sorted(unnamed))}, and no version up to it names this, so that clients that do not "
                "know it read the log wrongly, or write to it wrongly",
                "find out which client wrote this object, and upgrade it",
            )

    def _sidecars(self, commit: Commit) -> list[bytes] | None:
        """Return the commit's sidecars, None if any is missing or broken, which is reported."""
        keys = [self.log.keys.sidecar(sidecar.name) for sidecar in commit.sidecars]
        blobs = list[bytes]()
        for sidecar, key, data in zip(
            commit.sidecars, keys, self.log.store.get_many(keys) if keys else (), strict=True
        ):
            where = self.log.replay.at(key)
            self.findings.count("sidecars")
            if data is not None and len(data) == sidecar.size_bytes and hash_of(data) == sidecar.hash:
                blobs.append(data)
            elif data is not None:
                self.findings.damage(
                    "sidecar-altered", where, f"is not what version {commit.version} names", RESTORE
                )
            elif (
                commit.version > self._expired
            ):  # otherwise expiry deletes sidecars before it writes tombstones
                self.findings.damage(
                    "sidecar-missing", where, f"is missing, and version {commit.version} needs it", RESTORE
                )
        return blobs if len(blobs) == len(keys) else None

    @property
    def _expired(self) -> int:
        """The version up to which commits may be tombstones."""
        return 0 if self.derived.last_base is None else self.derived.last_base.root.version

    def _pass_tombstone(self, tombstone: Tombstone) -> None:
        self.standing.lose()
        self.judge.expired()
        if tombstone.outcome == COMMITTED:
            self.result.committed.add(tombstone.commit_id)
        if tombstone.version > self._expired:
            # Expiry may have begun since the bases were read.
            self.derived.read_bases(range(len(self.derived.bases) + 1, len(self.derived.bases) + 2))
        if tombstone.version > self._expired:
            self.findings.damage(
                "tombstone-uncovered",
                self._at(tombstone.version),
                f"version {tombstone.version} has expired, but the last base is at version {self._expired}: what it "
                "did is lost",
                f"restore {self.log.replay.at(self.log.keys.base(len(self.derived.bases) + 1))}, or the commit, from a "
                "backup",
            )
        self.result.first = max(self.result.first, self._expired)

    def _check_time(self, entry: Commit | Tombstone, settled_intent: SettledIntent | None) -> None:
        effect = effective(entry, settled_intent)
        if effect is None:
            return
        if effect.time_us <= self.time_us:
            self.findings.damage(
                "time-backwards",
                self._at(entry.version),
                f"version {entry.version} is of {effect.time_us} µs, not after {self.time_us} µs before it",
                "AS OF a time gives wrong versions of this log; find out which client wrote this",
            )
        self.time_us = max(self.time_us, effect.time_us)

    def _at(self, version: int) -> str:
        return self.log.replay.at(self.log.keys.commit(version))


def _as_text(settled_intent: SettledIntent) -> str:
    return (
        settled_intent.outcome
        if settled_intent.outcome == ABORTED
        else f"{settled_intent.outcome} at {settled_intent.time_us} µs"
    )


def read_decision(log: Log[S], commit: Commit) -> DecisionRead:
    """Read the decision of an intent."""
    try:
        place = log.replay.decision_place(commit)
    except LakelogError as error:
        return DecisionRead(log.replay.at(log.keys.commit(commit.version)), None, str(error))
    if place is None:
        where = log.replay.at(log.keys.commit(commit.version))
        txn = commit.intent.txn if commit.intent is not None else ""
        void_decision = Decision(format=FORMAT, txn=txn, commit_id=commit.commit_id, outcome=ABORTED)
        return DecisionRead(where, void_decision, is_void=True)
    try:
        return DecisionRead(place.location, place.read())
    except FormatError as error:
        return DecisionRead(place.location, None, str(error))
