"""The values between a log and its callers: views, drafts, projections. Pure: `advance` is the fold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import msgspec

from lakelog.log.changes import lacks_feature, misfit
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, UnsupportedFormat
from lakelog.log.format import ABORTED, FORMAT, Commit, Json, Root, Settled, Tombstone, WriteRef
from lakelog.log.grammar import shortened

S = TypeVar("S")
Entry = TypeVar("Entry", Commit, Tombstone, Commit | Tombstone)
CLOCK_TOLERANCE_US = 60_000_000
DAY_US = 24 * 3600 * 1_000_000
AHEAD_MAX_US = 366 * DAY_US
"""A log whose time is further ahead of its store's clock takes part in no transaction, which would give its time to the
others: at the end of all times nothing can be committed after it."""

UNREADABLE = (
    LakelogError, msgspec.MsgspecError, LookupError, ArithmeticError, ValueError, TypeError, AttributeError,
    RuntimeError, AssertionError, MemoryError,
)  # fmt: skip
"""What a projection raises for a state or an event of another kind of log, or of a faulty client."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A change of another author that a draft carries out: what its commit says of it, and its own events."""

    commit_id: str
    base: int
    writer: Mapping[str, Json]
    events: tuple[dict[str, Json], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a caller wants to commit.

    `blobs` become sidecars, written before the commit; events refer to them by their index. `write` is checked
    against the log's fence. `features` are those that every reader from now on must know. `fence`, if above the
    log's, makes writes that started before that version fail. After a draft that `seals`, nothing may follow but one
    that `restores` the log as it was, or one that `purges` it: then what it held may be deleted.

    `carries` are changes of others that are done by this one: they stand before it in its version, and happen with it
    or not at all. Their ids must be new: no writer looks for an earlier attempt at them.

    `rows` are what the client that commits a proposal makes its events of, and nothing else is with them: they are
    never put as they are (see `proposals.pending.ByData`).
    """

    events: tuple[dict[str, Json], ...] = ()
    blobs: tuple[bytes, ...] = ()
    write: WriteRef | None = None
    features: tuple[str, ...] = ()
    fence: int = 0
    seals: bool = False
    restores: bool = False
    purges: bool = False
    carries: tuple[Carried, ...] = ()
    rows: bytes = b""

    @property
    def all_events(self) -> tuple[dict[str, Json], ...]:
        """The events of what it carries, and its own."""
        if not self.carries:
            return self.events
        return (*(event for each in self.carries for event in each.events), *self.events)


@dataclass(frozen=True, slots=True)
class Dump:
    """A state as a small JSON `root` and the `blobs` that it needs and that are not durable yet.

    Blob names are unique for ever and start with the version as 20 digits and a dash. `uses` names every blob
    that the root refers to, also those written before; without it the log can never be expired.
    """

    root: Json
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    uses: Sequence[str] | None = None


class BlobRange(str):
    """The name of a blob of which a part is asked for: `size` bytes from `first` on. What knows names only returns the
    whole blob, and the reader cuts it."""

    first: int
    size: int

    def __new__(cls, name: str, first: int, size: int) -> "BlobRange":
        self = super().__new__(cls, name)
        self.first, self.size = first, size
        return self

    def of(self, blob: bytes) -> bytes:
        """Return the part, of an answer that is it or the whole blob."""
        return blob if len(blob) <= self.size else blob[self.first : self.first + self.size]


class Projection(Protocol[S]):
    """How a caller folds opaque commits into its own state. Pure, except that it remembers what is durable."""

    def initial(self) -> S: ...

    def apply(self, state: S, commit: Commit, blobs: Sequence[bytes]) -> S: ...

    def dump(self, state: S, version: int, for_base: bool = False) -> Dump:
        """May be called from another thread than the rest. One `for_base` should use blobs that were written before:
        what a base does not use is deleted, and newer snapshots may need it."""
        ...

    def stored(self, dump: Dump) -> None:
        """Take note that the blobs of `dump` are durable; called by the thread that called `dump`."""
        ...

    def load(self, root: Json) -> S:
        """Return the state without its blobs; they are read later, where needed, by Log.read_blobs."""
        ...


@dataclass(frozen=True, slots=True)
class View(Generic[S]):
    """The log as of one version. `base` is the number of the base that `state` was derived from, 0: none.

    `purged` implies `sealed`. `settles` is what became of the intent at `version`: the next commit says so. `steps` is
    not the log's: an overlay that folds changes onto a version before they are committed counts them here.
    """

    log_id: str
    version: int
    hash: str
    time_us: int
    state: S
    fence: int = 0
    sealed: bool = False
    features: tuple[str, ...] = ()
    base: int = 0
    purged: bool = False
    settles: Settled | None = None
    steps: int = 0

    def is_same(self, other: "View[S]") -> bool:
        """Return whether both have one state: the same version of one log, with as many steps on top of it."""
        return self.hash == other.hash and self.steps == other.steps


@dataclass(frozen=True, slots=True)
class Gathered(Generic[S]):
    """What one client made of the rows of several changes: the `events` of each, None of one that it leaves alone, and
    the `draft` of one change more, which comes after them.

    `again` returns the draft of the same rows for another view, None where they have to be gathered anew. `discard`
    removes what was written, of which no version has anything.
    """

    events: Sequence[tuple[dict[str, Json], ...] | None]
    draft: Draft
    again: Callable[[View[S]], Draft | None]
    discard: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Committed(Generic[S]):
    """A commit that happened, at `version`; `view` is at that version or a later one."""

    view: View[S]
    version: int


def empty_view(projection: Projection[S]) -> View[S]:
    return View(log_id="", version=0, hash="", time_us=0, state=projection.initial())


def advance(
    view: View[S],
    commit: Commit,
    commit_hash: str,
    blobs: Sequence[bytes],
    projection: Projection[S],
    location: str,
    settled: Settled | None = None,
) -> View[S]:
    """Return the view one commit later; `settled` is what became of an intent.

    Raises FormatError where the commit does not continue this log.
    """
    if view.steps:
        raise InvalidInput(f"{location} continues a version, and was given what an overlay has made of one")
    check_succession(view, commit, location)
    check_settled(commit, settled, location)
    effect = effective(commit, settled)
    if effect is None:
        return replace(view, version=commit.version, hash=commit_hash, settles=settled)
    try:
        state = projection.apply(projection.initial() if effect.reopens else view.state, effect, blobs)
    except InvalidInput:
        raise  # it may be a log of another kind
    except FormatError as error:
        if location in error.message:
            raise
        raise type(error)(f"{location}: {error.message}") from error
    except UNREADABLE as error:
        raise FormatError(
            f"{location} holds an event that cannot be applied ({shortened(repr(error))}): find out which client wrote "
            "this object"
        ) from error
    return View(
        log_id=effect.log_id,
        version=effect.version,
        hash=commit_hash,
        time_us=effect.time_us,
        state=state,
        fence=max(view.fence, effect.fence),
        sealed=effect.seals or effect.purges,
        features=tuple(sorted({*view.features, *effect.features})) if effect.features else view.features,
        base=view.base,
        purged=effect.purges,
        settles=settled,
    )


def effective(entry: Entry, settled: Settled | None) -> Entry | None:
    """Return an entry as it counts: nothing of an aborted intent, and a committed one at the transaction's time."""
    if isinstance(entry, Tombstone):
        return None if entry.outcome == ABORTED else entry
    if settled is None:
        return entry
    return None if settled.outcome == ABORTED else msgspec.structs.replace(entry, time_us=settled.time_us)


def check_succession(view: View[S], commit: Commit, location: str) -> None:
    """Raise FormatError unless `commit` is the one after `view` in the same log."""
    after_seal = (commit.reopens, commit.restores, commit.purges)
    if view.version and (commit.log_id != view.log_id) != commit.reopens:
        what = f"belongs to log {commit.log_id}, not to {view.log_id}"
    elif commit.version != view.version + 1:
        what = f"says that it is version {commit.version}, not {view.version + 1}"
    elif commit.prev != view.hash:
        what = f"continues another version {view.version} than the one before it"
    elif view.purged and not commit.reopens:
        what = f"follows version {view.version}, which purges the log"
    elif view.sealed and not any(after_seal):
        what = f"follows version {view.version}, which seals the log"
    elif any(after_seal) and not view.sealed:
        verb = ("reopens", "restores", "purges")[after_seal.index(True)]
        what = f"{verb} the log, but version {view.version} did not seal it"
    elif sum(after_seal) > 1 or (commit.seals and any(after_seal)):
        what = "does more than one of sealing, reopening, restoring and purging"
    elif (wrong := misfit(commit)) is not None:
        what = wrong
    elif commit.changes and lacks_feature(commit, view.features):
        what = (
            "has changes that were proposed or refused, and does not say that it needs the feature for them"
        )
    elif commit.settles != view.settles:
        what = f"says that {_as_text(commit.settles)} before it, but {_as_text(view.settles)}"
    else:
        return
    raise FormatError(f"{location} {what}; restore the log's objects from one backup")


def check_settled(commit: Commit, settled: Settled | None, location: str) -> None:
    """Raise FormatError unless an intent, and nothing else, was settled, and not before its own time."""
    if (commit.intent is None) != (settled is None):
        what = "is an intent that was not settled" if settled is None else "is settled, but is not an intent"
    elif commit.intent is not None and (commit.version == 1 or commit.reopens):
        what = "begins a log, but is an intent"
    elif settled is not None and settled.outcome != ABORTED and settled.time_us < commit.time_us:
        what = f"was committed at the time {settled.time_us} µs, before its own of {commit.time_us} µs"
    else:
        return
    raise FormatError(f"{location} {what}; restore the log's objects from one backup")


def _as_text(settled: Settled | None) -> str:
    if settled is None:
        return "there was no intent"
    return f"an intent {settled.outcome}" + (f" at {settled.time_us} µs" if settled.time_us else "")


def view_of(root: Root, projection: Projection[S], location: str) -> View[S]:
    """Return the view of a root that stands at `location`. FormatError where its state cannot be read, InvalidInput
    where it may be that of another kind of log."""
    try:
        state = projection.load(root.state)
    except (InvalidInput, UnsupportedFormat):
        raise
    except UNREADABLE as error:
        said = error.message if isinstance(error, LakelogError) else repr(error)
        raise FormatError(
            f"{location} has a state that cannot be read ({shortened(said)}): restore it from a backup, or find out "
            "which client wrote it"
        ) from error
    return View(
        log_id=root.log_id,
        version=root.version,
        hash=root.commit_hash,
        time_us=root.time_us,
        state=state,
        fence=root.fence,
        sealed=root.sealed,
        features=root.features,
        base=root.base,
        purged=root.purged,
        settles=root.settles,
    )


def root_of(view: View[S], dump: Dump, *, base: int | None = None) -> Root:
    if view.steps:
        raise InvalidInput("a snapshot is of a version, not of what an overlay has made of one")
    return Root(
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
        uses=None if dump.uses is None else tuple(sorted(dump.uses)),
        state=dump.root,
    )


def is_far_ahead(time_us: int, store_us: int | None) -> bool:
    """Return whether a log's time is ahead of the store's by more than wrong clocks explain."""
    return store_us is not None and time_us > store_us + AHEAD_MAX_US


def commit_time_us(previous_us: int, own_us: int, store_us: int | None) -> int:
    """Return the time of a commit: later than the one before it, and by the store's clock where they differ.

    A store has one clock for all its writers, so a writer's clock that is years ahead cannot move the log's time
    ahead, and one that is behind only fails to advance it.
    """
    if store_us is not None and abs(own_us - store_us) > CLOCK_TOLERANCE_US:
        own_us = store_us
    return max(previous_us + 1, own_us)
