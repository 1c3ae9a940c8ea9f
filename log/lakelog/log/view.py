"""What a log shows its users and asks of them: views, drafts, projections. Pure: `advance` is the fold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from lakelog.log.errors import FormatError
from lakelog.log.format import FORMAT, Commit, Json, Root, WriteRef

S = TypeVar("S")
CLOCK_TOLERANCE_US = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a caller wants to commit.

    `blobs` become sidecars, written before the commit; events refer to them by their index. `write` is checked
    against the log's fence. `features` are those that every reader from now on must know. `fence`, if above the
    log's, makes writes that started before that version fail. After a draft that `seals`, nothing may follow.
    """

    events: tuple[dict[str, Json], ...] = ()
    blobs: tuple[bytes, ...] = ()
    write: WriteRef | None = None
    features: tuple[str, ...] = ()
    fence: int = 0
    seals: bool = False


@dataclass(frozen=True, slots=True)
class Dump:
    """A state as a small JSON `root` and the `blobs` that it needs and that are not durable yet.

    Blob names are unique for ever and start with the version as 20 digits and a dash. `uses` names every blob
    that the root refers to, also those written before; without it the log can never be expired.
    """

    root: Json
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    uses: Sequence[str] | None = None


class Projection(Protocol[S]):
    """How a room folds opaque commits into its own state. Pure, but for remembering what is durable."""

    def initial(self) -> S: ...

    def apply(self, state: S, commit: Commit, blobs: Sequence[bytes]) -> S: ...

    def dump(self, state: S, version: int) -> Dump:
        """May be called from another thread than the rest."""
        ...

    def stored(self, dump: Dump) -> None:
        """Take note that the blobs of `dump` are durable; called by the thread that called `dump`."""
        ...

    def load(self, root: Json) -> S:
        """Return the state without its blobs; they are read later, where needed, by Log.read_blobs."""
        ...


@dataclass(frozen=True, slots=True)
class View(Generic[S]):
    """The log as of one version. `base` is the number of the base that `state` was derived from, 0: none."""

    log_id: str
    version: int
    hash: str
    time_us: int
    state: S
    fence: int = 0
    sealed: bool = False
    features: tuple[str, ...] = ()
    base: int = 0


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
) -> View[S]:
    """Return the view one commit later. Raises FormatError where the commit does not continue this log."""
    check_succession(view, commit, location)
    return View(
        log_id=commit.log_id,
        version=commit.version,
        hash=commit_hash,
        time_us=commit.time_us,
        state=projection.apply(projection.initial() if commit.reopens else view.state, commit, blobs),
        fence=max(view.fence, commit.fence),
        sealed=commit.seals,
        features=tuple(sorted({*view.features, *commit.features})) if commit.features else view.features,
        base=view.base,
    )


def check_succession(view: View[S], commit: Commit, location: str) -> None:
    """Raise FormatError unless `commit` is the one after `view` in the same log."""
    if view.version and (commit.log_id != view.log_id) != commit.reopens:
        what = f"belongs to log {commit.log_id}, not to {view.log_id}"
    elif commit.version != view.version + 1:
        what = f"says that it is version {commit.version}, not {view.version + 1}"
    elif commit.prev != view.hash:
        what = f"continues another version {view.version} than the one before it"
    elif view.sealed and not commit.reopens:
        what = f"follows version {view.version}, which seals the log"
    elif commit.reopens and not view.sealed:
        what = f"reopens the log, but version {view.version} did not seal it"
    else:
        return
    raise FormatError(f"{location} {what}; restore the log's objects from one backup")


def view_of(root: Root, projection: Projection[S]) -> View[S]:
    return View(
        log_id=root.log_id,
        version=root.version,
        hash=root.commit_hash,
        time_us=root.time_us,
        state=projection.load(root.state),
        fence=root.fence,
        sealed=root.sealed,
        features=root.features,
        base=root.base,
    )


def root_of(view: View[S], dump: Dump, *, base: int | None = None) -> Root:
    return Root(
        format=FORMAT,
        log_id=view.log_id,
        version=view.version,
        commit_hash=view.hash,
        time_us=view.time_us,
        base=view.base if base is None else base,
        fence=view.fence,
        sealed=view.sealed,
        features=view.features,
        uses=None if dump.uses is None else tuple(sorted(dump.uses)),
        state=dump.root,
    )


def commit_time_us(previous_us: int, own_us: int, store_us: int | None) -> int:
    """Return the time of a commit: later than the one before it, and by the store's clock where they differ.

    A store has one clock for all its writers, so one writer's that is years ahead cannot carry the log's time
    away, and one that is behind only fails to advance it.
    """
    if store_us is not None and abs(own_us - store_us) > CLOCK_TOLERANCE_US:
        own_us = store_us
    return max(previous_us + 1, own_us)
