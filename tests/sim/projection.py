"""The subject of the simulated log: operations, claims that a single operation may make, and writes with a data object.

The operations themselves are in manifests, some of which every few versions replace, as a table's are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lakelog.log import (
    Commit,
    ConflictError,
    Draft,
    FeatureNames,
    GatheredChanges,
    Json,
    LogView,
    ObjectStore,
    StateDump,
    StorageError,
    WriteRef,
)
from lakelog.log.changes import each_change

CHUNK = 4
COLOURS, RULES = "colours", "rules"
"""A feature that readers have to know, and one of writers."""
KNOWN = (COLOURS, RULES)


@dataclass(frozen=True)
class Chunk:
    """Operations, in memory or in the manifest `name`."""

    name: str = ""
    operations: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    count: int = 0
    digest: str = ""
    claims: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    chunks: tuple[Chunk, ...] = ()


def fold(state: State, commit: Commit, blobs: Sequence[bytes]) -> State:
    for part in each_change(commit):
        for event in part.events:
            state = _with(state, part, event, blobs)
    return state


def _with(state: State, commit: Commit, event: Json, blobs: Sequence[bytes]) -> State:
    operation = blobs[event["blob"]].decode() if "blob" in event else event["op"]
    last = state.chunks[-1] if state.chunks else Chunk(name="closed")
    chunks = state.chunks
    if last.name or len(last.operations) >= CHUNK:
        chunks = (*chunks, Chunk(operations=(operation,)))
    else:
        chunks = (*chunks[:-1], Chunk(operations=(*last.operations, operation)))
    return State(
        count=state.count + 1,
        digest=hashlib.sha256(f"{state.digest} {operation}".encode()).hexdigest()[:16],
        claims=(state.claims | {event.get("claim", "")}) - {event.get("release", ""), ""},
        writes=state.writes | {commit.write.id} if commit.write else state.writes,
        chunks=chunks,
    )


class OperationsProjection:
    """An event says which features it uses: `needs` those of readers, `needs_of_writers` those of writers."""

    def __init__(self, known: Collection[str] = KNOWN) -> None:
        self.known_features = frozenset(known)
        self.durable: dict[tuple[str, ...], str] = {}

    def uses(self, commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
        readers, writers = (
            frozenset(event[member] for event in commit.events if member in event)
            for member in ("needs", "needs_of_writers")
        )
        return FeatureNames(readers, writers)

    def initial(self) -> State:
        return State()

    def apply(self, state: State, commit: Commit, blobs: Sequence[bytes]) -> State:
        return fold(state, commit, blobs)

    def dump(self, state: State, version: int, for_base: bool = False) -> StateDump:
        blobs: dict[str, bytes] = {}
        names = []
        for chunk in state.chunks:
            name = chunk.name or self.durable.get(chunk.operations, "")
            if not name:
                data = "\n".join(chunk.operations).encode()
                name = f"{version:020d}-{hashlib.sha256(data).hexdigest()[:16]}.txt"
                blobs[name] = data
            names.append(name)
        root: dict[str, Json] = {
            "count": state.count,
            "digest": state.digest,
            "claims": sorted(state.claims),
            "writes": sorted(state.writes),
            "chunks": names,
        }
        return StateDump(root, blobs, names)

    def stored(self, dump: StateDump) -> None:
        for name, data in dump.blobs.items():
            self.durable[tuple(data.decode().split("\n"))] = name

    def load(self, root: Json) -> State:
        return State(
            count=root["count"],
            digest=root["digest"],
            claims=frozenset(root["claims"]),
            writes=frozenset(root["writes"]),
            chunks=tuple(Chunk(name=name) for name in root["chunks"]),
        )


class OperationsByData:
    """Decides operations that others propose: a claim that another one has is their own to give up. Rows are the id of
    an operation, and become a data object of all of them in the `store`."""

    def __init__(self, store: ObjectStore | None = None, new_id: Callable[[], str] = str) -> None:
        self._store = store
        self._new_id = new_id

    def lets_pass(self, commit: Commit) -> bool:
        return True

    def redo(self, view: LogView[State], draft: Draft) -> Draft:
        for event in draft.events:
            is_taken, free = event.get("claim", "") in view.state.claims, event.get("release", "")
            if is_taken or (free and free not in view.state.claims):
                raise ConflictError("the claim is not as it has to be")
        return draft

    def gather(self, view: LogView[State], rows: Sequence[bytes]) -> GatheredChanges[State] | None:
        store = self._store
        if store is None:
            return None
        write = WriteRef(id=self._new_id(), version=view.version)
        store.put(data_key(write.id, write.version), b"\n".join(rows))

        def again(now: LogView[State]) -> Draft | None:
            if now.fence > write.version:
                return None
            return Draft(events=({"op": f"file {write.id}", "of": len(rows)},), write=write)

        draft = again(view)
        assert draft is not None
        events: list[tuple[dict[str, Json], ...]] = [({"op": row.decode()},) for row in rows]
        return GatheredChanges(events, draft, again, lambda: _delete(store, write))


def _delete(store: ObjectStore, write: WriteRef) -> None:
    with suppress(StorageError):
        store.delete([data_key(write.id, write.version)])


def data_key(write_id: str, started_at: int) -> str:
    return f"data/{started_at:020d}-{write_id}"


def without_names(state: State) -> State:
    """Return what two states must agree on, however they were read."""
    return replace(state, chunks=())
