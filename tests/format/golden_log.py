"""The log behind the golden files: made by today's code from fixed ids and a fixed clock.

`python -m tests.format.golden_log FOLDER` writes it. Files of a released format are never edited or made anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lakelog.log import Commit, Draft, Dump, Log, LogOptions, MemoryStore, WriteRef
from lakelog.log.expiry import expire
from lakelog.log.keys import Keys

STORED = Path(__file__).parent / "log-1"
START_US = 1_767_225_600_000_000
ROOT = "t"
KEYS = Keys(ROOT)


class Lines:
    """Lines of text; all of them are kept in one manifest, which every dump writes anew."""

    def initial(self) -> tuple[str, ...]:
        return ()

    def apply(self, state: tuple[str, ...], commit: Commit, blobs: Sequence[bytes]) -> tuple[str, ...]:
        return (*state, *(blobs[e["blob"]].decode() if "blob" in e else e["line"] for e in commit.events))

    def dump(self, state: tuple[str, ...], version: int) -> Dump:
        name = f"{version:020d}-lines.txt"
        return Dump({"lines": len(state), "manifest": name}, {name: "\n".join(state).encode()}, (name,))

    def stored(self, dump: Dump) -> None:
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

    options = LogOptions(clock_us=clock_us, new_id=new_id, snapshot_every_versions=0)
    return Log(store, ROOT, Lines(), writer={"engine": "golden", "version": "1"}, options=options)


def build() -> MemoryStore:
    """Return a store with commits, a sidecar, a fence, a snapshot, the hint, a base, tombstones, a seal, and a
    commit that reopens the log after it."""
    store = MemoryStore(clock_us=lambda: START_US)
    log = golden_log(store)

    def add(draft: Draft) -> Callable[..., Draft]:
        return lambda view, passed: draft

    view = log.create(Draft(events=({"line": "first"}, {"line": 'ünï "quoted"'})), log_id="l" * 26)
    view = log.commit(view, add(Draft(events=({"blob": 0},), blobs=(b"from a sidecar",)))).view
    expire(log, 2)
    view = log.load()
    view = log.commit(view, add(Draft(events=({"line": "third"},), write=WriteRef(id="w1", version=2)))).view
    view = log.commit(view, add(Draft(events=({"blob": 0},), blobs=(b"kept sidecar",), fence=3))).view
    log.snapshot(view)
    view = log.commit(view, add(Draft(events=({"line": "last", "n": [1, 2.5, None, True]},)))).view
    log.commit(view, add(Draft(seals=True)))
    log.create(Draft(events=({"line": "anew"},)), log_id="m" * 26)
    return store


def main() -> None:
    folder = Path(sys.argv[1])
    store = build()
    for key in store.list_after(""):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(key) or b"")


if __name__ == "__main__":
    main()
