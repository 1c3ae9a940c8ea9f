"""Reading a log: from a hint, a base or version 1 up to the head, always a prefix of what was committed.

The head is before the first version that is absent. A hint or snapshot is used only where its hash names
the commit that stands there; a tombstone sends a reader on to the last base. Nothing here lists anything.
An intent counts as its decision says, which the commit after it repeats; while undecided it is not read at all.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Generic, TypeVar

from lakelog.log.changes import misfit
from lakelog.log.decisions import DecisionPlace, OpenUrl, place_of, settled_by
from lakelog.log.errors import FormatError, InvalidInput, NotFound, PermissionDenied, UnsupportedFormat
from lakelog.log.format import (
    ABORTED,
    Base,
    Commit,
    Root,
    Settled,
    Tombstone,
    decode_base,
    decode_entry,
    decode_root,
    hash_of,
)
from lakelog.log.grammar import is_blob
from lakelog.log.keys import Keys, blob_version
from lakelog.log.options import LogOptions
from lakelog.log.stores import ObjectStore
from lakelog.log.view import Projection, S, View, advance, effective, empty_view, view_of

BATCH_MAX = 64
"""Versions that are worked on at once."""

COLD_BATCH = 8
"""Versions that are read where there is no hint: most logs without one are short."""

WARM_BATCH = 4
"""Versions that are read after a first one that turned out to be there."""

NEXT_BATCH = 20
"""Versions that are read once there turned out to be more: as many as stand between two snapshots."""

PROBES = (64, 256, 1024)
"""How far ahead single versions are tried beside these: the first that is absent bounds what is read next, so that a
thousand versions are read in one round, and versions that do not exist mostly are not asked for."""

ROUND_BYTES_MAX = 64 * 1024 * 1024
"""How much is read in one round, as far as known, by more than BATCH_MAX versions at once or by sidecars."""

BASES_BATCH = 4
OFFERED_MAX = 8
"""Views that threads may offer at once; the oldest offers beyond it are forgotten, which costs readers time."""

T = TypeVar("T")
Entry = TypeVar("Entry", Commit, Commit | Tombstone)


class Newest(Generic[S]):
    """The newest view that was offered and not taken yet. Safe to share between threads, without a lock: a process that
    forks while one of its threads has it would leave it locked in the child."""

    def __init__(self) -> None:
        self._offered: deque[View[S]] = deque(maxlen=OFFERED_MAX)

    def offer(self, view: View[S]) -> None:
        self._offered.append(view)

    def take(self) -> View[S] | None:
        newest: View[S] | None = None
        with suppress(IndexError):
            for _ in range(OFFERED_MAX):
                view = self._offered.popleft()
                if newest is None or newest.version < view.version:
                    newest = view
        return newest


class Replay(Generic[S]):
    """The reading half of a log."""

    def __init__(
        self,
        store: ObjectStore,
        keys: Keys,
        projection: Projection[S],
        options: LogOptions,
        open_url: OpenUrl | None = None,
        opened: str | None = None,
    ) -> None:
        self.store = store
        self.keys = keys
        self.projection = projection
        self.options = options
        self.open_url = open_url
        self.opened = opened
        self.withheld = 0
        """The version of the last intent of which the decision may not be read by this client."""
        self.hint_due: Newest[S] = Newest()
        """The view whose hint is to be written, in the background."""

    def load(
        self, beside: Callable[[View[S]], None] | None = None, hint: Callable[[], bytes | None] | None = None
    ) -> View[S]:
        """Return the head, cold: the hint, then what it does not have.

        `beside` is called with an older view, of which nothing was checked where it is the hint's, while the rest is
        read: what that leads to can be read already. It is not called where nothing is left to be read. `hint` returns
        the hint's object, where that was read already.
        """
        root = self.hinted_root(hint)
        if root is None:
            return self.load_without_hint(beside)
        hinted = self._state_of(root)
        view = self._beside(lambda: self._from_hint(root, hinted), hinted, beside)
        return self.load_without_hint() if view is None else view

    def load_without_hint(self, beside: Callable[[View[S]], None] | None = None) -> View[S]:
        """Return the head from version 1 on, or from the last base where that has expired."""
        found = self.get_versions(range(1, COLD_BATCH + 1))
        if found[0] is None and any(found) and self.store.get(self.keys.commit(1)) is None:
            raise FormatError(
                f"{self.at(self.keys.commit(1))} is missing although later versions exist; restore it from a backup"
            )
        if not any(found):
            raise NotFound(f"there is no log at {self.location}; check the location, or create it first")
        start = empty_view(self.projection)
        if None in found:
            return self.forward(start, found=found, batch=NEXT_BATCH)
        start = self.forward(start, found=found, until=COLD_BATCH)
        return self._beside(lambda: self.forward(start, batch=NEXT_BATCH), start, beside)

    def _beside(
        self,
        read: Callable[[], T],
        older: View[S] | UnsupportedFormat | None,
        beside: Callable[[View[S]], None] | None,
    ) -> T:
        """Return what `read` returns, and call `beside` with an older view at the same time."""
        if beside is None or not isinstance(older, View):
            return read()
        done: list[T] = []
        self.options.in_parallel([lambda: done.append(read()), lambda: beside(older)])
        return done[0]

    def hinted_root(self, hint: Callable[[], bytes | None] | None = None) -> Root | None:
        """Return the snapshot in the hint, None where that is missing, broken or of a newer format."""
        return self.root_or_none(self.keys.latest, hint() if hint else self.store.get(self.keys.latest))

    def root_or_none(self, key: str, data: bytes | None) -> Root | None:
        if data is None:
            return None
        try:
            return decode_root(data, self.at(key), self.options.features)
        except FormatError:
            return None  # it costs time only; damage to the commits shows when they are read

    def _state_of(self, root: Root) -> View[S] | UnsupportedFormat | None:
        """Return the view of the hint, and an error where it must be raised if the hint turns out to be this log's."""
        try:
            return self.view_of(root, self.keys.latest)
        except UnsupportedFormat as error:
            return error

    def _from_hint(self, root: Root, hinted: View[S] | UnsupportedFormat | None) -> View[S] | None:
        wanted = [self.keys.commit(root.version), self.keys.commit(root.version + 1)]
        if root.uses != ():
            wanted.append(self.keys.base(root.base + 1))
        found = self.store.get_many(wanted)
        key = self.keys.commit(root.version)
        if found[0] is None:
            raise FormatError(
                f"{self.at(key)} is missing although {self.at(self.keys.latest)} names it: restore it from a backup; "
                "if it is lost for good, delete the latter to go on without it"
            )
        if not self.names_this(root, self.entry(root.version, found[0])):
            return None
        newer_base = found.pop() if len(found) > 2 else None
        base = self.sound_with(root, newer_base)
        if base is None:
            return self.forward(self.last_base(root.base + 1, at_least=0), batch=NEXT_BATCH)
        if isinstance(hinted, UnsupportedFormat):
            raise hinted
        if hinted is None:
            return None
        return self.forward(replace(hinted, base=base), found=found[1:2], batch=NEXT_BATCH)

    def sound_with(self, root: Root, newer_base: bytes | None) -> int | None:
        """Return the number of the last base, where none after a snapshot's own has given up a manifest that it uses.

        Else None: its manifests may have been deleted. `newer_base` is what follows the base that it was derived from.
        One GET for each newer base.
        """
        number = root.base
        while is_outdated(newer_base):
            assert newer_base is not None
            base = self.base(number + 1, newer_base)
            if base.log_id != root.log_id or base.root.version > root.version or root.uses is None:
                return None
            if given_up_by(base, root.uses):
                return None
            number += 1
            newer_base = self.store.get(self.keys.base(number + 1))
        return number

    def view_of(self, root: Root, key: str) -> View[S] | None:
        """Return the view of a snapshot; None where its state cannot be read: that costs time only, as the commits have
        it too. UnsupportedFormat where a newer lakelog wrote it."""
        try:
            return view_of(root, self.projection, self.at(key))
        except UnsupportedFormat:
            raise
        except (FormatError, InvalidInput):
            return None

    def names_this(self, root: Root, entry: Commit | Tombstone) -> bool:
        """Return whether a snapshot was taken of exactly this commit."""
        return root.log_id == entry.log_id and root.commit_hash == hash_before_expiry(entry)

    def forward(
        self,
        view: View[S],
        *,
        batch: int = 1,
        found: Sequence[bytes | None] | None = None,
        until: int | None = None,
    ) -> View[S]:
        """Return the newest view, or the one at `until`; `found` are objects already read after `view`."""
        return self.read_on(view, batch=batch, found=found, until=until)[0]

    def read_on(
        self,
        view: View[S],
        *,
        batch: int = 1,
        found: Sequence[bytes | None] | None = None,
        until: int | None = None,
    ) -> tuple[View[S], Commit | None]:
        """As forward, with the undecided intent that stands after that view, if one does.

        `batch` is how many versions are read first, or after `found`. Batches grow quickly: what is a thousand versions
        ahead is found in four rounds.
        """
        newest_seen = 0
        biggest_bytes = 1
        bounded = False  # whether the batch goes up to a version that was absent
        waiting: Commit | None = None  # an intent after `view`; what became of it is not read yet
        while until is None or view.version < until:
            first = view.version + (1 if waiting is None else 2)
            if waiting is not None and until is not None and first > until:
                return self._step_or_wait(view, waiting, self.outcome(waiting), until=until)
            ahead: list[int] = []
            beyond: list[bytes | None] = []
            if found is None:
                batch = min(batch, max(BATCH_MAX, ROUND_BYTES_MAX // biggest_bytes))
                if until is not None:
                    batch = min(batch, until - first + 1)
                elif batch >= NEXT_BATCH and not bounded:
                    ahead = [first + probe for probe in _probes(batch)]
                found = self.get_versions([*range(first, first + batch), *ahead])
                found, beyond = found[:batch], found[batch:]
            elif until is not None:
                found = found[: until - view.version]
            present = prefix(found)
            if not present and first <= newest_seen:
                raise FormatError(
                    f"{self.at(self.keys.commit(first))} is missing although version {newest_seen} exists; "
                    "restore it from a backup"
                )
            seen = zip([*range(first, first + len(found)), *ahead], [*found, *beyond], strict=True)
            newest_seen = max([newest_seen, *(version for version, data in seen if data is not None)])
            biggest_bytes = max([biggest_bytes, *map(len, present)])
            last = first + len(present) - 1
            entries = [self.entry(first + i, data) for i, data in enumerate(present)]
            view, waiting = self._apply(view, entries if waiting is None else [waiting, *entries])
            # An absent object ends the log, unless a later one is there, or a base took us to another place.
            at_end = view.version + (waiting is not None) == last
            if len(present) < len(found) and newest_seen <= last and at_end:
                if waiting is None:
                    return view, None
                return self._step_or_wait(view, waiting, self.decided(waiting), until=until)
            tried = dict(zip(ahead, beyond, strict=True)) if at_end else {}
            batch, bounded = _next_batch(batch, last, tried), None in tried.values()
            if until is not None:
                batch = until - view.version
            found = None
        return view, None

    def _apply(self, view: View[S], entries: Sequence[Commit | Tombstone]) -> tuple[View[S], Commit | None]:
        """Return the view after the entries, and the last of them if that is an intent: the next one settles it."""
        tombstones = [entry.version for entry in entries if isinstance(entry, Tombstone)]
        if tombstones:
            return self.last_base(view.base + 1, at_least=max(tombstones)), None
        commits = [entry for entry in entries if isinstance(entry, Commit)]
        settled = list(self.with_outcomes(commits, lambda intent: None))
        for part in _by_size(settled):
            blobs = self.sidecars([commit for commit, outcome in part if not is_aborted(outcome)])
            for commit, outcome in part:
                own = blobs.get(commit.version, [])
                if own is None:
                    return self.last_base(view.base + 1, at_least=commit.version), None
                view = self.advance(view, commit, own, outcome)
        return view, commits[-1] if len(settled) < len(commits) else None

    def _step_or_wait(
        self, view: View[S], intent: Commit, settled: Settled | None, *, until: int | None
    ) -> tuple[View[S], Commit | None]:
        if settled is None:
            return view, intent
        after = self.step(view, intent, settled)
        return (after, None) if after.version == intent.version else self.read_on(after, until=until)

    def step(self, view: View[S], entry: Commit | Tombstone, settled: Settled | None) -> View[S]:
        """Return the view after `entry`, which follows `view`; that of the last base where expiry has been there."""
        if isinstance(entry, Commit):
            blobs = [] if is_aborted(settled) else self.sidecars([entry])[entry.version]
            if blobs is not None:
                return self.advance(view, entry, blobs, settled)
        return self.last_base(view.base + 1, at_least=entry.version)

    def advance(
        self, view: View[S], commit: Commit, blobs: Sequence[bytes], settled: Settled | None = None
    ) -> View[S]:
        location = self.at(self.keys.commit(commit.version))
        return advance(view, commit, commit.hash, blobs, self.projection, location, settled)

    # What became of intents

    def with_outcomes(
        self, entries: Iterable[Entry], at_end: Callable[[Commit], Settled | None]
    ) -> Iterator[tuple[Entry, Settled | None]]:
        """Yield successive entries, and with each intent what became of it, as the entry after it says.

        For an intent that is the last `at_end` says it; nothing is yielded for one that is undecided.
        """
        intent: Entry | None = None
        for entry in entries:
            if intent is not None:
                yield intent, self._settled_by(entry, intent)
            intent = entry if isinstance(entry, Commit) and entry.intent is not None else None
            if intent is None:
                yield entry, None
        if isinstance(intent, Commit):
            settled = at_end(intent)
            if settled is not None:
                yield intent, settled

    def _settled_by(self, entry: Commit | Tombstone, intent: Commit | Tombstone) -> Settled | None:
        if isinstance(intent, Tombstone):
            return None
        if isinstance(entry, Tombstone):  # expiry has overtaken us
            settled = self.decided(intent)
            if settled is None and self.withheld == intent.version:
                raise self.withheld_error()
            return settled
        if entry.settles is None:
            raise FormatError(
                f"{self.at(self.keys.commit(entry.version))} does not say what became of the intent before it; "
                "restore the log's objects from one backup"
            )
        return entry.settles

    def outcome(self, intent: Commit) -> Settled | None:
        """Return what became of an intent, None while it is undecided. One GET, one more at the head."""
        following = self.store.get(self.keys.commit(intent.version + 1))
        if following is not None:
            return self._settled_by(self.entry(intent.version + 1, following), intent)
        return self.decided(intent)

    def _known_outcome(self, intent: Commit) -> Settled | None:
        settled = self.outcome(intent)
        if settled is None and self.withheld == intent.version:
            raise self.withheld_error()
        return settled

    def withheld_error(self) -> PermissionDenied:
        return PermissionDenied(
            f"version {self.withheld} of {self.location} is part of a transaction whose decision these credentials may "
            "not read, so that its state is not known as of one moment with other logs; get the right to read `_txn/` "
            "of the folders above it",
            location=self.location,
        )

    def decided(self, intent: Commit) -> Settled | None:
        """Return what the decision of an intent says, None while there is none, or where it may not be read. One GET,
        none for an intent that is void, which counts as aborted."""
        place = self.decision_place(intent)
        if place is None:
            return Settled(outcome=ABORTED)
        try:
            decision = place.read()
        except PermissionDenied:
            self.withheld = intent.version
            return None
        if self.withheld == intent.version:
            self.withheld = 0  # the right was given since
        return None if decision is None else settled_by(decision, intent, place.location)

    def decision_place(self, intent: Commit) -> DecisionPlace | None:
        location = self.at(self.keys.commit(intent.version))
        return place_of(intent, self.store, self.keys.folder, self.open_url, self.opened, location)

    def effects(self, first: int, last: int) -> Iterator[Commit | Tombstone]:
        """Yield what has an effect from version `first` to `last`, all of which exist and are decided. PermissionDenied
        where that may not be read."""
        for entry, settled in self.with_outcomes(self._entries(first, last), self._known_outcome):
            effect = effective(entry, settled)
            if effect is not None:
                yield effect

    def _entries(self, first: int, last: int) -> Iterator[Commit | Tombstone]:
        for start in range(first, last + 1, BATCH_MAX):
            versions = range(start, min(start + BATCH_MAX, last + 1))
            for version, data in zip(versions, self.get_versions(versions), strict=True):
                if data is None:
                    raise FormatError(
                        f"{self.at(self.keys.commit(version))} is missing; restore it from a backup"
                    )
                yield self.entry(version, data)

    def sidecars(self, commits: Sequence[Commit]) -> dict[int, list[bytes] | None]:
        """Return the sidecars of each commit by its version, in one round; None where expiry took one."""
        if not any(commit.sidecars for commit in commits):
            return {commit.version: [] for commit in commits}
        wanted = [(commit.version, sidecar) for commit in commits for sidecar in commit.sidecars]
        result: dict[int, list[bytes] | None] = {commit.version: [] for commit in commits}
        found = self.store.get_many([self.keys.sidecar(sidecar.name) for _, sidecar in wanted])
        for (version, sidecar), data in zip(wanted, found, strict=True):
            if data is None:
                result[version] = None
                continue
            if len(data) != sidecar.size_bytes or hash_of(data) != sidecar.hash:
                raise FormatError(
                    f"{self.at(self.keys.sidecar(sidecar.name))} was truncated or altered: version {version} has "
                    "another hash for it; restore it from a backup"
                )
            blobs = result[version]
            if blobs is not None:
                blobs.append(data)
        return result

    def last_base(self, number: int, *, at_least: int) -> View[S]:
        """Return the view of the last base, walking from base `number` on. FormatError if it is before `at_least`."""
        last: bytes | None = None
        batch = BASES_BATCH
        while True:
            found = self.store.get_many([self.keys.base(number + i) for i in range(batch)])
            present = prefix(found)
            if present:
                last = present[-1]
                number += len(present)
            # One that was emptied (see `expiry.blank`) has another one after it, which was read too early.
            if len(present) < batch and not (present and is_blank(self.base(number - 1, present[-1]))):
                break
            batch = min(2 * batch, BATCH_MAX)
        if last is None:
            raise FormatError(
                f"{self.at(self.keys.base(number))} is missing although version {at_least} of the log has expired "
                "(or lost a sidecar); restore it from a backup"
            )
        where = self.at(self.keys.base(number - 1))
        base = self.base(number - 1, last)
        data = self.store.get(self.keys.commit(base.root.version))
        if data is None:
            raise FormatError(
                f"{where} holds base {base.number} at version {base.root.version}, which does not belong there: "
                "it was copied or moved, or that version is lost; restore the log's objects from one backup"
            )
        if not self.names_this(base.root, self.entry(base.root.version, data)):
            raise FormatError(
                f"{where} was made of another log's version {base.root.version}: it was copied or moved; restore "
                "the log's objects from one backup"
            )
        if base.root.version < at_least:
            raise FormatError(
                f"version {at_least} of {self.location} has expired or lost a sidecar, but the last base "
                f"{self.at(self.keys.base(base.number))} is at version {base.root.version}; restore them from a backup"
            )
        return view_of(base.root, self.projection, where)

    def base(self, number: int, data: bytes) -> Base:
        return decode_base(data, self.at(self.keys.base(number)), self.options.features, number=number)

    def check_links(self, entries: Sequence[Commit | Tombstone]) -> None:
        """Raise FormatError unless each of successive entries continues the one before it."""
        for before, entry in itertools.pairwise(entries):
            wrong = broken_link(before, entry)
            if wrong is not None:
                raise FormatError(
                    f"{self.at(self.keys.commit(entry.version))} {wrong}; restore the log's objects from one backup"
                )

    def entry(self, version: int, data: bytes) -> Commit | Tombstone:
        key = self.keys.commit(version)
        entry = decode_entry(data, self.at(key), self.options.features)
        if entry.version != version:
            raise FormatError(
                f"{self.at(key)} holds version {entry.version}: it was copied or moved; restore it from a backup"
            )
        if isinstance(entry, Commit) and (wrong := misfit(entry)) is not None:
            # Here too: what is in none of its changes would be in no history.
            raise FormatError(f"{self.at(key)} {wrong}; restore the log's objects from one backup")
        return entry

    def get_versions(self, versions: Sequence[int]) -> list[bytes | None]:
        if len(versions) == 1:
            return [self.store.get(self.keys.commit(versions[0]))]
        return self.store.get_many([self.keys.commit(version) for version in versions])

    def at(self, key: str) -> str:
        """Return where `key` is, for messages."""
        return f"{self.store.url}/{key}"

    @property
    def location(self) -> str:
        return self.at(self.keys.log).removesuffix("/_log")


def _by_size(
    settled: Sequence[tuple[Commit, Settled | None]],
) -> Iterator[list[tuple[Commit, Settled | None]]]:
    """Yield successive commits in parts whose sidecars are read in one round."""
    part: list[tuple[Commit, Settled | None]] = []
    size_bytes = 0
    for commit, outcome in settled:
        own_bytes = sum(sidecar.size_bytes for sidecar in commit.sidecars)
        if part and size_bytes + own_bytes > ROUND_BYTES_MAX:
            yield part
            part, size_bytes = [], 0
        part.append((commit, outcome))
        size_bytes += own_bytes
    if part:
        yield part


def _probes(batch: int) -> Iterator[int]:
    """Yield how far ahead of the first version of a batch others are tried, all of them after it."""
    scale = 1
    while PROBES[0] * scale < batch:
        scale *= PROBES[-1] // PROBES[0]
    yield from (probe * scale for probe in PROBES)


def _next_batch(batch: int, last: int, tried: dict[int, bytes | None]) -> int:
    """Return how many versions to read after `last`, by which of those `tried` ahead of it exist."""
    if tried:
        return min((version for version, data in tried.items() if data is None), default=max(tried)) - last
    return WARM_BATCH if batch < WARM_BATCH else NEXT_BATCH


def broken_link(before: Commit | Tombstone, entry: Commit | Tombstone) -> str | None:
    """Return why `entry` does not continue `before`, None where it does."""
    if (entry.log_id != before.log_id) != entry.reopens:
        return f"belongs to log {entry.log_id}, not to {before.log_id}: it was copied or moved"
    if entry.prev != hash_before_expiry(before):
        return f"continues another version {before.version} than the one before it"
    return None


def is_aborted(settled: Settled | None) -> bool:
    return settled is not None and settled.outcome == ABORTED


def is_outdated(newer_base: bytes | None) -> bool:
    """Return whether a snapshot is: on behalf of the base after its own, manifests may have been deleted."""
    return newer_base is not None


def is_blank(base: Base) -> bool:
    """Return whether the state of a base was taken out, as another base follows it."""
    return base.root.state is None


def given_up_by(base: Base, names: Iterable[str]) -> set[str]:
    """Return which manifests neither `base` nor any state derived from it can use.

    Such a state names its own manifests after later versions.
    """
    kept = set(base.root.uses or ())
    return {
        name
        for name in names
        if is_blob(name) and blob_version(name) <= base.root.version and name not in kept
    }


def prefix(found: Sequence[bytes | None]) -> list[bytes]:
    """Return what was found up to the first absent object. What is after it was read earlier than the hole was
    filled: with it, a reader would see a later commit without an earlier one."""
    return [data for data in itertools.takewhile(lambda data: data is not None, found) if data is not None]


def hash_before_expiry(entry: Commit | Tombstone) -> str:
    """Return the hash of the commit, also where a tombstone has replaced it."""
    return entry.hash if isinstance(entry, Commit) else entry.commit_hash
