"""A change on its way to the head of a log: its author's request, and its current position.

The change passes each version that other writers committed since its base, and its own earlier commit may be
among them. Each state that it is put after judges it again. Rounds (see `rounds`) put it; nothing is written
here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic

from lakelog.log.changes import combined_ids, each_change, is_same_commit, refusal_in
from lakelog.log.costs import rebased
from lakelog.log.errors import (
    CommitUnknown,
    ConflictError,
    FormatError,
    InvalidInput,
    LakelogError,
    StorageError,
)
from lakelog.log.following import Follower, VersionTrail, following, or_unknown, refresh_settled
from lakelog.log.format import ABORTED, PROPOSALS, WINDOW, Commit, SettledIntent, Tombstone
from lakelog.log.grammar import check_id
from lakelog.log.proposals.refusals import error_of
from lakelog.log.replay import LogReplay
from lakelog.log.view import CommittedChange, Draft, LogView, S, effective
from lakelog.log.writing import PlacedCommit, check_may_follow, log_sealed

Decide = Callable[[LogView[S], Sequence[Commit]], Draft]

RACES_BEFORE_PROPOSING = 2
"""Races that a change loses before others are asked to commit it; a single one if another client combines."""


@dataclass(frozen=True, slots=True, eq=False)
class LogChange(Generic[S]):
    """A change as its author requests it: `decide` drafts it on a view, after the commits since `base`.

    It is `retried` if its id was given, so another process may have tried it before.
    """

    view: LogView[S]
    decide: Decide[S]
    commit_id: str
    base: int
    retried: bool = False

    def __post_init__(self) -> None:
        check_id(self.commit_id, "a commit id")
        if not 0 <= self.base <= self.view.version:
            raise InvalidInput(
                f"the change was prepared on version {self.base}, and version {self.view.version} is the newest that "
                "is known: give the version that it was prepared on"
            )


class ChangeCursor(Generic[S]):
    """The position of a change in its log: after `view`, with `passed` between its base and there.

    Only the leader of a change moves its cursor: the thread that has its round, or a courier.
    """

    def __init__(self, replay: LogReplay[S], change: LogChange[S]) -> None:
        self.replay = replay
        self.location = replay.location
        self.change = change
        self.commit_id = change.commit_id
        self.base = change.base
        self.view = change.view
        self.passed: list[Commit] = []
        self.refusal: ConflictError | None = None
        """Why the change can only be refused: a version that it passed has expired. The log has to say so first."""
        self.is_refused = False
        """Whether a version that the change passed refuses it for good."""
        self.lost = 0
        """Failed tries, mostly because another writer was first."""
        self.combined = False
        """Whether a version with other clients' proposals overtook it."""
        self.proposed_seen = 0
        """The head at its last proposal."""

    @property
    def retried(self) -> bool:
        return self.change.retried

    @property
    def proposed_until(self) -> int:
        """The end of the window of its last proposal; 0 if there is none."""
        return self.proposed_seen and self.proposed_seen + WINDOW

    @property
    def is_proposed(self) -> bool:
        """Whether this process's proposal of it may still be applied."""
        return self.view.version < self.proposed_until and not self.view.sealed

    @property
    def is_open_elsewhere(self) -> bool:
        """Whether another client may still apply it, so that only a refusal in the log is final."""
        may_be_proposed = self.retried and PROPOSALS in self.view.writer_features
        return not self.is_refused and (self.is_proposed or (may_be_proposed and not self.view.sealed))

    @property
    def is_losing(self) -> bool:
        """Whether it has lost enough races to ask others to commit it."""
        return self.lost >= RACES_BEFORE_PROPOSING

    def decide(self, view: LogView[S]) -> Draft:
        """Return the draft for `view`: the cursor's view, perhaps with earlier changes of the same version."""
        if self.refusal is not None:
            raise self.refusal
        draft = self.change.decide(view, tuple(self.passed))
        if self.passed:
            rebased(self.location, self.view.version, len(self.passed))
        check_may_follow(self.view, draft, self.location)
        return draft

    def asked_before(self) -> CommittedChange[S] | None:
        """Return our own commit if it is between the base and the view, because this is a retry."""
        if self.base == self.view.version:
            return None
        with or_unknown(self.commit_id, self.location):
            return self._look_up(self.base + 1, self.view, self.passed)

    def catch_up(self) -> CommittedChange[S] | None:
        """Move to the head, which is then decided, without a put. Returns our own commit if it is there."""
        return self.rebase(
            following(self.replay, self.view.version, None, batch=1), VersionTrail(self.replay)
        )

    def committed_elsewhere(self) -> CommittedChange[S]:
        """Return our own commit, which is in this log because an earlier attempt at the transaction committed."""
        with or_unknown(self.commit_id, self.location):
            view = refresh_settled(self.replay, self.view)
            commit = self._look_up(self.base + 1, view, [])
        if commit is None:
            raise InvalidInput(
                f"commit {self.commit_id} happened in another log of its transaction, but is not in {self.location} "
                f"after version {self.base}: retry with the same logs and the original bases"
            )
        return commit

    def aborted(self, placed_commit: PlacedCommit[S]) -> None:
        """Continue after an intent of ours that had no effect."""
        self.lost += 1
        self.view = self.replay.advance(
            placed_commit.before, placed_commit.commit, (), SettledIntent(outcome=ABORTED)
        )

    def rebase(self, newer: Iterable[Follower], trail: VersionTrail[S]) -> CommittedChange[S] | None:
        """Move over the entries after the view. If our own commit is among them, return it.

        If expiry was there first, the change is refused, or moves to the head with its `refusal`.
        """
        for entry, outcome in newer:
            effect = effective(entry, outcome)
            if effect is not None and is_same_commit(effect, self.commit_id):
                with or_unknown(self.commit_id, self.location):
                    return CommittedChange(trail.step(self.view, entry, outcome), entry.version)
            self._check_not_refused(effect)
            next_view = trail.step(self.view, entry, outcome)
            if isinstance(entry, Tombstone) or next_view.version != entry.version:
                return self._past_expiry(next_view, entry)
            self.view = next_view
            if isinstance(effect, Commit):
                self.passed += each_change(effect)
                self.combined = self.combined or bool(combined_ids(effect))
                self.check_goes_on(effect)
        return None

    def _check_not_refused(self, entry: Commit | Tombstone | None) -> None:
        """Raise the final refusal of the change by another client or in an earlier try."""
        refusal = None if entry is None else refusal_in(entry, self.commit_id)
        if refusal is not None and entry is not None:
            self.is_refused = True
            raise error_of(refusal, self.commit_id, entry.version)

    def check_goes_on(self, passed_commit: Commit) -> None:
        """Refuse a change that was prepared before a seal or a reopening, even if the log was restored.

        The versions after it no longer belong to the change's subject.
        """
        if not passed_commit.seals and not passed_commit.reopens:
            return
        try:
            head = self.replay.forward(self.view)
        except StorageError:
            head = self.view  # only the text of the error depends on it
        raise self._cut_off(passed_commit.version, head, reopened=head.log_id != self.change.view.log_id)

    def _cut_off(self, version: int, head: LogView[S], *, reopened: bool) -> LakelogError:
        """Return the refusal of a change that meets a seal or a reopening at `version`."""
        if head.purged:
            return log_sealed(head.version, self.location, purged=True)
        if head.sealed or reopened:
            return log_sealed(version, self.location)
        return ConflictError(
            f"{self.location} was dropped at version {version} and restored since this change began; start again from "
            "the current version",
            version=version,
        )

    def _past_expiry(self, head: LogView[S], expired: Commit | Tombstone) -> CommittedChange[S] | None:
        """Find our own commit after an expired version, or refuse, as passed versions are unknown."""
        with or_unknown(self.commit_id, self.location):
            commit = self._look_up(expired.version + 1, head, [])
        if commit is None and self.view.version < expired.version:  # else the look-up has refused it
            if expired.seals or head.purged:
                raise self._cut_off(expired.version, head, reopened=head.log_id != self.change.view.log_id)
            self._refuse_unchecked(expired, head)
        return commit

    def _look_up(
        self, first: int, view: LogView[S], passed_commits: list[Commit]
    ) -> CommittedChange[S] | None:
        """Find our own commit from version `first` to that of `view`; else add the commits there to `passed_commits`.

        Raises the change's refusal if it was refused, LogSealed for a seal, and ConflictError for an expired
        version. It does so only after comparing all ids up to the head, because the view may be older than
        our commit.
        """
        first_tombstone: Tombstone | None = None
        sealed_at, reopened = 0, False
        for entry in self.replay.effects(first, view.version):
            if is_same_commit(entry, self.commit_id):
                return CommittedChange(view, entry.version)
            self._check_not_refused(entry)
            if entry.seals or entry.reopens:
                sealed_at, reopened = entry.version, reopened or entry.reopens
            if isinstance(entry, Commit):
                passed_commits += each_change(entry)
            else:
                first_tombstone = first_tombstone or entry
        if not sealed_at and first_tombstone is None:
            return None
        # Our own commit may be there undecided, from a process that died, so it has to be settled first.
        head = refresh_settled(self.replay, view)
        for entry in self.replay.effects(view.version + 1, head.version):
            if is_same_commit(entry, self.commit_id):
                return CommittedChange(head, entry.version)
            self._check_not_refused(entry)
            reopened = reopened or entry.reopens
        if sealed_at or head.purged or first_tombstone is None:
            raise self._cut_off(sealed_at, head, reopened=reopened)
        self._refuse_unchecked(first_tombstone, head)
        return None

    def _refuse_unchecked(self, expired: Commit | Tombstone, head: LogView[S]) -> None:
        """Raise that the passed versions cannot be checked.

        If others may apply the change, go to the head instead, because the log has to refuse it there.
        """
        error = ConflictError(
            f"version {expired.version} of {self.location} has expired since this change began, which cannot be "
            "checked without it; start again from the current version",
            version=expired.version,
            by=expired.commit_id,
        )
        self.view = head
        if self.is_open_elsewhere:
            self.refusal = error
            return
        try:
            raise error
        finally:
            del error  # otherwise it and this frame would keep each other alive

    def unknown(self, why: str) -> CommitUnknown:
        proposed = "was proposed" if self.is_proposed else "an earlier try may have proposed"
        return CommitUnknown(
            f"it is unknown whether commit {self.commit_id} happens, which {proposed} to other clients of "
            f"{self.location}: {why}; retry with the same commit id",
            commit_id=self.commit_id,
            location=self.location,
        )

    def failure(self, error: Exception) -> Exception:
        """Return how a try ends that `error` ended without an effect: CommitUnknown if another client may yet apply
        the change, or has done so in a version that this one cannot read."""
        if isinstance(error, StorageError | FormatError) and self.is_open_elsewhere:
            return self.unknown(str(error))
        return error

    def lost_too_often(self) -> LakelogError:
        """Return why a change that keeps losing races ends: with a conflict, unless others may still apply it."""
        if self.is_open_elsewhere:
            return self.unknown("it lost too many races")
        return self.lost_for_good()

    def lost_for_good(self) -> ConflictError:
        """Return the conflict of a change that lost its races and that no other client has."""
        return ConflictError(
            f"commit {self.commit_id} lost {self.replay.options.rebases_max} races at {self.location}; retry when "
            "fewer clients write",
            version=self.view.version,
            by=self.passed[-1].commit_id if self.passed else None,
        )
