"""A forger, which may write one log only, and a keeper, which has all rights and writes that log too.

What the forger puts there is validly hashed, and names transactions of the other logs in every way that it can. The
keeper goes on after each. It takes part in no transaction, so whatever it decides must not be one of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
from tests.sim.ledger import Ledger, LedgerProjection
from tests.sim.ledgers import ACCOUNTS, NAMES, Ledgers

from lakelog.log import ConflictError, Draft, Log, LogOptions, ObjectStore, StorageError
from lakelog.log.errors import CommitUnknown
from lakelog.log.format import FORMAT, Commit, decode_entry, encode
from lakelog.log.grammar import RIGHTS_KEY
from lakelog.log.keys import LogKeys
from lakelog.log.merkle import tree_of
from lakelog.log.participants import folder_of, intents_of

PLACE = "own/f"
KEYS = LogKeys(PLACE)


def found(world: Ledgers) -> None:
    """Create the forger's log."""
    options = LogOptions(new_id=world.new_id, snapshot_every_versions=0)
    Log(world.truth, PLACE, LedgerProjection(), options=options).create(Draft(), log_id=world.new_id())


def forger(world: Ledgers, turns: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(turns):
            for _ in range(world.rng.randint(1, 30)):
                world.scheduler.step()
            forge(world)

    return run


def forge(world: Ledgers) -> None:
    """Put an intent after the head of the forger's own log, if that is no intent."""
    victims = [
        commit for name in NAMES for commit in _commits(world, LogKeys(name)) if commit.intent is not None
    ]
    head = _commits(world, KEYS)[-1]
    if not victims or head.intent is not None:
        return
    victim = world.rng.choice(victims)
    assert victim.intent is not None
    places = sorted((PLACE, world.rng.choice(ACCOUNTS)))
    own = intents_of(world.new_id(), folder_of(places), places, "")[places.index(PLACE)]
    known_proof = (*victim.intent.proof, *own.proof, tree_of([PLACE])[0], tree_of(places)[0])
    count = world.rng.randint(1, victim.intent.count + 1)
    made_up = {
        "log": PLACE,
        "count": count,
        "index": world.rng.randrange(count),
        "proof": tuple(world.rng.choices(known_proof, k=world.rng.randint(0, 3))),
    }
    intent = world.rng.choice(
        (
            victim.intent,
            msgspec.structs.replace(victim.intent, log=PLACE),
            msgspec.structs.replace(victim.intent, **made_up),
            msgspec.structs.replace(own, txn=victim.intent.txn, folder=victim.intent.folder),
            own,
        )
    )
    forged_commit = Commit(
        format=FORMAT,
        log_id=head.log_id,
        version=head.version + 1,
        commit_id=victim.commit_id,
        attempt_id=world.new_id(),
        base=head.version,
        prev=head.hash,
        time_us=head.time_us + 1,
        intent=intent,
    )
    # Between the look at the head and this put nothing else runs.
    world.truth.put_if_absent(KEYS.commit(forged_commit.version), encode(forged_commit))
    world.count("forged")


def keeper(world: Ledgers, turns: int) -> Callable[[], None]:
    def run() -> None:
        logs, _ = world.new_logs("keeper")
        options, store = logs[ACCOUNTS[0]].options, _Noting(world, logs[ACCOUNTS[0]].store)
        log: Log[Ledger] = Log(
            cast(ObjectStore, store), PLACE, LedgerProjection(), options=options, opened=world.truth.url
        )
        for _ in range(turns):
            try:
                log.commit(log.load(), lambda view, passed: Draft())
                world.count("kept")
            except (ConflictError, CommitUnknown, StorageError):
                world.count("not kept")

    return run


class _Noting:
    """The keeper's way to the store: it fails the run by a decision of a transaction of others."""

    def __init__(self, world: Ledgers, store: ObjectStore) -> None:
        self._world = world
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if "_txn/" in key and not key.endswith(RIGHTS_KEY):
            world = self._world
            theirs = {
                commit.intent.txn
                for name in NAMES
                for commit in _commits(world, LogKeys(name))
                if commit.intent is not None
            }
            if key.rpartition("/")[2].removesuffix(".json") in theirs:
                world.fail(f"a forged intent led to {key}, which decides a transaction of other logs")
        return self._store.put_if_absent(key, data)


def _commits(world: Ledgers, keys: LogKeys) -> list[Commit]:
    """Return what was created in a log."""
    commits: list[Commit] = []
    while (data := world.truth.created.get(keys.commit(len(commits) + 1))) is not None:
        entry = decode_entry(data, keys.log)
        assert isinstance(entry, Commit)
        commits.append(entry)
    return commits
