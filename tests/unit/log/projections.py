"""A small projection for tests of the log: words in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lakelog.log import (
    Commit,
    Draft,
    FeatureNames,
    Log,
    LogOptions,
    LogView,
    MemoryStore,
    ObjectStore,
    StateDump,
)

Words = tuple[str, ...]
START_US = 1_700_000_000_000_000


class WordsProjection:
    """Events say which features they use: `needs` those of readers, `needs_of_writers` those of writers."""

    def __init__(self, known: Collection[str] = ()) -> None:
        self.known_features = frozenset(known)

    def uses(self, commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
        readers, writers = (
            frozenset(name for event in commit.events for name in event.get(member, ()))
            for member in ("needs", "needs_of_writers")
        )
        return FeatureNames(readers, writers)

    def initial(self) -> Words:
        return ()

    def apply(self, state: Words, commit: Commit, blobs: Sequence[bytes]) -> Words:
        words = [
            blobs[event["blob"]].decode() if "blob" in event else event["word"] for event in commit.events
        ]
        return (*state, *words)

    def dump(self, state: Words, version: int, for_base: bool = False) -> StateDump:
        return StateDump(list(state), {}, ())

    def stored(self, dump: StateDump) -> None:
        return

    def load(self, root: list[str]) -> Words:
        return tuple(root)


class Clock:
    """A clock that tests set; every reading is a second later."""

    def __init__(self, now_us: int = START_US) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        self.now_us += 1_000_000
        return self.now_us


def counting_ids(prefix: str = "id") -> Callable[[], str]:
    count = 0

    def next_id() -> str:
        nonlocal count
        count += 1
        return f"{prefix}{count}"

    return next_id


def inline(name: str, work: Callable[[], None]) -> None:
    work()


def new_log(
    store: ObjectStore | None = None,
    *,
    every: int = 0,
    clock: Clock | None = None,
    known: Collection[str] = (),
) -> Log[Words]:
    clock = clock or Clock()
    return Log(
        store or MemoryStore(clock_us=lambda: clock.now_us),
        "t",
        WordsProjection(known),
        options=LogOptions(
            clock_us=clock,
            new_id=counting_ids(),
            sleep_s=lambda seconds: None,
            in_background=inline,
            snapshot_every_versions=every,
        ),
    )


def say(word: str) -> Callable[[LogView[Words], Sequence[Commit]], Draft]:
    return lambda view, passed: Draft(events=({"word": word},))


def begin(log: Log[Words]) -> LogView[Words]:
    return log.create(Draft(events=({"word": "one"},)), log_id="log")


def grown(log: Log[Words], versions: int) -> LogView[Words]:
    view = begin(log)
    while view.version < versions:
        view = log.commit(view, say(f"w{view.version + 1}")).view
    return view
