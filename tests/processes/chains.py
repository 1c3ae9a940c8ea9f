"""Every log of a warehouse, object by object, without the code that reads logs: that what is stored is a log at all."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from lakelog.catalog import Catalog
from lakelog.catalog.core.state.features import KNOWN
from lakelog.log import Commit, ObjectStore, each_change
from lakelog.log.errors import FormatError
from lakelog.log.format import Tombstone, decode_base, decode_decision, decode_entry, decode_root, hash_of
from lakelog.log.keys import LogKeys
from lakelog.log.participants import is_of

_VERSION = re.compile(r"(?:(.*)/)?_log/(\d{20})\.json")
_HINT = re.compile(r"(?:(.*)/)?_log/(?:latest\.json|snapshots/.*\.json)")
_BATCH = 64


@dataclass
class Chain:
    """One log. `effects` are its entries without aborted intents, at the time of their transaction if they are part
    of one; `commits` are those of which more than a tombstone is left."""

    prefix: str
    entries: list[Commit | Tombstone] = field(default_factory=list)
    effects: list[Commit | Tombstone] = field(default_factory=list)
    transactions: dict[int, str] = field(default_factory=dict)
    """The decision of each intent that was committed, by its version."""

    @property
    def commits(self) -> list[Commit]:
        return [effect for effect in self.effects if isinstance(effect, Commit)]

    @property
    def is_table(self) -> bool:
        return self.prefix.rpartition("/")[2].startswith("t-")

    @property
    def log_id(self) -> str:
        return self.entries[-1].log_id

    @property
    def sealed(self) -> bool:
        """Whether it was dropped, and not restored since."""
        flags = [(c.seals or c.purges, c.restores or c.reopens) for c in self.effects]
        return next((closes for closes, opens in reversed(flags) if closes or opens), False)

    @property
    def purged(self) -> bool:
        """Whether its data files may be gone: their deletion begins before the first version becomes a tombstone."""
        return next((c.purges for c in reversed(self.effects) if c.purges or c.reopens), False)


@dataclass
class Warehouse:
    """All that is in a store: logs by their prefix, other keys, and what is wrong."""

    store: ObjectStore
    keys: list[str] = field(default_factory=list)
    chains: dict[str, Chain] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    positions: dict[str, dict[str, int]] = field(default_factory=dict)
    """What the decision of each committed transaction says: the version of each log."""


def read(store: ObjectStore) -> Warehouse:
    """Read and check all logs. Costs a LIST of everything and a GET for each version of each log."""
    warehouse = Warehouse(store, keys=list(store.list_after("")))
    versions: dict[str, list[int]] = {}
    for key in warehouse.keys:
        if match := _VERSION.fullmatch(key):
            versions.setdefault(match[1] or "", []).append(int(match[2]))
    for prefix, numbers in versions.items():
        if numbers != list(range(1, len(numbers) + 1)):
            warehouse.wrong.append(f"the versions of the log {prefix!r} have gaps: {numbers[:50]}")
            continue
        _read_chain(warehouse, prefix, len(numbers))
    _check_hints(warehouse)
    return warehouse


def settle_restores(catalog: Catalog) -> int:
    """Settle every restore of a dropped log that its writer left undecided; return how many there were.

    No name leads to such a log, so no writer by name comes to it. The next client to restore or to purge it does this.
    """
    logs = catalog._logs
    store = logs.places.store(catalog.warehouse)
    newest: dict[str, str] = {}
    for key in sorted(store.list_after("")):
        if match := _VERSION.fullmatch(key):
            newest[match[1] or ""] = key
    settled_number = 0
    for prefix, key in newest.items():
        data = store.get(key)
        entry = None if data is None else decode_entry(data, key, KNOWN)
        if isinstance(entry, Commit) and entry.restores and entry.intent is not None:
            log = logs.unread(prefix).log
            view_before = log.load()
            settled_number += view_before.version < entry.version and log.refresh_settled(view_before).sealed
    return settled_number


def _read_chain(found: Warehouse, prefix: str, length: int) -> None:
    chain = found.chains[prefix] = Chain(prefix)
    keys = [LogKeys(prefix).commit(version) for version in range(1, length + 1)]
    for start in range(0, length, _BATCH):
        part = keys[start : start + _BATCH]
        for key, data in zip(part, found.store.get_many(part), strict=True):
            try:
                assert data is not None, f"{key} was listed and is absent"
                _follow(found, chain, key, decode_entry(data, key, KNOWN))
            except (FormatError, AssertionError) as error:
                found.wrong.append(f"{key}: {error}")
                return
    found.counts["versions"] += length


def _follow(found: Warehouse, chain: Chain, key: str, entry: Commit | Tombstone) -> None:
    """Check that `entry` continues the log, and note what it does."""
    commit_before = chain.entries[-1] if chain.entries else None
    assert entry.version == len(chain.entries) + 1, f"it says that it is version {entry.version}"
    said_before = (
        ""
        if commit_before is None
        else commit_before.commit_hash
        if isinstance(commit_before, Tombstone)
        else commit_before.hash
    )
    assert entry.prev == said_before, "it continues another version than the one before it"
    if commit_before is not None:
        assert entry.time_us > commit_before.time_us, (
            f"its time {entry.time_us} is not after {commit_before.time_us}"
        )
        assert entry.reopens or entry.log_id == commit_before.log_id, "it is of another log"
    opens = entry.reopens or entry.restores or entry.purges
    effect = entry
    if isinstance(entry, Commit) and entry.intent is not None:
        outcome = _decided_commit(found, chain, entry)
        if outcome is None:
            chain.entries.append(entry)
            return
        effect = outcome
        chain.transactions[entry.version] = entry.intent.txn
    elif isinstance(entry, Tombstone):
        found.counts["tombstones"] += 1
        if entry.outcome == "aborted":
            chain.entries.append(entry)
            return
    assert chain.sealed == opens, f"the log was {'' if chain.sealed else 'not '}sealed before"
    chain.entries.append(entry)
    chain.effects += each_change(effect) if isinstance(effect, Commit) else [effect]
    if isinstance(effect, Commit):
        _check_sidecars(found, chain, effect)


def _decided_commit(found: Warehouse, chain: Chain, entry: Commit) -> Commit | None:
    """Return an intent as it counts; None if it was aborted. An undecided one is noted as wrong."""
    assert entry.intent is not None
    key = entry.intent.decision
    data = found.store.get(key)
    if data is None:
        found.counts["undecided intents"] += 1
        found.wrong.append(f"version {entry.version} of {chain.prefix!r} is an intent without a decision")
        return None
    decision = decode_decision(data, key)
    assert decision.txn == entry.intent.txn, "its decision is about another transaction"
    found.counts[f"intents {decision.outcome}"] += 1
    if decision.outcome != "committed":
        return None
    assert entry.version in decision.positions.values(), (
        f"its decision does not know it: {decision.positions}"
    )
    found.positions[decision.txn] = decision.positions
    assert is_of(decision.txn, entry.intent.folder, list(decision.positions)), (
        "its transaction has other participants"
    )
    return msgspec.structs.replace(entry, time_us=decision.time_us)


def _check_sidecars(found: Warehouse, chain: Chain, commit: Commit) -> None:
    for sidecar in commit.sidecars:
        data = found.store.get(LogKeys(chain.prefix).sidecar(sidecar.name))
        assert data is not None and hash_of(data) == sidecar.hash, (
            f"its sidecar {sidecar.name} is not as it was"
        )


def _check_hints(found: Warehouse) -> None:
    """A hint may be missing or old, but what is there must be of a commit that stands in its log."""
    for key in found.keys:
        if match := _HINT.fullmatch(key):
            chain = found.chains.get(match[1] or "")
            data = found.store.get(key)
            if chain is None or data is None:
                continue
            try:
                root = decode_root(data, key, KNOWN)
            except FormatError as error:
                found.wrong.append(f"{key}: {error}")
                continue
            found.counts["snapshots and hints"] += 1
            if root.version > len(chain.entries):
                found.wrong.append(f"{key} is of version {root.version}, which its log does not have")
        elif "/_log/bases/" in f"/{key}":
            decode_base(found.store.get(key) or b"", key, KNOWN, number=int(key[-25:-5]))


def lone_transactions(found: Warehouse) -> list[str]:
    """Say which committed transactions are not where their decision says: half of them is missing."""
    missing = []
    for txn, positions in found.positions.items():
        for location, version in positions.items():
            chain = found.chains.get(location)
            commit = chain.entries[version - 1] if chain and version <= len(chain.entries) else None
            if commit is None or (isinstance(commit, Commit) and chain.transactions.get(version) != txn):
                missing.append(f"transaction {txn} is not in version {version} of {location or 'the root'}")
    return missing
