"""A log of opaque commits in an object store, durable and ordered. Each happens entirely or not at all.

A single rule carries everything: a writer that has seen version n creates version n + 1 by put-if-absent.

    log = Log(store, "t-1", projection)
    view = log.create(Draft(events=({"made": True},)), log_id=new_id())
    done = log.commit(view, lambda view, passed: Draft(events=({"added": 5},)))

The log does not know what events mean. A projection folds them, and `decide` judges the consequences of a
lost race.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic

from lakelog.log import history, snapshots
from lakelog.log.changes import is_same_commit
from lakelog.log.costs import note_commit
from lakelog.log.decisions import OpenUrl
from lakelog.log.errors import AlreadyExists, FormatError
from lakelog.log.following import or_unknown, refresh_settled
from lakelog.log.format import Commit, Json, Tombstone
from lakelog.log.grammar import check_id
from lakelog.log.ids import own_id, trying
from lakelog.log.keys import LogKeys
from lakelog.log.options import LogOptions
from lakelog.log.placing import ChangeCursor, Decide, LogChange
from lakelog.log.proposals.pending import ByData
from lakelog.log.replay import LogReplay
from lakelog.log.rounds.sharing import ChangeSharing
from lakelog.log.stores import ObjectStore
from lakelog.log.view import CommittedChange, Draft, LogView, S, StateProjection, empty_view
from lakelog.log.writing import LogWriter, PlacedCommit


class Log(Generic[S]):
    """A log; the module explains it. Its only state is its changes under way: views are values.

    Any number of threads may share a log.
    """

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        projection: StateProjection[S],
        *,
        writer: Mapping[str, Json] | None = None,
        options: LogOptions | None = None,
        open_url: OpenUrl | None = None,
        opened: str | None = None,
        by_data: ByData[S] | None = None,
    ) -> None:
        """Make a log at `prefix` of a store. Makes no request.

        `open_url` finds the decisions of transactions whose warehouse is in another store. `opened` is the
        URL of the folder that the caller opened. No decision outside of that folder is written, or read for a
        log inside of it. `by_data` decides other clients' proposals if the options allow proposals.
        """
        self.store = store
        self.projection = projection
        self.options = options or LogOptions()
        self.keys = LogKeys(prefix)
        self.replay: LogReplay[S] = LogReplay(store, self.keys, projection, self.options, open_url, opened)
        self.writer: LogWriter[S] = LogWriter(self.replay, writer or {})
        self.sharing: ChangeSharing[S] = ChangeSharing(self.writer, by_data)

    @property
    def location(self) -> str:
        """The URL of the log's root."""
        return self.replay.location

    # Reading

    def load(
        self,
        beside: Callable[[LogView[S]], None] | None = None,
        hint: Callable[[], bytes | None] | None = None,
    ) -> LogView[S]:
        """Return the head from a cold start. Raises NotFound if there is no log.

        Takes two round trips and no LIST if the hint is of the head. `beside` is called with the view that
        the hint gives, which may be old or wrong, while the rest is read. `hint` returns the object at
        `keys.latest` if the caller has just read it.
        """
        return self.replay.load(beside, hint)

    def refresh(self, view: LogView[S]) -> LogView[S]:
        """Return the head, or `view` itself after a GET if nothing is newer. Ignores undecided transactions."""
        return self.replay.forward(view)

    def refresh_settled(self, view: LogView[S]) -> LogView[S]:
        """Refresh, and leave nothing after the returned view: waits for an undecided transaction, or aborts it.

        Raises StorageError.
        """
        return refresh_settled(self.replay, view)

    def check_not_withheld(self, view: LogView[S]) -> None:
        """Raise PermissionDenied if the transaction after `view` has a decision that this client may not read.

        That transaction may have happened, and be visible in other logs. Makes no request.
        """
        if self.replay.withheld == view.version + 1:
            raise self.replay.withheld_error()

    def check_writable(self, view: LogView[S]) -> None:
        """Raise UnsupportedFormat if the log uses features for writers that this client does not know.

        Commits, snapshots, bases and proposals check it by themselves.
        """
        self.replay.check_writable(view)

    def view_at(self, version: int) -> LogView[S]:
        """Return the log as of `version`. Raises NotFound, naming the retained range."""
        return history.view_at(self.replay, version)

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version committed up to `time_us`. Makes O(log n) GETs. Raises NotFound."""
        return history.version_at_time(self.replay, time_us)

    def entry_at(self, version: int) -> Commit | Tombstone | None:
        """Return the entry at a version, None if there is none. Makes a GET. Raises FormatError."""
        [data] = self.replay.get_versions([version])
        return None if data is None else self.replay.entry(version, data)

    def commits(
        self, first: int = 1, last: int | None = None, *, newest_first: bool = False
    ) -> Iterator[Commit]:
        """Yield the retained commits from `first` to `last` (the head). Reads ahead in parallel batches."""
        return history.commits(self.replay, first, last, newest_first=newest_first)

    def standing(self, first: int = 1) -> Iterator[Commit]:
        """Yield the stored commits from `first` on, even those of aborted or undecided transactions.

        Reads ahead in parallel batches.
        """
        return history.standing(self.replay, first)

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        """Return the version of that commit between `first` and `last`, which all exist. Finds expired commits too."""
        for entry in self.replay.effects(first, last):
            if is_same_commit(entry, commit_id):
                return entry.version
        return None

    def read_blobs(self, names: Sequence[str]) -> list[bytes]:
        """Return the blobs of a dump by name, or parts of them, in a single round. Raises NotFound."""
        return snapshots.read_blobs(self.store, self.keys, names)

    def snapshot(self, view: LogView[S]) -> None:
        """Write a snapshot and the hint now. The log does this by itself after acknowledging commits."""
        snapshots.write(self.replay, view)

    # Writing

    def create(
        self, draft: Draft, *, log_id: str, commit_id: str | None = None, first: bool = False
    ) -> LogView[S]:
        """Create the log with its version 1, or again after its seal. Raises AlreadyExists, but a retry succeeds.

        If `first` is set, the log must be the first at its place. `log_id` identifies this creation and is
        new for every creation. First logs of a place may share an id.
        """
        commit_id = commit_id or own_id(self.options.new_id())
        check_id(commit_id, "a commit id")
        check_id(log_id, "the id of a log")
        with trying(commit_id, self.location):
            return self._create(draft, log_id, commit_id, first=first)

    def _create(self, draft: Draft, log_id: str, commit_id: str, *, first: bool) -> LogView[S]:
        view = empty_view(self.projection)
        taken_error = AlreadyExists(
            f"there is, or was, a log at {self.location} already; use another location"
        )
        try:
            result = self.writer.put(view, draft, commit_id, base=0, log_id=log_id)
            if isinstance(result, PlacedCommit):
                note_commit(self.location, result.commit.version, commit_id)
                return self.writer.settled(result)
            entry = self.replay.entry(1, result)
        except FormatError as error:
            if first:
                raise taken_error from error  # the place has a damaged commit, or a newer lakelog's
            raise
        with or_unknown(commit_id, self.location):
            if is_same_commit(entry, commit_id):
                note_commit(self.location, 1, commit_id)
                # The log may have gone on since, and may even be sealed.
                return self.replay.forward(self.replay.step(view, entry, None))
            if first:
                raise taken_error
            view = self.refresh_settled(self.load())
            # Our commit may be in any later log of this place, which may be sealed and followed by others.
            if (view.sealed or view.log_id == log_id) and self.find(commit_id, 2, view.version):
                return view
        while view.sealed and view.log_id != log_id:
            result = self.writer.put(view, draft, commit_id, base=view.version, log_id=log_id)
            if isinstance(result, PlacedCommit):
                note_commit(self.location, result.commit.version, commit_id)
                return self.writer.settled(result)
            with or_unknown(commit_id, self.location):
                lost_after, view = view.version, self.refresh_settled(view)
                # Another try of this creation may have won, and its log may be sealed again.
                if self.find(commit_id, lost_after + 1, view.version):
                    return view
        if view.log_id != log_id or entry.log_id == log_id:
            raise AlreadyExists(
                f"there is a log at {self.location} already; load it, or use another location"
            )
        return view

    def commit(
        self,
        view: LogView[S],
        decide: Decide[S],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> CommittedChange[S]:
        """Commit the draft of `decide(view, passed)`, on top of all commits since `view`.

        `passed` are all commits after `base`. `decide` judges every precondition on the view it is given, and
        raises to give up. To retry, pass the same commit_id and the *original* base (default: view.version).
        If a commit with that id exists since then, it is ours, and nothing is written. Costs a PUT, and a GET
        and a PUT more for each lost race.

        A `shared` change may be put together with changes of other threads that use this log at the same
        time. Its `decide` does no I/O, and its draft removes no file that another change may add. Changes
        that share its version are in the view's state, not among `passed` (see `sharing`). Raises LogSealed,
        WriteFenced, ConflictError, CommitUnknown, StorageError (nothing happened), and the errors of
        `decide`. A retry raises CommitUnknown for StorageError, because the earlier try may have happened.
        """
        is_retry = shared and commit_id is not None
        commit_id = commit_id or own_id(self.options.new_id())
        cursor = self.cursor(view, decide, commit_id, base, retried=is_retry)
        with trying(commit_id, self.location):
            commit = cursor.asked_before() or self.sharing.commit(cursor, alone=not shared)
        note_commit(self.location, commit.version, cursor.commit_id)
        return commit

    @property
    def proposes(self) -> bool:
        """Whether `propose` is useful now, because other processes keep winning races for this log."""
        return self.sharing.has_courier

    def propose(
        self, view: LogView[S], decide: Decide[S], *, commit_id: str, base: int, retried: bool
    ) -> CommittedChange[S] | None:
        """Have this or another process commit the rows that `decide` drafts together with other clients' rows.

        If `retried`, return the commit of that id since `base` if it happened before. Returns None if the
        commit did not happen. Another process may still make it, so the caller then makes a change of the
        rows and commits it under the same id and base. If `decide` raises an exception that is no
        LakelogError, this also returns None. Raises the errors of `commit`.
        """
        cursor = self.cursor(view, decide, commit_id, base, retried=retried)
        commit = cursor.asked_before() or self.sharing.propose(cursor)
        if commit is not None:
            note_commit(self.location, commit.version, commit_id)
        return commit

    def cursor(
        self,
        view: LogView[S],
        decide: Decide[S],
        commit_id: str,
        base: int | None = None,
        *,
        retried: bool = False,
    ) -> ChangeCursor[S]:
        """Return the start of a change that is not yet put anywhere."""
        base = view.version if base is None else base
        return ChangeCursor(self.replay, LogChange(view, decide, commit_id, base, retried))


def refresh_many(pairs: Sequence[tuple["Log[S]", LogView[S]]]) -> list[LogView[S]]:
    """Return the heads of several logs, with a single parallel round over all of them if nothing is newer."""
    by_store: dict[int, list[int]] = {}
    for i, (log, _) in enumerate(pairs):
        by_store.setdefault(id(log.store), []).append(i)
    views = [view for _, view in pairs]
    for indexes in by_store.values():
        keys = [pairs[i][0].keys.commit(views[i].version + 1) for i in indexes]
        for i, data in zip(indexes, pairs[indexes[0]][0].store.get_many(keys), strict=True):
            if data is not None:
                views[i] = pairs[i][0].replay.forward(views[i], found=[data])
    return views
