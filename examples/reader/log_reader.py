"""A log in a local folder: its head, an older version, its history. See log/README.md, *Algorithms*.

Nothing here knows what a commit's events mean: a `fold` does (`initial`, `apply`, `loaded`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Protocol

from stored_forms import Absent, Refused, check_format, stored_object

ABORTED = {"outcome": "aborted", "time_us": 0}


class Fold(Protocol):
    """What the events and snapshots of a log mean."""

    def initial(self) -> Any:
        """Return the state before the first commit."""

    def apply(self, state: Any, commit: dict[str, Any], sidecars: list[bytes]) -> Any:
        """Return the state after the events of a commit."""

    def loaded(self, root: Any, log: Log) -> Any:
        """Return the state that a snapshot's root has."""


@dataclass(frozen=True)
class View:
    """A log at a version. `settles` is the outcome that the next commit must have of an intent at it."""

    version: int = 0
    log_id: str | None = None
    hash: str = ""
    time_us: int = 0
    sealed: bool = False
    purged: bool = False
    settles: dict[str, Any] | None = None
    base: int = 0
    state: Any = None


class Log:
    """The log in the folder `root`. `warehouse` is the opened folder, and `place` the log's place in it."""

    def __init__(self, warehouse: str, place: str, fold: Fold) -> None:
        self.warehouse, self.place, self.fold = warehouse, place, fold
        self.root = place if place.startswith("/") else os.path.join(warehouse, place).rstrip("/")

    def get(self, key: str) -> bytes | None:
        """Return the object below `_log/`, or None."""
        return read_file(f"{self.root}/_log/{key}")

    def entry(self, version: int) -> dict[str, Any] | None:
        """Return the commit or tombstone at a version, or None."""
        key = f"{version:020}.json"
        data = self.get(key)
        if data is None:
            return None
        entry = stored_object(data, "Entry_object", f"{self.root}/_log/{key}")
        if entry["version"] != version:
            raise Refused(f"{self.root}/_log/{key} says that it is version {entry['version']}")
        if entry["kind"] == "commit":
            _check_changes(entry, key)
        return entry

    # Reading

    def at(self, version: int | None = None) -> View:
        """Return the view at the head, or at a version. Raises Absent if there is none."""
        view = self._start(version)
        while version is None or view.version < version:
            following = self.entry(view.version + 1)
            if following is None:
                if self._ends_before(view.version + 1):
                    break
                continue  # it has come since
            if following["kind"] == "tombstone":
                view = self._last_base(view.base + 1, following["version"])
                continue
            outcome = self.outcome(following)
            if outcome is None:
                break  # an undecided intent is not a version yet
            sidecars = [] if outcome == ABORTED else self._sidecars(following)
            view = (
                self._last_base(view.base + 1, following["version"])
                if sidecars is None
                else self._applied(view, following, outcome, sidecars)
            )
        if not view.version:
            raise Absent(f"there is no log in {self.root}")
        if version is not None and view.version != version:
            raise Absent(f"version {version} of {self.root} has expired, or does not exist yet")
        return view

    def _ends_before(self, version: int) -> bool:
        """Return whether an absent version is still absent. Raises Refused if there are later versions."""
        are_later = any(
            self.get(f"{later:020}.json") is not None for later in range(version + 1, version + 9)
        )
        if self.get(f"{version:020}.json") is not None:
            return False
        if are_later:
            raise Refused(f"the log in {self.root} has lost version {version}")
        return True

    def commits(self) -> Iterator[dict[str, Any]]:
        """Yield the commits that took effect and have not expired, the newest first."""
        return takewhile(lambda entry: entry["kind"] == "commit", self._effects())

    def version_at(self, time_us: int) -> int:
        """Return the newest version at or before a time. It may have expired."""
        for entry in self._effects():
            if entry["time_us"] <= time_us:
                return int(entry["version"])
        raise Absent(f"no version of {self.root} is of that time")

    def _effects(self) -> Iterator[dict[str, Any]]:
        """Yield the commits and tombstones that took effect, the newest first, with the times that count."""
        following: dict[str, Any] | None = None
        for version in range(self.at().version, 0, -1):
            entry = self.entry(version)
            if entry is None:
                raise Refused(f"version {version} of {self.root} is missing")
            if following is not None and following["prev"] != entry.get("commit_hash", entry["hash"]):
                raise Refused(
                    f"version {version} of {self.root} is not the one that the next version follows"
                )
            outcome = self.outcome(entry) if entry["kind"] == "commit" else {}
            if outcome != ABORTED and entry.get("outcome") != "aborted":
                yield {**entry, "time_us": outcome["time_us"] if outcome else entry["time_us"]}
            if entry["reopens"]:
                return  # another log's versions are before it
            following = entry

    def _start(self, version: int | None) -> View:
        """Return a view to read on from: that of a hint or a snapshot, if it can be trusted, or nothing."""
        keys = ["latest.json"]
        if version is not None:
            keys = [
                f"snapshots/{name}" for name in sorted(listed(f"{self.root}/_log/snapshots"), reverse=True)
            ]
        for key in keys:
            data = self.get(key)
            try:
                root = stored_object(data or b"", "kind/snapshot", key)
                if version is not None and root["version"] > version:
                    continue
                state = self.fold.loaded(root["state"], self)
            except Refused:
                continue  # a hint may be missing, broken or newer: it costs time, and the commits have the state too
            named = self.entry(root["version"])
            if named is None:
                raise Refused(f"{self.root}/_log has lost version {root['version']}, which {key} names")
            is_of_this = (root["log_id"], root["commit_hash"]) == (
                named["log_id"],
                named.get("commit_hash", named["hash"]),
            )
            # After a newer base its lists may be deleted: the last base has the state as well.
            if is_of_this and self.get(f"bases/{root['base'] + 1:020}.json") is None:
                return self._view_of(root, state)
        return View(state=self.fold.initial())

    def _last_base(self, number: int, reaches: int) -> View:
        """Return the view of the last base, which every reader may trust. It is at version `reaches` or later."""
        last = None
        while (data := self.get(f"bases/{number:020}.json")) is not None:
            at = f"{self.root}/_log/bases/{number:020}.json"
            last = stored_object(data, "kind/base", at)
            check_format(last["root"], at)
            if (last["number"], last["root"]["base"], last["root"]["log_id"]) != (
                number,
                number,
                last["log_id"],
            ):
                raise Refused(f"{at} is not the base of its key")
            number += 1
        if last is None or last["root"]["version"] < reaches:
            raise Refused(f"version {reaches} of {self.root} has expired, and no base has its state")
        root = last["root"]
        named = self.entry(root["version"])
        if named is None or named.get("commit_hash", named["hash"]) != root["commit_hash"]:
            raise Refused(f"base {last['number']} of {self.root} is not of the commit at its version")
        return self._view_of(root, self.fold.loaded(root["state"], self))

    def _view_of(self, root: dict[str, Any], state: Any) -> View:
        return View(
            version=root["version"], log_id=root["log_id"], hash=root["commit_hash"], time_us=root["time_us"],
            sealed=root["sealed"], purged=root["purged"], settles=root["settles"], base=root["base"],
            state=state,
        )  # fmt: skip

    def _applied(
        self, view: View, commit: dict[str, Any], outcome: dict[str, Any] | None, sidecars: list[bytes]
    ) -> View:
        """Return the view after a commit. `outcome` is that of an intent, empty for a plain commit."""
        at = f"version {commit['version']} of {self.root}"
        if commit["prev"] != view.hash:
            raise Refused(f"{at} does not follow the version before it")
        if commit["settles"] != view.settles:
            raise Refused(f"{at} does not have the outcome of the intent before it")
        if outcome == ABORTED:
            return replace(view, version=commit["version"], hash=commit["hash"], settles=ABORTED)
        roles = [role for role in ("reopens", "restores", "purges") if commit[role]]
        if commit["version"] > 1 and view.sealed != bool(roles) or view.purged and roles != ["reopens"]:
            raise Refused(f"{at} goes on after a seal, or reopens without one")
        if view.log_id is not None and (commit["log_id"] == view.log_id) == commit["reopens"]:
            raise Refused(f"{at} is of the log {commit['log_id']}, after {view.log_id}")
        begins = commit["reopens"] or not view.version
        return replace(
            view, version=commit["version"], log_id=commit["log_id"], hash=commit["hash"],
            time_us=outcome["time_us"] if outcome else commit["time_us"], settles=outcome or None,
            sealed=commit["seals"] or commit["purges"], purged=commit["purges"],
            state=self.fold.apply(self.fold.initial() if begins else view.state, commit, sidecars),
        )  # fmt: skip

    def _sidecars(self, commit: dict[str, Any]) -> list[bytes] | None:
        """Return the sidecars of a commit, or None if one is gone, which means that the commit has expired."""
        found = []
        for sidecar in commit["sidecars"]:
            data = self.get(f"sidecars/{sidecar['name']}")
            if data is None:
                return None
            check_bytes(data, sidecar["size_bytes"], sidecar["hash"], f"the sidecar {sidecar['name']}")
            found.append(data)
        return found

    # Transactions

    def outcome(self, commit: dict[str, Any]) -> dict[str, Any] | None:
        """Return the outcome of an intent, {} for a plain commit, and None for an undecided intent."""
        intent = commit["intent"]
        if intent is None:
            return {}
        following = self.entry(commit["version"] + 1)
        if following is not None and following["kind"] == "commit":
            if following["settles"] is None:
                raise Refused(
                    f"version {following['version']} of {self.root} lacks the outcome of the intent before it"
                )
            settles: dict[str, Any] = following["settles"]
            return settles
        if not self._is_listed(intent):
            return ABORTED  # a void intent, which no client has written
        folder = intent["warehouse"] or self.root.removesuffix(intent["log"]).rstrip("/")
        key = os.path.join(folder, intent["folder"], "_txn", f"{intent['txn']}.json")
        if not f"{key}/".startswith(f"{self.warehouse.rstrip('/')}/"):
            raise Refused(
                f"the decision of an intent of {self.root} is outside of the opened folder, in {key}"
            )
        data = read_file(key)
        if data is None:
            return None
        decision = stored_object(data, "kind/decision", key)
        if decision["txn"] != intent["txn"]:
            raise Refused(f"{key} is the decision of another transaction")
        if decision["outcome"] == "aborted":
            return ABORTED
        own = decision["positions"].get(intent["log"])
        if decision["commit_id"] != commit["commit_id"] or own != commit["version"]:
            raise Refused(f"{key} commits another change than the intent in {self.root}")
        return {"outcome": "committed", "time_us": decision["time_us"]}

    def _is_listed(self, intent: dict[str, Any]) -> bool:
        """Return whether the transaction's id was made of a list that has this log (see *Place of a decision*)."""
        place, folder = intent["log"], intent["folder"]
        is_away = place.startswith("/") or "://" in place
        if not is_away and folder and not f"{place}/".startswith(f"{folder}/"):
            return False
        if not is_away and place and not f"/{self.root}".endswith(f"/{place}"):
            return False
        root = root_by_proof(place, intent["index"], intent["count"], intent["proof"])
        id, _, digits = intent["txn"].rpartition("-")
        listed_text = f"{id}\n{folder}\n{intent['count']}\n{root}".encode()
        return root is not None and hashlib.sha256(listed_text).hexdigest()[:32] == digits


def root_by_proof(leaf: str, index: int, count: int, proof: list[str]) -> str | None:
    """Return the root of RFC 9162's hash tree that the proof leads to; None if the proof has another length."""
    if not 0 <= index < count:
        return None
    node, siblings, last = hashlib.sha256(b"\0" + leaf.encode()).digest(), list(proof), count - 1
    while last:
        if index % 2 or index < last:
            if not siblings:
                return None
            sibling = bytes.fromhex(siblings.pop(0))
            node = hashlib.sha256(b"\1" + (sibling + node if index % 2 else node + sibling)).digest()
        index, last = index >> 1, last >> 1
    return None if siblings else node.hex()


def _check_changes(commit: dict[str, Any], key: str) -> None:
    """Check a version of several changes."""
    changes = commit["changes"]
    roles = [
        name
        for name in ("seals", "reopens", "restores", "purges", "fence", "write", "intent")
        if commit[name]
    ]
    wrong = (
        roles
        or len({change["commit_id"] for change in changes}) < len(changes)
        or sum(change["events"] for change in changes) != len(commit["events"])
        or any(change["base"] >= commit["version"] for change in changes)
        or any(change["refused"] and (change["events"] or change["write"]) for change in changes)
    )
    if changes and wrong:
        raise Refused(f"{key} has changes that contradict each other")


def check_bytes(data: bytes, size: int, digest: str, what: str) -> None:
    if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
        raise Refused(f"{what} does not have the size and the hash that the log has of it: it was altered")


def read_file(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
