"""The log behind the golden files: made by today's code from fixed ids and a fixed clock.

`python -m tests.format.golden_log FOLDER` writes it. Files of a released format are never edited or made anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lakelog.log import (
    Commit,
    Draft,
    Log,
    LogOptions,
    LogPart,
    LogView,
    MemoryStore,
    NoFeatures,
    StateDump,
    WarehouseDecisions,
    WriteRef,
    commit_together,
)
from lakelog.log.expiry import expire
from lakelog.log.format import WINDOW, ChangeRefusal, Proposal, ProposedChange, encode
from lakelog.log.keys import LogKeys
from lakelog.log.writing import DecidedChange, PlacedCommit

STORED = Path(__file__).parent / "log-1"
START_US = 1_767_225_600_000_000
ROOT = "t"
KEYS = LogKeys(ROOT)
LEFT, RIGHT, PURGED, PROPOSED = "u", "deep/v", "w", "x"


def one_after_the_other(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()


class Lines(NoFeatures):
    """Lines of text; all of them are kept in one manifest, which every dump writes anew."""

    def initial(self) -> tuple[str, ...]:
        return ()

    def apply(self, state: tuple[str, ...], commit: Commit, blobs: Sequence[bytes]) -> tuple[str, ...]:
        return (*state, *(blobs[e["blob"]].decode() if "blob" in e else e["line"] for e in commit.events))

    def dump(self, state: tuple[str, ...], version: int, for_base: bool = False) -> StateDump:
        name = f"{version:020d}-lines.txt"
        return StateDump({"lines": len(state), "manifest": name}, {name: "\n".join(state).encode()}, (name,))

    def stored(self, dump: StateDump) -> None:
        return

    def load(self, root: dict[str, object]) -> tuple[str, ...]:
        return (f"{root['lines']} lines in {root['manifest']}",)


def golden_log(store: MemoryStore) -> Log[tuple[str, ...]]:
    now_us, ids = START_US, 0

    def clock_us() -> int:
        nonlocal now_us
        now_us += 1_000_000
        return now_us

    def new_id() -> str:
        nonlocal ids
        ids += 1
        return f"{'a' * 24}{ids:02d}"

    options = LogOptions(
        clock_us=clock_us,
        new_id=new_id,
        sleep_s=lambda seconds: None,
        in_parallel=one_after_the_other,
        snapshot_every_versions=0,
    )
    return Log(store, ROOT, Lines(), writer={"engine": "golden", "version": "1"}, options=options)


def build() -> MemoryStore:
    """Return a store with a log of all that one log can hold (see `build_alone`), three that have transactions, and one
    that has proposals."""
    store = MemoryStore(clock_us=lambda: START_US)
    log = golden_log(store)
    build_alone(log)
    build_together(log)
    build_proposed(log)
    return store


def add(draft: Draft) -> Callable[..., Draft]:
    return lambda view, passed: draft


def build_alone(log: Log[tuple[str, ...]]) -> None:
    """Commits, a sidecar, a fence, a snapshot, the hint, a base, tombstones, a seal, and a commit that reopens."""
    view = log.create(Draft(events=({"line": "first"}, {"line": 'ünï "quoted"'})), log_id="l" * 26)
    view = shared_view(log, view, ("one of two", "two of two"))
    view = log.commit(view, add(Draft(events=({"blob": 0},), blobs=(b"from a sidecar",)))).view
    expire(log, 3)
    view = log.load()
    view = log.commit(view, add(Draft(events=({"line": "third"},), write=WriteRef(id="w1", version=3)))).view
    view = shared_view(log, view, ("by another thread", "by a third one"))
    view = log.commit(view, add(Draft(events=({"blob": 0},), blobs=(b"kept sidecar",), fence=4))).view
    log.snapshot(view)
    view = log.commit(view, add(Draft(events=({"line": "last", "n": [1, 2.5, None, True]},)))).view
    log.commit(view, add(Draft(seals=True)))
    log.create(Draft(events=({"line": "anew"},)), log_id="m" * 26)


def shared_view(
    log: Log[tuple[str, ...]], view: LogView[tuple[str, ...]], lines: Sequence[str]
) -> LogView[tuple[str, ...]]:
    """Put a version of several changes, the last of which has a write."""
    last = WriteRef(id="w-shared", version=view.version)
    drafts = [Draft(events=({"line": line},)) for line in lines]
    drafts[-1] = replace(drafts[-1], write=last)
    changes = [
        DecidedChange(log.options.new_id(), view.version, draft, {"engine": "golden", "thread": number})
        for number, draft in enumerate(drafts, 1)
    ]
    placed_commit = log.writer.put_together(view, changes)
    assert isinstance(placed_commit, PlacedCommit)
    return log.writer.settled(placed_commit)


class Died(BaseException):
    """The coordinator is gone before it decides."""


def die() -> None:
    raise Died


def build_together(log: Log[tuple[str, ...]]) -> None:
    """Intents, committed, aborted and undecided, their decisions and tombstones, a snapshot and a base at an intent, a
    log that was restored and one that was purged."""
    left_log, right, purged_log = (
        Log(log.store, name, Lines(), writer={"engine": "golden", "version": "1"}, options=log.options)
        for name in (LEFT, RIGHT, PURGED)
    )
    for own, log_id in ((left_log, "n"), (right, "o"), (purged_log, "p")):
        own.create(Draft(events=({"line": "first"},)), log_id=log_id * 26)

    def both(in_left: Draft, in_right: Draft, *, dies: bool = False) -> None:
        parts = [
            LogPart(own.keys.folder, own, own.load(), add(draft))
            for own, draft in ((left_log, in_left), (right, in_right))
        ]
        try:
            commit_together(parts, decisions=WarehouseDecisions(log.store), validate=die if dies else None)
        except Died:
            assert dies

    line = Draft(events=({"line": "together"},))
    both(Draft(events=({"blob": 0},), blobs=(b"kept sidecar",)), line)
    left_log.commit(left_log.load(), add(Draft(events=({"line": "settles"},))))
    both(Draft(events=({"line": "never"},)), Draft(events=({"line": "never"},)), dies=True)
    right.commit(right.load(), add(Draft(events=({"line": "settles"},))))
    both(Draft(seals=True), line)
    expire(right, 5)
    both(Draft(events=({"line": "restored"},), restores=True), line)
    left_log.snapshot(left_log.load())
    both(Draft(events=({"line": "perhaps"},)), Draft(events=({"line": "perhaps"},)), dies=True)
    purged_log.commit(purged_log.load(), add(Draft(seals=True)))
    purged_log.commit(purged_log.load(), add(Draft(purges=True)))


def build_proposed(log: Log[tuple[str, ...]]) -> None:
    """A proposal of two changes, and a version that applies one of them and refuses the other."""
    own = Log(log.store, PROPOSED, Lines(), writer={"engine": "golden", "version": "1"}, options=log.options)
    writer = {"engine": "golden", "thread": 1}
    view = own.create(Draft(events=({"line": "first"},)), log_id="q" * 26)
    marking_change = DecidedChange(
        log.options.new_id(), view.version, Draft(events=({"line": "may have proposals"},)), writer
    )
    marked_commit = own.writer.put_together(view, [marking_change], marks=True)
    assert isinstance(marked_commit, PlacedCommit)
    view = own.writer.settled(marked_commit)
    line, ids = {"line": "proposed"}, [log.options.new_id() for _ in range(2)]
    proposal = Proposal(
        format=1,
        log_id=view.log_id,
        seen=view.version,
        until=view.version + WINDOW,
        changes=tuple(ProposedChange(commit_id=id, base=1, writer=writer, events=(line,)) for id in ids),
    )
    log.store.put(own.keys.proposal(view.version, ids[0]), encode(proposal))
    refusal = ChangeRefusal(kind="conflict", message="another change is in its way", version=2, by=ids[0])
    decided_changes = [
        DecidedChange(ids[0], 1, Draft(events=(line,)), writer, seen=view.version),
        DecidedChange(ids[1], 1, Draft(), writer, seen=view.version, refused=refusal),
    ]
    placed_commit = own.writer.put_together(view, decided_changes)
    assert isinstance(placed_commit, PlacedCommit)


def main() -> None:
    folder = Path(sys.argv[1])
    store = build()
    for key in store.list_after(""):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(key) or b"")


if __name__ == "__main__":
    main()
