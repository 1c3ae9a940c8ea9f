"""The values between a log and its callers: views, drafts, projections. Pure: `advance` is the fold."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import msgspec

from lakelog.log.changes import lacks_feature, misfit
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, UnsupportedFormat
from lakelog.log.format import ABORTED, FORMAT, Commit, Json, SettledIntent, SnapshotRoot, Tombstone, WriteRef
from lakelog.log.grammar import shortened

S = TypeVar("S")
Entry = TypeVar("Entry", Commit, Tombstone, Commit | Tombstone)
CLOCK_TOLERANCE_US = 60_000_000
DAY_US = 24 * 3600 * 1_000_000
AHEAD_MAX_US = 366 * DAY_US
"""A log whose time is further ahead of its store's clock may take part in no transaction.

The transaction would give that time to the other logs. At the end of all times, nothing can be committed
after it.
"""

OFFERED_MAX = 8
"""Views that threads may offer at once. Older offers are forgotten, which costs readers time."""

UNREADABLE = (
    LakelogError, msgspec.MsgspecError, LookupError, ArithmeticError, ValueError, TypeError, AttributeError,
    RuntimeError, AssertionError, MemoryError,
)  # fmt: skip
"""The errors of a projection for a state or an event of another kind of log, or of a faulty client."""


@dataclass(frozen=True, slots=True)
class CarriedChange:
    """A change of another author that a draft carries: its facts for the commit, and its own events."""

    commit_id: str
    base: int
    writer: Mapping[str, Json]
    events: tuple[dict[str, Json], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A change that a caller wants to commit.

    `blobs` become sidecars, which are written before the commit; events refer to them by index. `write` is
    checked against the log's fence. With `proposals` the log may have proposals from here on. A `fence` above
    the log's makes writes fail if they started before that version. After a draft that `seals`, only two
    kinds may follow. A draft that `restores` brings the log back as it was. After a draft that `purges`, the
    log's content may be deleted.

    `carries` are changes of others that this change performs. They stand before it in its version, and happen
    with it or not at all. Their ids must be new, because no writer looks for an earlier attempt at them.

    `rows` have no other content beside them. The client that commits a proposal makes its events from them;
    they are never put as they are (see `proposals.pending.ByData`).
    """

    events: tuple[dict[str, Json], ...] = ()
    blobs: tuple[bytes, ...] = ()
    write: WriteRef | None = None
    proposals: bool = False
    fence: int = 0
    seals: bool = False
    restores: bool = False
    purges: bool = False
    carries: tuple[CarriedChange, ...] = ()
    rows: bytes = b""

    @property
    def all_events(self) -> tuple[dict[str, Json], ...]:
        """The events of the changes that it carries, then its own."""
        if not self.carries:
            return self.events
        return (*(event for change in self.carries for event in change.events), *self.events)


@dataclass(frozen=True, slots=True)
class StateDump:
    """A state as a small JSON `root`, and the `blobs` that it needs and that are not durable yet.

    Blob names are unique for ever, and start with the version as 20 digits and a dash. `uses` names every
    blob that the root refers to, including older ones. Without it the log can never expire. `features` are
    those that a reader of the root needs for its form.
    """

    root: Json
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    uses: Sequence[str] | None = None
    features: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FeatureNames:
    """Names of features. Every client has to know those of `readers`, and only writers those of `writers`."""

    readers: frozenset[str] = frozenset()
    writers: frozenset[str] = frozenset()

    def __or__(self, other: "FeatureNames") -> "FeatureNames":
        return FeatureNames(self.readers | other.readers, self.writers | other.writers)


class BlobRange(str):
    """The name of a blob, for reading only part of it: `size` bytes from `first` on.

    Code that knows only names returns the whole blob, and the reader cuts it.
    """

    first: int
    size: int

    def __new__(cls, name: str, first: int, size: int) -> "BlobRange":
        self = super().__new__(cls, name)
        self.first, self.size = first, size
        return self

    def of(self, blob: bytes) -> bytes:
        """Return the part, from a response that is the part or the whole blob."""
        return blob if len(blob) <= self.size else blob[self.first : self.first + self.size]


class StateProjection(Protocol[S]):
    """How a caller folds opaque commits into its own state. Pure, except that it remembers which blobs are durable.

    `known_features` are the features of its events and states that this client knows.
    """

    known_features: frozenset[str]

    def uses(self, commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
        """Return the features that the events of `commit` use.

        Every commit passes this before it is put. It names those that its log has not named.
        """
        ...

    def initial(self) -> S: ...

    def apply(self, state: S, commit: Commit, blobs: Sequence[bytes]) -> S: ...

    def dump(self, state: S, version: int, for_base: bool = False) -> StateDump:
        """Return the state's dump. Another thread may call this than calls the other methods.

        A dump `for_base` should use blobs that exist. Blobs that a base does not use are deleted, and newer
        snapshots may need them.
        """
        ...

    def stored(self, dump: StateDump) -> None:
        """Record that the blobs of `dump` are durable. The thread that called `dump` calls this."""
        ...

    def load(self, root: Json) -> S:
        """Return the state without its blobs. Log.read_blobs reads them later, if needed."""
        ...


class NoFeatures:
    """The part of a projection that uses no features."""

    known_features: frozenset[str] = frozenset()

    def uses(self, commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
        return FeatureNames()


@dataclass(frozen=True, slots=True)
class LogView(Generic[S]):
    """The log as of a version. `base` is the number of the base that `state` was derived from, 0 if there is none.

    `purged` implies `sealed`. `settles` is the outcome of the intent at `version`, which the next commit
    states. `steps` is not the log's. An overlay folds changes onto a version before they are committed, and
    counts them here.
    """

    log_id: str
    version: int
    hash: str
    time_us: int
    state: S
    fence: int = 0
    sealed: bool = False
    features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()
    base: int = 0
    purged: bool = False
    settles: SettledIntent | None = None
    steps: int = 0

    def is_same(self, other: "LogView[S]") -> bool:
        """Return whether both have the same state: the same version of a log, with as many steps on top."""
        return self.hash == other.hash and self.steps == other.steps


@dataclass(frozen=True, slots=True)
class GatheredChanges(Generic[S]):
    """A client's result for the rows of several changes: the `events` of each, and the `draft` of another change.

    The `draft` comes after the changes. A change that the client leaves alone has None for events. `again`
    returns the draft of the same rows for another view, None if they have to be gathered again. `discard`
    removes written objects that no version uses.
    """

    events: Sequence[tuple[dict[str, Json], ...] | None]
    draft: Draft
    again: Callable[[LogView[S]], Draft | None]
    discard: Callable[[], None]


@dataclass(frozen=True, slots=True)
class CommittedChange(Generic[S]):
    """A commit that happened at `version`; `view` is at that version or a later version."""

    view: LogView[S]
    version: int


class NewestView(Generic[S]):
    """The newest view that was offered and not yet taken. Threads may share it. It has no lock. If a process
    forked while a thread held a lock, the lock would stay locked in the child."""

    def __init__(self) -> None:
        self._offered: deque[LogView[S]] = deque(maxlen=OFFERED_MAX)

    def offer(self, view: LogView[S]) -> None:
        self._offered.append(view)

    def take(self) -> LogView[S] | None:
        newest: LogView[S] | None = None
        with suppress(IndexError):
            for _ in range(OFFERED_MAX):
                view = self._offered.popleft()
                if newest is None or newest.version < view.version:
                    newest = view
        return newest


def empty_view(projection: StateProjection[S]) -> LogView[S]:
    return LogView(log_id="", version=0, hash="", time_us=0, state=projection.initial())


def advance(
    view: LogView[S],
    commit: Commit,
    commit_hash: str,
    blobs: Sequence[bytes],
    projection: StateProjection[S],
    location: str,
    settled_intent: SettledIntent | None = None,
) -> LogView[S]:
    """Return the view a commit later; `settled_intent` is the outcome of an intent.

    Raises FormatError if the commit does not continue this log.
    """
    if view.steps:
        raise InvalidInput(f"{location} continues a version, and was given what an overlay has made of one")
    check_succession(view, commit, location)
    check_settled(commit, settled_intent, location)
    effect = effective(commit, settled_intent)
    if effect is None:
        return replace(view, version=commit.version, hash=commit_hash, settles=settled_intent)
    try:
        state = projection.apply(projection.initial() if effect.reopens else view.state, effect, blobs)
    except InvalidInput:
        raise  # the log may be of another kind
    except FormatError as error:
        if location in error.message:
            raise
        raise type(error)(f"{location}: {error.message}") from error
    except UNREADABLE as error:
        raise FormatError(
            f"{location} holds an event that cannot be applied ({shortened(repr(error))}): find out which client wrote "
            "this object"
        ) from error
    return LogView(
        log_id=effect.log_id,
        version=effect.version,
        hash=commit_hash,
        time_us=effect.time_us,
        state=state,
        fence=max(view.fence, effect.fence),
        sealed=effect.seals or effect.purges,
        # Another log begins with a reopening, and its state has nothing of the former log.
        features=_with(() if effect.reopens else view.features, effect.features),
        writer_features=_with(() if effect.reopens else view.writer_features, effect.writer_features),
        base=view.base,
        purged=effect.purges,
        settles=settled_intent,
    )


def _with(names: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*names, *new})) if new else names


def effective(entry: Entry, settled_intent: SettledIntent | None) -> Entry | None:
    """Return an entry's effect: None if it was aborted; a committed intent gets its transaction's time."""
    if isinstance(entry, Tombstone):
        return None if entry.outcome == ABORTED else entry
    if settled_intent is None:
        return entry
    return (
        None
        if settled_intent.outcome == ABORTED
        else msgspec.structs.replace(entry, time_us=settled_intent.time_us)
    )


def check_succession(view: LogView[S], commit: Commit, location: str) -> None:
    """Raise FormatError unless `commit` is the next commit after `view` in the same log."""
    after_seal = (commit.reopens, commit.restores, commit.purges)
    if view.version and (commit.log_id != view.log_id) != commit.reopens:
        problem = f"belongs to log {commit.log_id}, not to {view.log_id}"
    elif commit.version != view.version + 1:
        problem = f"says that it is version {commit.version}, not {view.version + 1}"
    elif commit.prev != view.hash:
        problem = f"continues another version {view.version} than the one before it"
    elif view.purged and not commit.reopens:
        problem = f"follows version {view.version}, which purges the log"
    elif view.sealed and not any(after_seal):
        problem = f"follows version {view.version}, which seals the log"
    elif any(after_seal) and not view.sealed:
        verb = ("reopens", "restores", "purges")[after_seal.index(True)]
        problem = f"{verb} the log, but version {view.version} did not seal it"
    elif sum(after_seal) > 1 or (commit.seals and any(after_seal)):
        problem = "does more than one of sealing, reopening, restoring and purging"
    elif (changes_problem := misfit(commit)) is not None:
        problem = changes_problem
    elif commit.changes and lacks_feature(commit, view.writer_features):
        problem = (
            "has changes that were proposed or refused, and does not say that it needs the feature for them"
        )
    elif commit.settles != view.settles:
        problem = f"says that {_as_text(commit.settles)} before it, but {_as_text(view.settles)}"
    else:
        return
    raise FormatError(f"{location} {problem}; restore the log's objects from one backup")


def check_settled(commit: Commit, settled_intent: SettledIntent | None, location: str) -> None:
    """Raise FormatError unless only an intent was settled, and not before its own time."""
    if (commit.intent is None) != (settled_intent is None):
        problem = (
            "is an intent that was not settled"
            if settled_intent is None
            else "is settled, but is not an intent"
        )
    elif commit.intent is not None and (commit.version == 1 or commit.reopens):
        problem = "begins a log, but is an intent"
    elif (
        settled_intent is not None
        and settled_intent.outcome != ABORTED
        and settled_intent.time_us < commit.time_us
    ):
        problem = (
            f"was committed at the time {settled_intent.time_us} µs, before its own of {commit.time_us} µs"
        )
    else:
        return
    raise FormatError(f"{location} {problem}; restore the log's objects from one backup")


def _as_text(settled_intent: SettledIntent | None) -> str:
    if settled_intent is None:
        return "there was no intent"
    return f"an intent {settled_intent.outcome}" + (
        f" at {settled_intent.time_us} µs" if settled_intent.time_us else ""
    )


def view_of(root: SnapshotRoot, projection: StateProjection[S], location: str) -> LogView[S]:
    """Return the view of a root at `location`.

    Raises FormatError if its state cannot be read, InvalidInput if the state may be another kind of log's.
    """
    try:
        state = projection.load(root.state)
    except InvalidInput:
        raise
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{location}: {error.message}") from error
    except UNREADABLE as error:
        reason = error.message if isinstance(error, LakelogError) else repr(error)
        raise FormatError(
            f"{location} has a state that cannot be read ({shortened(reason)}): restore it from a backup, or find out "
            "which client wrote it"
        ) from error
    return LogView(
        log_id=root.log_id,
        version=root.version,
        hash=root.commit_hash,
        time_us=root.time_us,
        state=state,
        fence=root.fence,
        sealed=root.sealed,
        features=root.features,
        writer_features=root.writer_features,
        base=root.base,
        purged=root.purged,
        settles=root.settles,
    )


def root_of(view: LogView[S], dump: StateDump, *, base: int | None = None) -> SnapshotRoot:
    if view.steps:
        raise InvalidInput("a snapshot is of a version, not of what an overlay has made of one")
    return SnapshotRoot(
        format=FORMAT,
        log_id=view.log_id,
        version=view.version,
        commit_hash=view.hash,
        time_us=view.time_us,
        base=view.base if base is None else base,
        fence=view.fence,
        sealed=view.sealed,
        purged=view.purged,
        settles=view.settles,
        features=view.features,
        writer_features=view.writer_features,
        state_features=tuple(sorted(dump.features)),
        uses=None if dump.uses is None else tuple(sorted(dump.uses)),
        state=dump.root,
    )


def is_far_ahead(time_us: int, store_us: int | None) -> bool:
    """Return whether a log's time is ahead of the store's by more than wrong clocks explain."""
    return store_us is not None and time_us > store_us + AHEAD_MAX_US


def commit_time_us(previous_us: int, own_us: int, store_us: int | None) -> int:
    """Return the time of a commit: later than the commit before it, and by the store's clock if the clocks differ.

    All writers share a store's clock. So a writer's clock that is years ahead cannot move the log's time
    ahead. A clock that is behind only fails to advance it.
    """
    if store_us is not None and abs(own_us - store_us) > CLOCK_TOLERANCE_US:
        own_us = store_us
    return max(previous_us + 1, own_us)
