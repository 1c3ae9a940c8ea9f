"""A log of opaque commits in an object store: durable, ordered, each happening entirely or not at all.

One rule carries everything: version n + 1 is created by put-if-absent, by a writer that has seen version n.
    log = Log(store, "t-1", projection)
    view = log.create(Draft(events=({"made": True},)), log_id=new_id())
    done = log.commit(view, lambda view, passed: Draft(events=({"added": 5},)))
The log does not know what events mean; a projection folds them, and `decide` judges what a lost race means.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic

from lakelog.log import history, snapshots
from lakelog.log.changes import is_same_commit
from lakelog.log.costs import note_commit
from lakelog.log.decisions import OpenUrl
from lakelog.log.errors import AlreadyExists, ConflictError, FormatError
from lakelog.log.format import Commit, Json, Tombstone
from lakelog.log.grammar import check_id
from lakelog.log.keys import Keys
from lakelog.log.options import LogOptions
from lakelog.log.placing import Decide, Placing, or_unknown, refresh_settled
from lakelog.log.proposals.pending import ByData
from lakelog.log.replay import Replay
from lakelog.log.sharing import Sharing
from lakelog.log.stores import ObjectStore
from lakelog.log.view import Committed, Draft, Projection, S, View, empty_view
from lakelog.log.writing import Placed, Writer


class Log(Generic[S]):
    """See the module. Keeps no state of its own but changes under way: views are values, and any number of threads may
    share a log."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        projection: Projection[S],
        *,
        writer: Mapping[str, Json] | None = None,
        options: LogOptions | None = None,
        open_url: OpenUrl | None = None,
        opened: str | None = None,
        by_data: ByData[S] | None = None,
    ) -> None:
        """`open_url` finds the decisions of transactions whose warehouse lies in another store than this log. `opened`
        is the URL of the folder that the caller opened: no decision outside of it is written, nor read for a log that
        lies in one of its folders. `by_data` decides what other clients propose, where the options have proposals."""
        self.store = store
        self.projection = projection
        self.options = options or LogOptions()
        self.keys = Keys(prefix)
        self.replay: Replay[S] = Replay(store, self.keys, projection, self.options, open_url, opened)
        self.writer: Writer[S] = Writer(self.replay, writer or {})
        self.sharing: Sharing[S] = Sharing(self.writer, by_data)

    @property
    def location(self) -> str:
        """The url of the log's root."""
        return self.replay.location

    # Reading

    def load(
        self,
        beside: Callable[[View[S]], None] | None = None,
        hint: Callable[[], bytes | None] | None = None,
    ) -> View[S]:
        """Return the head, cold: in two round trips where the hint is of the head, and no LIST. Raises NotFound where
        there is no log. `beside` is called with what the hint says, which may be old or wrong, while the rest is
        read. `hint` returns what stands at `keys.latest`, where the caller has read it just now."""
        return self.replay.load(beside, hint)

    def refresh(self, view: View[S]) -> View[S]:
        """Return the head. One GET when nothing is newer; then it is `view` itself. An undecided transaction is
        ignored."""
        return self.replay.forward(view)

    def refresh_settled(self, view: View[S]) -> View[S]:
        """As refresh, but nothing stands after the view that it returns: it waits for an undecided transaction, or
        aborts it. Raises StorageError."""
        return refresh_settled(self.replay, view)

    def check_not_withheld(self, view: View[S]) -> None:
        """Raise PermissionDenied where a transaction stands after `view` whose decision this client may not read: it
        may have happened, and show in other logs. No request."""
        if self.replay.withheld == view.version + 1:
            raise self.replay.withheld_error()

    def view_at(self, version: int) -> View[S]:
        """Return the log as of `version`. Raises NotFound, naming the retained range."""
        return history.view_at(self.replay, version)

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version committed at or before `time_us`. O(log n) GETs. Raises NotFound."""
        return history.version_at_time(self.replay, time_us)

    def entry_at(self, version: int) -> Commit | Tombstone | None:
        """Return what stands in the log at a version; None where nothing does. One GET. Raises FormatError."""
        [data] = self.replay.get_versions([version])
        return None if data is None else self.replay.entry(version, data)

    def commits(
        self, first: int = 1, last: int | None = None, *, newest_first: bool = False
    ) -> Iterator[Commit]:
        """Yield the retained commits from `first` to `last` (the head). Reads ahead in parallel batches."""
        return history.commits(self.replay, first, last, newest_first=newest_first)

    def standing(self, first: int = 1) -> Iterator[Commit]:
        """Yield the commits that are in the log from `first` on, also those that have no effect: of transactions that
        were aborted, or are undecided. Reads ahead in parallel batches."""
        return history.standing(self.replay, first)

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        """Return which of the versions from `first` to `last`, all of which exist, is that commit; expired ones too."""
        for entry in self.replay.effects(first, last):
            if is_same_commit(entry, commit_id):
                return entry.version
        return None

    def read_blobs(self, names: Sequence[str]) -> list[bytes]:
        """Return the blobs of a dump by their names, or parts of them, in one round. NotFound where one expired."""
        return snapshots.read_blobs(self.store, self.keys, names)

    def snapshot(self, view: View[S]) -> None:
        """Write a snapshot and the hint now. The log does so by itself, after acknowledging."""
        snapshots.write(self.replay, view)

    # Writing

    def create(
        self, draft: Draft, *, log_id: str, commit_id: str | None = None, first: bool = False
    ) -> View[S]:
        """Create the log by its version 1, or anew after its seal, unless it has to be the `first` one of its place. A
        retry succeeds; else AlreadyExists.

        `log_id` is new for every creation: it identifies this one. Of first ones, a place may have one id for all.
        """
        commit_id = commit_id or self.options.new_id()
        check_id(commit_id, "a commit id")
        check_id(log_id, "the id of a log")
        view = empty_view(self.projection)
        taken = AlreadyExists(f"there is, or was, a log at {self.location} already; use another location")
        try:
            found = self.writer.put(view, draft, commit_id, base=0, log_id=log_id)
            if isinstance(found, Placed):
                note_commit(self.location, found.commit.version, commit_id)
                return self.writer.settled(found)
            entry = self.replay.entry(1, found)
        except FormatError as error:
            if first:
                raise taken from error  # by what is damaged, or a newer lakelog's
            raise
        with or_unknown(commit_id, self.location):
            if is_same_commit(entry, commit_id):
                note_commit(self.location, 1, commit_id)
                after = self.replay.step(view, entry, None)
                return after if after.version == 1 else self.replay.forward(after)
            if first:
                raise taken
            view = self.refresh_settled(self.load())
            # Ours may be any later log of this place, sealed by now and perhaps followed by others.
            if (view.sealed or view.log_id == log_id) and self.find(commit_id, 2, view.version):
                return view
        while view.sealed and view.log_id != log_id:
            found = self.writer.put(view, draft, commit_id, base=view.version, log_id=log_id)
            if isinstance(found, Placed):
                note_commit(self.location, found.commit.version, commit_id)
                return self.writer.settled(found)
            with or_unknown(commit_id, self.location):
                lost_after, view = view.version, self.refresh_settled(view)
                # Another try of this creation may have won, and its log be sealed again by now.
                if self.find(commit_id, lost_after + 1, view.version):
                    return view
        if view.log_id != log_id or entry.log_id == log_id:
            raise AlreadyExists(
                f"there is a log at {self.location} already; load it, or use another location"
            )
        return view

    def commit(
        self,
        view: View[S],
        decide: Decide[S],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> Committed[S]:
        """Commit what `decide(view, passed)` drafts, on top of whatever was committed meanwhile.

        `passed` are all commits after `base`; decide judges every precondition on the view it is given and
        raises to give up. To retry, pass the same commit_id and the *original* base (default:
        view.version): a commit with that id since then is ours, and nothing is written. One PUT; one GET and
        one PUT more for each lost race. A change that may be `shared` is put together with those of other threads
        that use this log at the same time, if any: its `decide` does no I/O, and its draft takes away no file that
        another one may add; what shares its version with it is in the view's state, and not among `passed`
        (see `sharing`). Raises LogSealed, WriteFenced, ConflictError, CommitUnknown,
        StorageError (nothing happened) and what `decide` raises.
        """
        placing = self.placing(view, decide, commit_id or self.options.new_id(), base)
        placing.retried = shared and commit_id is not None
        before = _asked_before(placing)
        if before is None:
            before = self.sharing.commit(placing) if shared else self._placed(placing)
        note_commit(self.location, before.version, placing.commit_id)
        return before

    def _placed(self, placing: Placing[S]) -> Committed[S]:
        done = placing.place()
        if isinstance(done, Committed):
            return done
        return Committed(self.writer.settled(done), done.commit.version)

    @property
    def proposes(self) -> bool:
        """Whether `propose` is of use at the moment: other processes keep winning races for this log."""
        return self.sharing.has_courier

    def propose(
        self, view: View[S], decide: Decide[S], *, commit_id: str, base: int, retried: bool
    ) -> Committed[S] | None:
        """Have the rows that `decide` drafts committed with those of others, by this process or another one; return
        the commit of that id since `base` where it is `retried` and happened before.

        None where this did not happen: another process may do it yet. So the caller makes a change of the rows by
        itself then, and commits that under the same id and base. An exception of `decide` that is no LakelogError means
        that as well. Raises what `commit` raises.
        """
        placing = self.placing(view, decide, commit_id, base)
        placing.retried = retried
        done = _asked_before(placing) or self.sharing.propose(placing)
        if done is not None:
            note_commit(self.location, done.version, commit_id)
        return done

    def placing(
        self, view: View[S], decide: Decide[S], commit_id: str, base: int | None = None
    ) -> Placing[S]:
        """Return a change at `view` that is not put anywhere yet."""
        return Placing(self.writer, view, decide, commit_id, base)


def _asked_before(placing: Placing[S]) -> Committed[S] | None:
    """Return the commit that a retry finds. What others may yet apply is refused in the log, once it is placed."""
    try:
        return placing.asked_before()
    except ConflictError as error:
        if not placing.will_be_refused(error):
            raise
        return None


def refresh_many(pairs: Sequence[tuple["Log[S]", View[S]]]) -> list[View[S]]:
    """Return the heads of several logs: one parallel round over all of them when nothing is newer."""
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
