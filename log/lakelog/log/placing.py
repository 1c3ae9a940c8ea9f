"""One change on its way to the head of one log, as a commit of its own or as the intent of a transaction.

Version by version it meets what other writers committed since, its own earlier commit among them, and is judged anew
on each state that it is put after. It waits for an undecided transaction before it, or aborts that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic

from lakelog.log.changes import combined_ids, each_change, is_same_commit, refusal_in
from lakelog.log.costs import rebased
from lakelog.log.decisions import settled_by, wait_or_abort
from lakelog.log.errors import CommitUnknown, ConflictError, InvalidInput, LakelogError, StorageError
from lakelog.log.format import ABORTED, PROPOSALS, Commit, Intent, Settled, Tombstone
from lakelog.log.grammar import check_id
from lakelog.log.proposals.refusals import error_of, refusal_of
from lakelog.log.replay import BATCH_MAX, Replay
from lakelog.log.view import Committed, Draft, S, View, effective
from lakelog.log.writing import Decided, Placed, Writer, check_may_follow, log_sealed, marked

Decide = Callable[[View[S], Sequence[Commit]], Draft]


class Busy(Exception):
    """Another writer's intent is undecided where a placing that does not wait would go on."""


class Contended(Exception):
    """Enough races were lost: the change is for others to commit."""


RACES_BEFORE_PROPOSING = 2
"""Races that a change loses before others are asked to commit it; one is enough where another client combines."""

REMEMBERED = 64


class Trail(Generic[S]):
    """The newest versions as this process has read or written them, so that many changes pass them by one read. It
    holds states: drop it once no change is under way."""

    def __init__(self) -> None:
        self._after: dict[int, tuple[Commit | Tombstone, Settled | None, View[S]]] = {}

    def add(self, entry: Commit | Tombstone, settled: Settled | None, after: View[S]) -> None:
        self._after[entry.version] = entry, settled, after
        while len(self._after) > REMEMBERED:
            del self._after[next(iter(self._after))]

    def view_after(self, entry: Commit | Tombstone, settled: Settled | None) -> View[S] | None:
        """Return the view after an entry where it is known: its hash says all that came before it."""
        known = self._after.get(entry.version)
        if known is None or known[0].hash != entry.hash or known[1] != settled:
            return None
        return known[2]

    def following(self, view: View[S]) -> Iterator[tuple[Commit | Tombstone, Settled | None]]:
        """Yield what is known to follow a view, without a gap."""
        while (known := self._after.get(view.version + 1)) is not None and known[0].prev == view.hash:
            entry, settled, view = known
            yield entry, settled


class Placing(Generic[S]):
    """Where one change stands in one log: after `view`, with `passed` between its base and there."""

    def __init__(
        self, writer: Writer[S], view: View[S], decide: Decide[S], commit_id: str, base: int | None
    ) -> None:
        self.base = view.version if base is None else base
        check_id(commit_id, "a commit id")
        if not 0 <= self.base <= view.version:
            raise InvalidInput(
                f"the change was prepared on version {self.base}, and version {view.version} is the newest that is "
                "known: give the version that it was prepared on"
            )
        self.writer = writer
        self.replay: Replay[S] = writer.replay
        self.location = self.replay.location
        self.view = view
        self.log_id = view.log_id
        self.decide = decide
        self.commit_id = commit_id
        self.passed: list[Commit] = []
        self.lost = 0
        self.trail: Trail[S] | None = None
        """What other changes of this process have read."""
        self.yields = False
        """Whether others may commit it, so that it is `Contended` after a few races."""
        self.is_wished = False
        """Whether others were found to wait for the mark of the log that lets them propose."""
        self.wishes: Callable[[], None] | None = None
        """Says that this one waits for it: see `wish_once`."""
        self.retried = False
        """Whether it may have been tried before, by another process: its id was given."""
        self.proposed_until = 0
        """The end of the window of its last proposal."""
        self.proposed_seen = 0
        """The head that this was made at."""
        self._unchecked: tuple[ConflictError, View[S]] | None = None
        """The error of a change that has met expiry, and the head then."""
        self.combined = False
        """Whether it was overtaken by a version that has changes of others."""

    def asked_before(self) -> Committed[S] | None:
        """Return our own commit where it is between the base and the view: this is a retry."""
        if self.base == self.view.version:
            return None
        with self._or_unknown():
            return self._look_up(self.base + 1, self.view, self.passed)

    @property
    def is_open_elsewhere(self) -> bool:
        """Whether another client may yet apply it, so that a refusal has to be in the log to be final."""
        may_be_proposed = self.retried and PROPOSALS in self.view.features
        return self.is_proposed or (may_be_proposed and not self.view.sealed)

    @property
    def is_proposed(self) -> bool:
        """Whether a proposal that this process made of it may yet be applied."""
        return self.view.version < self.proposed_until and not self.view.sealed

    @property
    def is_contended(self) -> bool:
        """Whether others should commit it. A log whose readers may not know of that is marked first."""
        lost_enough = self.combined or self.lost >= RACES_BEFORE_PROPOSING
        return self.yields and lost_enough and PROPOSALS in self.view.features

    def place(self, intent: Intent | None = None, *, patient: bool = True) -> Placed[S] | Committed[S]:
        """Put the change at the head, or return it where it turns out to have been committed before.

        One PUT; one GET and one PUT more for each lost race. Raises Busy where it may not be patient, Contended where
        it yields, what `decide` raises, LogSealed, WriteFenced, ConflictError, CommitUnknown, StorageError (nothing
        happened).
        """
        options = self.replay.options
        while self.lost < options.rebases_max:
            if self.is_contended:
                raise Contended
            marks = self.marks
            if marks and self.lost:
                self.wish_once()
            self.lost += 1
            newer: Iterable[tuple[Commit | Tombstone, Settled | None]]
            try:
                draft = self.decide(self.view, tuple(self.passed))
                if self.passed:
                    rebased(self.location, self.view.version, len(self.passed))
                check_may_follow(self.view, draft, self.location)
            except LakelogError as error:
                newer = self._refused(error, patient=patient)
            else:
                try:
                    put = self._put(marked(draft) if marks else draft, intent)
                except StorageError:
                    # This put had no effect, but that of an earlier try, whose answer was lost, may have had.
                    landed = self._landed(patient=patient and intent is None)
                    if landed is not None:
                        return landed
                    raise
                if isinstance(put, Placed):
                    return put
                newer = self.newer(put, batch=2 if self.lost > 1 else 0, patient=patient)
            try:
                found = self.rebase(newer)
            except ConflictError as error:
                if not self.will_be_refused(error):
                    raise
                found = None
            if found is not None:
                return found
        raise self.unknown("it lost too many races") if self.is_proposed else lost_too_often(self)

    def _refused(
        self, error: LakelogError, *, patient: bool
    ) -> Iterable[tuple[Commit | Tombstone, Settled | None]]:
        """Raise what the change is refused for where that is final; else return what is newer than it was judged on.

        Nothing may be newer, our own commit least. Where others may apply the change on what comes later, the refusal
        itself has to be the newest: a version is put that says so.
        """
        if not self.is_open_elsewhere or not error.is_for_good:
            newer = list(self.newer(None, batch=1, patient=patient))
            if not newer:
                try:
                    raise error
                finally:
                    del error  # else it and this frame would keep each other, and all that the callers have
            return newer
        refused = Decided(
            self.commit_id, self.base, Draft(), dict(self.writer.writer), refused=refusal_of(error)
        )
        try:
            put = self.writer.put_together(self.view, [refused])
        except StorageError as failure:
            raise self.unknown(str(failure)) from failure
        if isinstance(put, Placed):
            self.writer.settled(put)
            raise error
        return self.newer(put, batch=2, patient=patient)

    def will_be_refused(self, error: LakelogError) -> bool:
        """Return whether an error that others do not know has to be put in the log, from where the change can only be
        refused: what passed has expired."""
        if self._unchecked is None or self._unchecked[0] is not error:
            return False
        self.view = self._unchecked[1]
        if not self.is_open_elsewhere:
            return False

        def refuse(view: View[S], passed: Sequence[Commit]) -> Draft:
            raise error

        self.decide = refuse
        return True

    def unknown(self, why: str) -> CommitUnknown:
        return CommitUnknown(
            f"it is unknown whether commit {self.commit_id} happens, which was proposed to other clients of "
            f"{self.location}: {why}; retry with the same commit id",
            commit_id=self.commit_id,
            location=self.location,
        )

    def wish_once(self) -> None:
        """Say that this one waits for the mark, where it has not and is to."""
        wishes, self.wishes = self.wishes, None
        if wishes is not None:
            wishes()

    @property
    def marks(self) -> bool:
        """Whether the next version is to say that there may be proposals: the next race lost may lead to some."""
        may_help = self.is_wished or self.lost >= RACES_BEFORE_PROPOSING
        return self.yields and may_help and PROPOSALS not in self.view.features

    def _landed(self, *, patient: bool) -> Committed[S] | None:
        try:
            return self.rebase(self.newer(None, batch=1, patient=patient))
        except LakelogError:
            return None

    def catch_up(self) -> Committed[S] | None:
        """Move to the head, which is then decided, without putting anything. Returns our own commit."""
        return self.rebase(self.newer(None, batch=1, patient=True))

    def aborted(self, placed: Placed[S]) -> None:
        """Go on behind an intent of ours that came to nothing."""
        self.view = self.replay.advance(placed.before, placed.commit, (), Settled(outcome=ABORTED))

    def committed_elsewhere(self) -> Committed[S]:
        """Return our own commit, which is in this log because an earlier attempt at the transaction committed."""
        with self._or_unknown():
            view = refresh_settled(self.replay, self.view)
            found = self._look_up(self.base + 1, view, [])
        if found is None:
            raise InvalidInput(
                f"commit {self.commit_id} happened in another log of its transaction, but is not in {self.location} "
                f"after version {self.base}: retry with the same logs and the original bases"
            )
        return found

    def _put(self, draft: Draft, intent: Intent | None) -> Placed[S] | bytes:
        try:
            return self.writer.put(self.view, draft, self.commit_id, base=self.base, intent=intent)
        except CommitUnknown as error:
            if intent is None:
                raise
            # It may stand there, but will never be committed: of that the coordinator is certain.
            raise StorageError(
                f"gave up transaction {intent.txn} of commit {self.commit_id}, of which nothing happened: whether "
                f"its part for {self.location} was written is not known; retry",
                location=error.location,
            ) from error

    def rebase(self, newer: Iterable[tuple[Commit | Tombstone, Settled | None]]) -> Committed[S] | None:
        """Move over what follows the view, unless our own commit is among it: then return that."""
        for entry, settled in newer:
            effect = effective(entry, settled)
            if effect is not None and is_same_commit(effect, self.commit_id):
                with self._or_unknown():
                    return Committed(self._after(entry, settled), entry.version)
            self._check_not_refused(effect)
            after = self._after(entry, settled)
            if isinstance(entry, Tombstone) or after.version != entry.version:
                return self._past_expiry(after, entry)
            self.view = after
            if isinstance(effect, Commit):
                self.passed += each_change(effect)
                self.combined = self.combined or bool(combined_ids(effect))
                self.check_goes_on(effect)
        return None

    def _check_not_refused(self, entry: Commit | Tombstone | None) -> None:
        """Raise what the change was refused for, by another client or an earlier try, which is final."""
        refusal = None if entry is None else refusal_in(entry, self.commit_id)
        if refusal is not None and entry is not None:
            raise error_of(refusal, self.commit_id, entry.version)

    def check_goes_on(self, passed: Commit) -> None:
        """Refuse a change that was prepared before a seal or a reopening: what follows is no longer what it was about,
        even where the log was restored."""
        if not passed.seals and not passed.reopens:
            return
        try:
            head = self.replay.forward(self.view)
        except StorageError:
            head = self.view  # only the text of the error depends on it
        raise self._cut_off(passed.version, head, reopened=head.log_id != self.log_id)

    def _cut_off(self, version: int, head: View[S], *, reopened: bool) -> LakelogError:
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

    def _after(self, entry: Commit | Tombstone, settled: Settled | None) -> View[S]:
        """Return the view after `entry`, which follows ours; the head where expiry has been there."""
        if self.trail is not None and entry.prev == self.view.hash:
            known = self.trail.view_after(entry, settled)
            if known is not None:
                return known
        after = self.replay.step(self.view, entry, settled)
        if isinstance(entry, Commit) and after.version == entry.version:
            if self.trail is not None:
                self.trail.add(entry, settled, after)
            return after
        return self.replay.forward(after)

    def newer(
        self, found: bytes | None, *, batch: int, patient: bool
    ) -> Iterator[tuple[Commit | Tombstone, Settled | None]]:
        """Yield what follows the view, and for intents what becomes of them: `found`, which is the next, and then all
        that is there, if `batch` says how many to read first."""

        return following(self.replay, self.view.version, found, batch=batch, patient=patient)

    def _past_expiry(self, head: View[S], expired: Commit | Tombstone) -> Committed[S]:
        """Find our own commit among what follows an expired version, or raise: what passed is no longer known."""
        with self._or_unknown():
            found = self._look_up(expired.version + 1, head, [])
        if found is None:
            if expired.seals or head.purged:
                raise self._cut_off(expired.version, head, reopened=head.log_id != self.log_id)
            raise self._expired(expired, head)
        return found

    def _look_up(self, first: int, view: View[S], passed: list[Commit]) -> Committed[S] | None:
        """Find our own commit from version `first` to that of `view`; else add what is there to `passed`.

        Raises why it was refused, where it was; LogSealed for a seal and ConflictError for an expired version there,
        but only once all ids up to the head were compared: the view may be older than our commit.
        """
        expired: Tombstone | None = None
        sealed_at, reopened = 0, False
        for entry in self.replay.effects(first, view.version):
            if is_same_commit(entry, self.commit_id):
                return Committed(view, entry.version)
            self._check_not_refused(entry)
            if entry.seals or entry.reopens:
                sealed_at, reopened = entry.version, reopened or entry.reopens
            if isinstance(entry, Commit):
                passed += each_change(entry)
            else:
                expired = expired or entry
        if not sealed_at and expired is None:
            return None
        # Our own commit may stand there undecided, left by a process that died: it has to be settled first.
        head = refresh_settled(self.replay, view)
        for entry in self.replay.effects(view.version + 1, head.version):
            if is_same_commit(entry, self.commit_id):
                return Committed(head, entry.version)
            self._check_not_refused(entry)
            reopened = reopened or entry.reopens
        if sealed_at or head.purged or expired is None:
            raise self._cut_off(sealed_at, head, reopened=reopened)
        raise self._expired(expired, head)

    def _expired(self, entry: Commit | Tombstone, head: View[S]) -> ConflictError:
        error = ConflictError(
            f"version {entry.version} of {self.location} has expired since this change began, which cannot be "
            "checked without it; start again from the current version",
            version=entry.version,
            by=entry.commit_id,
        )
        self._unchecked = error, head
        return error

    @contextmanager
    def _or_unknown(self) -> Iterator[None]:
        """Turn a failed read into CommitUnknown where the commit may have happened already."""
        with or_unknown(self.commit_id, self.location):
            yield


def following(
    replay: Replay[S], version: int, found: bytes | None, *, batch: int, patient: bool
) -> Iterator[tuple[Commit | Tombstone, Settled | None]]:
    """Yield what follows a version: `found`, which is the next, and then all that is there (see `Placing.newer`)."""

    def at_end(intent: Commit) -> Settled | None:
        return settle(replay, intent, patient=patient)

    return replay.with_outcomes(_read_on(replay, version + 1, found, batch), at_end)


def _read_on(
    replay: Replay[Any], version: int, found: bytes | None, batch: int
) -> Iterator[Commit | Tombstone]:
    if found is not None:
        yield replay.entry(version, found)
        version += 1
    while batch:
        versions = range(version, version + batch)
        for version, data in zip(versions, replay.get_versions(versions), strict=True):
            if data is None:
                return
            yield replay.entry(version, data)
        version += 1
        batch = min(batch * 2, BATCH_MAX)


@contextmanager
def or_unknown(commit_id: str, location: str) -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise CommitUnknown(
            f"commit {commit_id} to {location} may have happened, but reading the log failed: {error}; "
            "retry with the same commit id",
            commit_id=commit_id,
            location=location,
        ) from error


def lost_too_often(placing: Placing[Any]) -> ConflictError:
    return ConflictError(
        f"commit {placing.commit_id} lost {placing.replay.options.rebases_max} races at {placing.location}; retry when "
        "fewer clients write",
        version=placing.view.version,
        by=placing.passed[-1].commit_id if placing.passed else None,
    )


def settle(replay: Replay[S], intent: Commit, *, patient: bool) -> Settled:
    """Return what becomes of an intent that was the last when read. Raises Busy, StorageError.

    One GET where it is decided; else it waits for the decision, and finally aborts the transaction.
    """
    settled = replay.decided(intent) or replay.outcome(intent)
    if settled is not None:
        return settled
    if not patient:
        raise Busy
    place = replay.decision_place(intent)
    if place is None:
        return Settled(outcome=ABORTED)
    return settled_by(wait_or_abort(place, intent, replay.options), intent, place.location)


def refresh_settled(replay: Replay[S], view: View[S]) -> View[S]:
    """Return the head once no undecided intent stands after it."""
    while True:
        view, undecided = replay.read_on(view)
        if undecided is None:
            return view
        settle(replay, undecided, patient=True)
