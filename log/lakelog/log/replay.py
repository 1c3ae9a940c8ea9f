"""Reading a log: from a hint, a base or version 1 up to the head, always a prefix of the committed versions.

The head is before the first absent version. A hint or snapshot is used only if its hash names the commit at
its version. A tombstone sends a reader on to the last base. Nothing here lists objects. An intent counts as
its decision says, and the commit after it repeats that. An undecided intent is not read at all.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from lakelog.log.changes import misfit
from lakelog.log.decisions import DecisionPlace, OpenUrl, place_of, settled_by
from lakelog.log.errors import FormatError, InvalidInput, NotFound, PermissionDenied, UnsupportedFormat
from lakelog.log.format import (
    ABORTED,
    Commit,
    LogBase,
    SettledIntent,
    SnapshotRoot,
    Tombstone,
    check_features,
    decode_base,
    decode_entry,
    decode_root,
    hash_of,
)
from lakelog.log.grammar import is_blob
from lakelog.log.keys import LogKeys, blob_version
from lakelog.log.options import LogOptions
from lakelog.log.stores import ObjectStore
from lakelog.log.view import (
    LogView,
    NewestView,
    S,
    StateProjection,
    advance,
    effective,
    empty_view,
    view_of,
)

BATCH_MAX = 64
"""Versions that are processed at once."""

COLD_BATCH = 8
"""Versions that are read first if there is no hint, because most logs without a hint are short."""

WARM_BATCH = 4
"""Versions that are read next if the first version exists."""

NEXT_BATCH = 20
"""Versions that are read next if there are still more: as many as between two snapshots."""

PROBES = (64, 256, 1024)
"""Distances ahead at which single versions are tried, beside a batch. The first absent version bounds the
next batch. So a thousand versions take a single round, and few requests are for absent versions."""

ROUND_BYTES_MAX = 64 * 1024 * 1024
"""The most bytes, as far as known, that a round reads with sidecars or with more than BATCH_MAX versions."""

BASES_BATCH = 4

T = TypeVar("T")
Entry = TypeVar("Entry", Commit, Commit | Tombstone)
Beside: TypeAlias = Callable[[LogView[S]], None]
Hint: TypeAlias = Callable[[], bytes | None]


class LogReplay(Generic[S]):
    """The reading half of a log."""

    def __init__(
        self,
        store: ObjectStore,
        keys: LogKeys,
        projection: StateProjection[S],
        options: LogOptions,
        open_url: OpenUrl | None = None,
        opened: str | None = None,
    ) -> None:
        self.store = store
        self.keys = keys
        self.projection = projection
        self.features = projection.known_features
        self.options = options
        self.open_url = open_url
        self.opened = opened
        self.withheld = 0
        """The version of the last intent whose decision this client may not read."""
        self.hint_due: NewestView[S] = NewestView()
        """The view whose hint is to be written in the background."""

    def load(self, beside: Beside[S] | None = None, hint: Hint | None = None) -> LogView[S]:
        """Return the head from a cold start: reads the hint, then everything after it.

        `beside` is called with an older view while the rest is read, so that the caller can read objects of
        that view early. Nothing about the view was checked if it is the hint's. `beside` is not called if
        nothing is left to read. `hint` returns the hint's object if the caller has read it.
        """
        root = self.hinted_root(hint)
        if root is None:
            return self.load_without_hint(beside)
        hinted_view = self._state_of(root)
        view = self._beside(lambda: self._from_hint(root, hinted_view), hinted_view, beside)
        return self.load_without_hint() if view is None else view

    def load_without_hint(self, beside: Beside[S] | None = None) -> LogView[S]:
        """Return the head, read from version 1 on, or from the last base if version 1 has expired."""
        objects = self.get_versions(range(1, COLD_BATCH + 1))
        if objects[0] is None and any(objects) and self.store.get(self.keys.commit(1)) is None:
            raise FormatError(
                f"{self.at(self.keys.commit(1))} is missing although later versions exist; restore it from a backup"
            )
        if not any(objects):
            raise NotFound(f"there is no log at {self.location}; check the location, or create it first")
        start = empty_view(self.projection)
        if None in objects:
            return self.forward(start, found=objects, batch=NEXT_BATCH)
        start = self.forward(start, found=objects, until=COLD_BATCH)
        return self._beside(lambda: self.forward(start, batch=NEXT_BATCH), start, beside)

    def _beside(
        self, read: Callable[[], T], older: LogView[S] | UnsupportedFormat | None, beside: Beside[S] | None
    ) -> T:
        """Return the result of `read`, and call `beside` with an older view at the same time."""
        if beside is None or not isinstance(older, LogView):
            return read()
        results: list[T] = []
        self.options.in_parallel([lambda: results.append(read()), lambda: beside(older)])
        return results[0]

    def hinted_root(self, hint: Hint | None = None) -> SnapshotRoot | None:
        """Return the snapshot in the hint; None if it is missing, broken or of a newer format."""
        return self.root_or_none(self.keys.latest, hint() if hint else self.store.get(self.keys.latest))

    def root_or_none(self, key: str, data: bytes | None) -> SnapshotRoot | None:
        if data is None:
            return None
        try:
            return decode_root(data, self.at(key), self.features)
        except FormatError:
            return None  # This costs only time; damage to the commits shows when they are read.

    def _state_of(self, root: SnapshotRoot) -> LogView[S] | UnsupportedFormat | None:
        """Return the hint's view, or an error to raise if the hint turns out to be this log's."""
        try:
            return self.view_of(root, self.keys.latest)
        except UnsupportedFormat as error:
            return error

    def _from_hint(
        self, root: SnapshotRoot, hinted_view: LogView[S] | UnsupportedFormat | None
    ) -> LogView[S] | None:
        keys = [self.keys.commit(root.version), self.keys.commit(root.version + 1)]
        if root.uses != ():
            keys.append(self.keys.base(root.base + 1))
        objects = self.store.get_many(keys)
        key = self.keys.commit(root.version)
        if objects[0] is None:
            raise FormatError(
                f"{self.at(key)} is missing although {self.at(self.keys.latest)} names it: restore it from a backup; "
                "if it is lost for good, delete the latter to go on without it"
            )
        if not self.names_this(root, self.entry(root.version, objects[0])):
            return None
        newer_base = objects.pop() if len(objects) > 2 else None
        base = self.sound_with(root, newer_base)
        if base is None:
            return self.forward(self.last_base(root.base + 1, at_least=0), batch=NEXT_BATCH)
        if isinstance(hinted_view, UnsupportedFormat):
            raise hinted_view
        if hinted_view is None:
            return None
        return self.forward(replace(hinted_view, base=base), found=objects[1:2], batch=NEXT_BATCH)

    def sound_with(self, root: SnapshotRoot, newer_base: bytes | None) -> int | None:
        """Return the last base's number if no base after the snapshot's own gave up a manifest of it.

        Otherwise None, because its manifests may be deleted. `newer_base` is the base after the base that it
        was derived from. Makes a GET for each newer base.
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

    def view_of(self, root: SnapshotRoot, key: str) -> LogView[S] | None:
        """Return the view of a snapshot. None if its state cannot be read, which costs only time: the commits
        have it too. Raises UnsupportedFormat if a newer lakelog wrote it."""
        try:
            return view_of(root, self.projection, self.at(key))
        except UnsupportedFormat:
            raise
        except (FormatError, InvalidInput):
            return None

    def names_this(self, root: SnapshotRoot, entry: Commit | Tombstone) -> bool:
        """Return whether a snapshot was taken of exactly this commit."""
        return root.log_id == entry.log_id and root.commit_hash == hash_before_expiry(entry)

    def forward(
        self,
        view: LogView[S],
        *,
        batch: int = 1,
        found: Sequence[bytes | None] | None = None,
        until: int | None = None,
    ) -> LogView[S]:
        """Return the newest view, or the view at `until`. `found` are already read objects after `view`."""
        return self.read_on(view, batch=batch, found=found, until=until)[0]

    def read_on(
        self,
        view: LogView[S],
        *,
        batch: int = 1,
        found: Sequence[bytes | None] | None = None,
        until: int | None = None,
    ) -> tuple[LogView[S], Commit | None]:
        """Do the same as `forward`, and also return the undecided intent after that view, if any.

        `batch` is the number of versions that are read first, or after `found`. Batches grow quickly: four
        rounds reach a head that is a thousand versions ahead.
        """
        newest_seen = 0
        biggest_bytes = 1
        has_end = False  # whether the batch ends at a version that was absent
        intent: Commit | None = None  # an intent after `view`, whose outcome is not read yet
        while until is None or view.version < until:
            first = view.version + (1 if intent is None else 2)
            if intent is not None and until is not None and first > until:
                return self._step_or_wait(view, intent, self.outcome(intent), until=until)
            far_versions: list[int] = []
            far_objects: list[bytes | None] = []
            if found is None:
                batch = min(batch, max(BATCH_MAX, ROUND_BYTES_MAX // biggest_bytes))
                if until is not None:
                    batch = min(batch, until - first + 1)
                elif batch >= NEXT_BATCH and not has_end:
                    far_versions = [first + probe for probe in _probes(batch)]
                found = self.get_versions([*range(first, first + batch), *far_versions])
                found, far_objects = found[:batch], found[batch:]
            elif until is not None:
                found = found[: until - view.version]
            present = prefix(found)
            if not present and first <= newest_seen:
                raise FormatError(
                    f"{self.at(self.keys.commit(first))} is missing although version {newest_seen} exists; "
                    "restore it from a backup"
                )
            by_version = zip(
                [*range(first, first + len(found)), *far_versions], [*found, *far_objects], strict=True
            )
            newest_seen = max([newest_seen, *(version for version, data in by_version if data is not None)])
            biggest_bytes = max([biggest_bytes, *map(len, present)])
            last = first + len(present) - 1
            entries = [self.entry(first + i, data) for i, data in enumerate(present)]
            view, intent = self._apply(view, entries if intent is None else [intent, *entries])
            # An absent object ends the log, unless a later version exists or a base took us to another place.
            at_end = view.version + (intent is not None) == last
            if len(present) < len(found) and newest_seen <= last and at_end:
                if intent is None:
                    return view, None
                return self._step_or_wait(view, intent, self.decided(intent), until=until)
            probe_results = dict(zip(far_versions, far_objects, strict=True)) if at_end else {}
            batch, has_end = _next_batch(batch, last, probe_results), None in probe_results.values()
            if until is not None:
                batch = until - view.version
            found = None
        return view, None

    def _apply(
        self, view: LogView[S], entries: Sequence[Commit | Tombstone]
    ) -> tuple[LogView[S], Commit | None]:
        """Return the view after the entries, and the last entry if it is an unsettled intent."""
        tombstones = [entry.version for entry in entries if isinstance(entry, Tombstone)]
        if tombstones:
            return self.last_base(view.base + 1, at_least=max(tombstones)), None
        commits = [entry for entry in entries if isinstance(entry, Commit)]
        commit_outcomes = list(self.with_outcomes(commits, lambda intent: None))
        for part in _by_size(commit_outcomes):
            blobs = self.sidecars([commit for commit, outcome in part if not is_aborted(outcome)])
            for commit, outcome in part:
                commit_blobs = blobs.get(commit.version, [])
                if commit_blobs is None:
                    return self.last_base(view.base + 1, at_least=commit.version), None
                view = self.advance(view, commit, commit_blobs, outcome)
        return view, commits[-1] if len(commit_outcomes) < len(commits) else None

    def _step_or_wait(
        self, view: LogView[S], intent: Commit, settled_intent: SettledIntent | None, *, until: int | None
    ) -> tuple[LogView[S], Commit | None]:
        if settled_intent is None:
            return view, intent
        new_view = self.step(view, intent, settled_intent)
        return (new_view, None) if new_view.version == intent.version else self.read_on(new_view, until=until)

    def step(
        self, view: LogView[S], entry: Commit | Tombstone, settled_intent: SettledIntent | None
    ) -> LogView[S]:
        """Return the view after `entry`, which follows `view`. If it has expired, return the last base's view."""
        if isinstance(entry, Commit):
            blobs = [] if is_aborted(settled_intent) else self.sidecars([entry])[entry.version]
            if blobs is not None:
                return self.advance(view, entry, blobs, settled_intent)
        return self.last_base(view.base + 1, at_least=entry.version)

    def advance(
        self,
        view: LogView[S],
        commit: Commit,
        blobs: Sequence[bytes],
        settled_intent: SettledIntent | None = None,
    ) -> LogView[S]:
        location = self.at(self.keys.commit(commit.version))
        return advance(view, commit, commit.hash, blobs, self.projection, location, settled_intent)

    # Outcomes of intents

    def with_outcomes(
        self, entries: Iterable[Entry], at_end: Callable[[Commit], SettledIntent | None]
    ) -> Iterator[tuple[Entry, SettledIntent | None]]:
        """Yield successive entries, and with each intent its outcome from the entry after it. `at_end` gives
        the outcome of a final intent. An undecided intent is not yielded."""
        intent: Entry | None = None
        for entry in entries:
            if intent is not None:
                yield intent, self._settled_by(entry, intent)
            intent = entry if isinstance(entry, Commit) and entry.intent is not None else None
            if intent is None:
                yield entry, None
        if isinstance(intent, Commit):
            outcome = at_end(intent)
            if outcome is not None:
                yield intent, outcome

    def _settled_by(self, entry: Commit | Tombstone, intent: Commit | Tombstone) -> SettledIntent | None:
        if isinstance(intent, Tombstone):
            return None
        if isinstance(entry, Tombstone):  # expiry has overtaken us
            outcome = self.decided(intent)
            if outcome is None and self.withheld == intent.version:
                raise self.withheld_error()
            return outcome
        if entry.settles is None:
            raise FormatError(
                f"{self.at(self.keys.commit(entry.version))} does not say what became of the intent before it; "
                "restore the log's objects from one backup"
            )
        return entry.settles

    def outcome(self, intent: Commit) -> SettledIntent | None:
        """Return the outcome of an intent, None while it is undecided. Makes a GET, two at the head."""
        next_data = self.store.get(self.keys.commit(intent.version + 1))
        if next_data is not None:
            return self._settled_by(self.entry(intent.version + 1, next_data), intent)
        return self.decided(intent)

    def _known_outcome(self, intent: Commit) -> SettledIntent | None:
        outcome = self.outcome(intent)
        if outcome is None and self.withheld == intent.version:
            raise self.withheld_error()
        return outcome

    def withheld_error(self) -> PermissionDenied:
        return PermissionDenied(
            f"version {self.withheld} of {self.location} is part of a transaction whose decision these credentials may "
            "not read, so that its state is not known as of one moment with other logs; get the right to read `_txn/` "
            "of the folders above it",
            location=self.location,
        )

    def decided(self, intent: Commit) -> SettledIntent | None:
        """Return the decision of an intent, None if there is none or this client may not read it. Makes a
        GET. A void intent needs none, and counts as aborted."""
        place = self.decision_place(intent)
        if place is None:
            return SettledIntent(outcome=ABORTED)
        try:
            decision = place.read()
        except PermissionDenied:
            self.withheld = intent.version
            return None
        if self.withheld == intent.version:
            self.withheld = 0  # the right was granted since
        return None if decision is None else settled_by(decision, intent, place.location)

    def decision_place(self, intent: Commit) -> DecisionPlace | None:
        location = self.at(self.keys.commit(intent.version))
        return place_of(intent, self.store, self.keys.folder, self.open_url, self.opened, location)

    def effects(self, first: int, last: int) -> Iterator[Commit | Tombstone]:
        """Yield the entries with an effect from version `first` to `last`, which all exist and are decided.
        Raises PermissionDenied if a decision may not be read."""
        for entry, outcome in self.with_outcomes(self._entries(first, last), self._known_outcome):
            effect = effective(entry, outcome)
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
        """Return each commit's sidecars by version, in a single round. None if expiry deleted a sidecar."""
        if not any(commit.sidecars for commit in commits):
            return {commit.version: [] for commit in commits}
        versions_sidecars = [(commit.version, sidecar) for commit in commits for sidecar in commit.sidecars]
        result: dict[int, list[bytes] | None] = {commit.version: [] for commit in commits}
        objects = self.store.get_many([self.keys.sidecar(sidecar.name) for _, sidecar in versions_sidecars])
        for (version, sidecar), data in zip(versions_sidecars, objects, strict=True):
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

    def last_base(self, number: int, *, at_least: int) -> LogView[S]:
        """Return the view of the last base from base `number` on. Raises FormatError if it is before `at_least`."""
        last: bytes | None = None
        batch = BASES_BATCH
        while True:
            objects = self.store.get_many([self.keys.base(number + i) for i in range(batch)])
            present = prefix(objects)
            if present:
                last = present[-1]
                number += len(present)
            # An emptied base (see `expiry.blank`) has another base after it, which was read too early.
            if len(present) < batch and not (present and is_blank(self.base(number - 1, present[-1]))):
                break
            batch = min(2 * batch, BATCH_MAX)
        if last is None:
            raise FormatError(
                f"{self.at(self.keys.base(number))} is missing although version {at_least} of the log has expired "
                "(or lost a sidecar); restore it from a backup"
            )
        base_place = self.at(self.keys.base(number - 1))
        base = self.base(number - 1, last)
        data = self.store.get(self.keys.commit(base.root.version))
        if data is None:
            raise FormatError(
                f"{base_place} holds base {base.number} at version {base.root.version}, which does not belong there: "
                "it was copied or moved, or that version is lost; restore the log's objects from one backup"
            )
        if not self.names_this(base.root, self.entry(base.root.version, data)):
            raise FormatError(
                f"{base_place} was made of another log's version {base.root.version}: it was copied or moved; restore "
                "the log's objects from one backup"
            )
        if base.root.version < at_least:
            raise FormatError(
                f"version {at_least} of {self.location} has expired or lost a sidecar, but the last base "
                f"{self.at(self.keys.base(base.number))} is at version {base.root.version}; restore them from a backup"
            )
        return view_of(base.root, self.projection, base_place)

    def base(self, number: int, data: bytes) -> LogBase:
        return decode_base(data, self.at(self.keys.base(number)), self.features, number=number)

    def check_writable(self, view: LogView[S]) -> None:
        """Raise UnsupportedFormat if a feature of the log is unknown here that writers have to know."""
        check_features(view.writer_features, self.features, self.location, "write to")

    def check_links(self, entries: Sequence[Commit | Tombstone]) -> None:
        """Raise FormatError unless each of these successive entries continues the entry before it."""
        for previous, entry in itertools.pairwise(entries):
            problem = broken_link(previous, entry)
            if problem is not None:
                raise FormatError(
                    f"{self.at(self.keys.commit(entry.version))} {problem}; restore the log's objects from one backup"
                )

    def entry(self, version: int, data: bytes) -> Commit | Tombstone:
        key = self.keys.commit(version)
        entry = decode_entry(data, self.at(key), self.features)
        if entry.version != version:
            raise FormatError(
                f"{self.at(key)} holds version {entry.version}: it was copied or moved; restore it from a backup"
            )
        if isinstance(entry, Commit) and (wrong := misfit(entry)) is not None:
            # Checked here too, as events that belong to none of its changes would be in no history.
            raise FormatError(f"{self.at(key)} {wrong}; restore the log's objects from one backup")
        return entry

    def get_versions(self, versions: Sequence[int]) -> list[bytes | None]:
        if len(versions) == 1:
            return [self.store.get(self.keys.commit(versions[0]))]
        return self.store.get_many([self.keys.commit(version) for version in versions])

    def at(self, key: str) -> str:
        """Return the place of `key` for messages."""
        return f"{self.store.url}/{key}"

    @property
    def location(self) -> str:
        return self.at(self.keys.log).removesuffix("/_log")


def _by_size(
    settled_intent: Sequence[tuple[Commit, SettledIntent | None]],
) -> Iterator[list[tuple[Commit, SettledIntent | None]]]:
    """Yield successive commits in parts whose sidecars are read in a single round."""
    part: list[tuple[Commit, SettledIntent | None]] = []
    size_bytes = 0
    for commit, outcome in settled_intent:
        own_bytes = sum(sidecar.size_bytes for sidecar in commit.sidecars)
        if part and size_bytes + own_bytes > ROUND_BYTES_MAX:
            yield part
            part, size_bytes = [], 0
        part.append((commit, outcome))
        size_bytes += own_bytes
    if part:
        yield part


def _probes(batch: int) -> Iterator[int]:
    """Yield the distances of tried versions from a batch's first version, all of them after the batch."""
    scale = 1
    while PROBES[0] * scale < batch:
        scale *= PROBES[-1] // PROBES[0]
    yield from (probe * scale for probe in PROBES)


def _next_batch(batch: int, last: int, tried: dict[int, bytes | None]) -> int:
    """Return the number of versions to read after `last`, given which of the `tried` versions exist."""
    if tried:
        return min((version for version, data in tried.items() if data is None), default=max(tried)) - last
    return WARM_BATCH if batch < WARM_BATCH else NEXT_BATCH


def broken_link(commit_before: Commit | Tombstone, entry: Commit | Tombstone) -> str | None:
    """Return why `entry` does not continue `commit_before`; None if it does."""
    if (entry.log_id != commit_before.log_id) != entry.reopens:
        return f"belongs to log {entry.log_id}, not to {commit_before.log_id}: it was copied or moved"
    if entry.prev != hash_before_expiry(commit_before):
        return f"continues another version {commit_before.version} than the one before it"
    return None


def is_aborted(settled_intent: SettledIntent | None) -> bool:
    return settled_intent is not None and settled_intent.outcome == ABORTED


def is_outdated(newer_base: bytes | None) -> bool:
    """Return whether a snapshot is outdated: for the base after its own, manifests may have been deleted."""
    return newer_base is not None


def is_blank(base: LogBase) -> bool:
    """Return whether a base's state was removed, because another base follows it."""
    return base.root.state is None


def given_up_by(base: LogBase, names: Iterable[str]) -> set[str]:
    """Return the manifests that neither `base` nor any state derived from it can use. A state derived from it
    names its own manifests after later versions."""
    used_names = set(base.root.uses or ())
    return {
        name
        for name in names
        if is_blob(name) and blob_version(name) <= base.root.version and name not in used_names
    }


def prefix(found: Sequence[bytes | None]) -> list[bytes]:
    """Return the objects before the first absent object. Later objects were read before the hole was filled.
    With them, a reader would see a later commit without an earlier commit."""
    return [data for data in itertools.takewhile(lambda data: data is not None, found) if data is not None]


def hash_before_expiry(entry: Commit | Tombstone) -> str:
    """Return the hash of the commit, even if a tombstone has replaced it."""
    return entry.hash if isinstance(entry, Commit) else entry.commit_hash
