"""The stored objects of a log and their bytes. Pure: times and ids come in.

Every object is a JSON object whose last member is `"hash"`, the SHA-256 of the object without that member.
Objects that do not follow the format exactly are refused, by name if a newer lakelog wrote them. The hash
shows damage, not intent. So members are believed only in the forms of `grammar`, and decoded within the
limits of `decoding`.
"""

import hashlib
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from lakelog.log.decoding import (
    DEPTH_MAX,
    DEPTH_MAX_DERIVED,
    SIZE_MAX_DERIVED,
    UNREADABLE,
    check_shape,
    decoded,
    decoded_of_known_shape,
)
from lakelog.log.errors import FormatError, InvalidInput, Unsupported, UnsupportedFormat
from lakelog.log.grammar import (
    BlobName,
    Feature,
    Folder,
    Hash,
    HashOrNone,
    Id,
    IdDigest,
    Location,
    Number,
    Proof,
    Reason,
    SidecarName,
    TimeUs,
    TxnId,
    Word,
    shortened,
)

# msgspec cannot resolve a recursive alias, so the type is not checked below this depth.
Json: TypeAlias = Any

FORMAT = 1
COMMIT_SIZE_MAX = 8 * 1024 * 1024
CHANGES_MAX = 1024
"""Changes of a version. Its tombstone keeps a digest of each id, and so stays below 20 KiB."""
PROPOSALS = "proposals"
"""The feature of a log that allows proposals: versions may refuse changes, or contain other clients'.

Only writers have to know it. Every reader knows the form of such versions. But a retry may not fail while
another client can still apply the change.
"""
FEATURES = frozenset({PROPOSALS})
"""Features of the log itself; the rooms above have their own."""
WINDOW = 256
"""The number of versions after its author's head in which a proposal may be applied."""
PROPOSAL_SIZE_MAX = 1024 * 1024
PROPOSED_MAX = 256
"""Changes of a proposal."""


class WriteRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write: its id, which is part of its files' names, and the version of the log that it started from."""

    id: Id
    version: Number


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bulk of a commit, in an object of its own."""

    name: SidecarName
    size_bytes: Number
    hash: Hash


class Intent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """In a commit that is part of a transaction across logs: the decision gives the commit its effect.

    `txn` is new for every attempt. It ends with a hash of `folder` and of the sorted list of the places of
    all its logs. A place is a path in the warehouse, or a URL if the log is outside of it. `log` is this
    log's own place. It is at `index` of `count` in that list, and `proof` shows this (see `merkle`). The
    decision is in `_txn/` of `folder`. Only logs outside of the warehouse get `warehouse`, because they have
    no other way to find it.
    """

    txn: TxnId
    log: Location
    index: Number
    count: Number
    proof: Proof
    folder: Folder
    warehouse: Location = ""

    @property
    def decision(self) -> str:
        """The key of the decision, relative to the warehouse."""
        return f"{self.folder}/_txn/{self.txn}.json" if self.folder else f"_txn/{self.txn}.json"


Outcome: TypeAlias = Literal["committed", "aborted"]
COMMITTED: Outcome = "committed"
ABORTED: Outcome = "aborted"


class SettledIntent(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """In the commit after an intent: the intent's outcome, and the transaction's time if it committed."""

    outcome: Outcome
    time_us: TimeUs = 0


class ChangeRefusal(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Why a change was refused for good: its author's error. `version` and `by` name the obstacle."""

    kind: Word
    message: Reason
    version: Number = 0
    by: Id | None = None


class SharedChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A change of a version that several changes share.

    The commit has the events of all its changes, in the order of the changes; `events` counts the events of
    this change. `seen` is the head that its author saw when proposing it. It is 0 if the change is from the
    client that put the version. A `refused` change has no events, and no later version has it.
    """

    commit_id: Id
    base: Number
    writer: dict[str, Json] = {}
    write: WriteRef | None = None
    events: Number = 0
    seen: Number = 0
    refused: ChangeRefusal | None = None


class ProposedChange(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A change of a proposal, as its author decided it on the version that it saw.

    It has `rows` instead of events if the client that commits it has to make the events from rows.
    """

    commit_id: Id
    base: Number
    writer: dict[str, Json] = {}
    write: WriteRef | None = None
    events: tuple[dict[str, Json], ...] = ()
    rows: bytes = b""


class _Stored(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    """An object in the store. The hash covers all members except `hash`."""


class Commit(_Stored, frozen=True, kw_only=True, tag="commit"):
    """Version `version` of a log. `prev` is the hash of the commit before it, also if a tombstone stands in
    that commit's place now; it is "" in version 1.

    A commit that `reopens` follows a seal, has another `log_id`, and starts from an empty state. A commit
    that `restores` also follows a seal, but the same log continues with its state. A commit that `purges`
    follows a seal too, and only a reopening may follow it. An `intent` has the effect that its decision gives
    it; the commit after it `settles` it. If a commit has `changes`, retries and histories look for their ids,
    never for its own `commit_id`. `features` are those that it uses first. Every reader must know them. Only
    writers must know `writer_features`.
    """

    format: Number
    log_id: Id
    version: Number
    commit_id: Id
    attempt_id: Id
    base: Number
    prev: HashOrNone
    time_us: TimeUs
    writer: dict[str, Json] = {}
    write: WriteRef | None = None
    features: tuple[Feature, ...] = ()
    writer_features: tuple[Feature, ...] = ()
    fence: Number = 0
    seals: bool = False
    reopens: bool = False
    restores: bool = False
    purges: bool = False
    intent: Intent | None = None
    settles: SettledIntent | None = None
    sidecars: tuple[Sidecar, ...] = ()
    events: tuple[dict[str, Json], ...] = ()
    changes: Annotated[tuple[SharedChange, ...], Meta(max_length=CHANGES_MAX)] = ()
    hash: str = ""


class Tombstone(_Stored, frozen=True, kw_only=True, tag="tombstone"):
    """The remainder of an expired commit: enough to settle which commit won its version.

    It is a pure function of the commit and, for an intent, of its decision. `outcome` is that decision, ""
    for a plain commit. `time_us` is the transaction's time if it committed. `applied` and `refused` have the
    digests of its changes' ids.
    """

    format: Number
    log_id: Id
    version: Number
    commit_id: Id
    attempt_id: Id
    prev: HashOrNone
    time_us: TimeUs
    seals: bool = False
    reopens: bool = False
    restores: bool = False
    purges: bool = False
    outcome: Literal["", "committed", "aborted"] = ""
    applied: Annotated[tuple[IdDigest, ...], Meta(max_length=CHANGES_MAX)] = ()
    refused: Annotated[tuple[IdDigest, ...], Meta(max_length=CHANGES_MAX)] = ()
    commit_hash: Hash
    hash: str = ""


class SnapshotRoot(_Stored, frozen=True, kw_only=True, tag="snapshot"):
    """The state after `version`: the log's own facts, and the projection's `state`.

    `base` is the number of the base that the state was derived from, 0 if it was derived from version 1 on.
    Its manifests certainly exist while there is no base `base` + 1. `uses` names all of them. If it is None
    they are unknown, and the root cannot become a base. `settles` is the outcome that the next commit must
    state for the intent at `version`; None if `version` is a plain commit. `features` and `writer_features`
    are those of the log. A reader needs `state_features` only for the form of `state`.
    """

    format: Number
    log_id: Id
    version: Number
    commit_hash: Hash
    time_us: TimeUs
    base: Number = 0
    fence: Number = 0
    sealed: bool = False
    purged: bool = False
    settles: SettledIntent | None = None
    features: tuple[Feature, ...] = ()
    writer_features: tuple[Feature, ...] = ()
    state_features: tuple[Feature, ...] = ()
    uses: tuple[BlobName, ...] | None = None
    state: Json = None
    hash: str = ""


class LogBase(_Stored, frozen=True, kw_only=True, tag="base"):
    """Base `number`: readers may rely on `root`, and versions up to the root's may be tombstones."""

    format: Number
    log_id: Id
    number: Number
    root: SnapshotRoot
    hash: str = ""


class Decision(_Stored, frozen=True, kw_only=True, tag="decision"):
    """The outcome of transaction `txn`. The client that creates this object first decides it for ever.

    `positions` are the versions of the intents by participant, and `time_us` is the transaction's time in all
    of them. An abort has neither.
    """

    format: Number
    txn: TxnId
    commit_id: Id
    outcome: Outcome
    time_us: TimeUs = 0
    positions: dict[str, Number] = {}
    hash: str = ""

    @property
    def settled(self) -> SettledIntent:
        return SettledIntent(outcome=self.outcome, time_us=self.time_us)


class Proposal(_Stored, frozen=True, kw_only=True, tag="proposal"):
    """Changes that a client asks other clients to commit, in a version after `seen`, up to `until`.

    The client that commits them must know `features`, which every later reader must know too, and
    `writer_features`.
    """

    format: Number
    log_id: Id
    seen: Number
    until: Number
    features: tuple[Feature, ...] = ()
    writer_features: tuple[Feature, ...] = ()
    changes: Annotated[tuple[ProposedChange, ...], Meta(min_length=1, max_length=PROPOSED_MAX)]
    hash: str = ""


_STORED = TypeVar("_STORED", Commit | Tombstone, SnapshotRoot, LogBase, Decision, Proposal)
_HASH_MEMBER = b',"hash":"'
_TAIL = len(_HASH_MEMBER) + 64 + 2
_ENCODER = msgspec.json.Encoder()
_ENTRY: msgspec.json.Decoder[Commit | Tombstone] = msgspec.json.Decoder(Commit | Tombstone)
_ROOT = msgspec.json.Decoder(SnapshotRoot)
_BASE = msgspec.json.Decoder(LogBase)
_DECISION = msgspec.json.Decoder(Decision)
_PROPOSAL = msgspec.json.Decoder(Proposal)


class _PeekRoot(msgspec.Struct, frozen=True):
    features: tuple[Feature, ...] = ()
    writer_features: tuple[Feature, ...] = ()
    state_features: tuple[Feature, ...] = ()

    @property
    def all_features(self) -> tuple[str, ...]:
        return (*self.features, *self.writer_features, *self.state_features)


class _Peek(_PeekRoot, frozen=True):
    format: Number = 0
    root: _PeekRoot = _PeekRoot()


_PEEK = msgspec.json.Decoder(_Peek)


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def id_digest(commit_id: str) -> str:
    """Return a change id's digest for tombstones: 64 bits, so two ids agree by chance once in 10^19."""
    return hashlib.sha256(commit_id.encode()).hexdigest()[:16]


def encode(stored_commit: Commit | Tombstone | SnapshotRoot | LogBase | Decision | Proposal) -> bytes:
    """Return the object's bytes, with its hash appended. `stored.hash` must be empty."""
    if stored_commit.hash:
        raise InvalidInput("an object that was read from a log is not written again: make a new one")
    try:
        plain = _ENCODER.encode(stored_commit)
    except (RecursionError, OverflowError, UnicodeEncodeError, TypeError) as error:
        raise InvalidInput(
            f"an object of a log cannot have this: {shortened(str(error))}; give texts of Unicode, numbers of 64 bits, "
            f"and JSON of at most {DEPTH_MAX} levels"
        ) from error
    return b"".join((plain[:-1], _HASH_MEMBER, hash_of(plain).encode("ascii"), b'"}'))


def own_commit(data: bytes, location: str) -> Commit:
    """Return the commit that `encode` made, as readers will see it. Raises InvalidInput if no reader will take it."""
    try:
        commit = decoded(_ENTRY, data, f"the commit to {location}", size_max=COMMIT_SIZE_MAX)
    except FormatError as error:
        raise InvalidInput(f"nothing was written: {error.message.split('; find out')[0]}") from error
    if not isinstance(commit, Commit):
        raise InvalidInput(f"nothing was written to {location}: a {type(commit).__name__} is not a commit")
    return commit


def encode_derived(stored_root: SnapshotRoot | LogBase, location: str) -> bytes:
    """Return the object's bytes. Raises Unsupported if no reader will take it, as bases are never replaced."""
    data = encode(stored_root)
    try:
        check_shape(data, location, size_max=SIZE_MAX_DERIVED, depth_max=DEPTH_MAX_DERIVED)
    except FormatError as error:
        raise Unsupported(
            f"nothing was written, as the state is too large: {error.message.split('; find out')[0]}"
        ) from error
    return data


def decode_entry(data: bytes, location: str, features: Collection[str] = ()) -> Commit | Tombstone:
    """Return the object at a version. `features` are the features known here, besides the log's own.

    Raises FormatError or UnsupportedFormat.
    """
    entry = _decode(_ENTRY, data, location, features, COMMIT_SIZE_MAX, DEPTH_MAX)
    if isinstance(entry, Commit):
        check_features(entry.features, features, location)
    return entry


def decode_root(data: bytes, location: str, features: Collection[str] = ()) -> SnapshotRoot:
    root = _decode(_ROOT, data, location, features, SIZE_MAX_DERIVED, DEPTH_MAX_DERIVED)
    check_features((*root.features, *root.state_features), features, location)
    return root


def decode_base(data: bytes, location: str, features: Collection[str] = (), *, number: int) -> LogBase:
    """Return base `number`. Raises FormatError for another number too, so that walks over bases end."""
    base = _decode(_BASE, data, location, features, SIZE_MAX_DERIVED, DEPTH_MAX_DERIVED)
    check_features((*base.root.features, *base.root.state_features), features, location)
    if base.number != number or base.root.base != number:
        raise FormatError(
            f"{location} says that it is base {base.number} of base {base.root.base}: it was copied or moved; restore "
            "it from a backup"
        )
    if base.log_id != base.root.log_id:
        raise FormatError(
            f"{location} is a base of log {base.log_id} with the root of log {base.root.log_id}; restore it from a "
            "backup"
        )
    return base


def decode_decision(data: bytes, location: str) -> Decision:
    return _decode(_DECISION, data, location, (), COMMIT_SIZE_MAX, DEPTH_MAX)


def decode_proposal(data: bytes, location: str, features: Collection[str] = ()) -> Proposal:
    """Return a proposal. Raises FormatError or UnsupportedFormat. `inbox` checks whether it belongs at its key."""
    proposal = _decode(_PROPOSAL, data, location, features, PROPOSAL_SIZE_MAX, DEPTH_MAX)
    check_features((*proposal.features, *proposal.writer_features), features, location, "write to")
    return proposal


def check_features(
    needed: Sequence[str], known: Collection[str], location: str, verb: Literal["read", "write to"] = "read"
) -> None:
    """Raise UnsupportedFormat with the names of the features that this client does not know."""
    unknown = sorted({feature for feature in needed if feature not in known and feature not in FEATURES})
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        raise UnsupportedFormat(
            f"{location} uses the {'features' if unknown[1:] else 'feature'} {names}, which this {_own_version()} does "
            f"not know: upgrade lakelog to {verb} it"
        )


def _own_version() -> str:
    from importlib import metadata  # loads much that only an error's message needs

    try:
        return f"lakelog ({metadata.version('lakelog')})"
    except metadata.PackageNotFoundError:
        return "lakelog"


def content_matches(data: bytes) -> bool:
    """Return whether the object's last member is the hash of the other members."""
    if data[-_TAIL:-66] != _HASH_MEMBER or data[-2:] != b'"}':
        return False
    digest = hashlib.sha256(data[:-_TAIL])
    digest.update(b"}")
    return digest.hexdigest().encode("ascii") == data[-66:-2]


def _decode(
    decoder: msgspec.json.Decoder[_STORED],
    data: bytes,
    location: str,
    features: Collection[str],
    size_max: int,
    depth_max: int,
) -> _STORED:
    # This comes before the hash too, because refusing an object must not cost more than reading it.
    check_shape(data, location, size_max=size_max, depth_max=depth_max)
    if not content_matches(data):
        _refuse_the_future(data, location, features)
        raise FormatError(
            f"{location} was truncated or altered: its {len(data)} bytes do not match the hash in them; "
            "restore this object from a backup or from an older version of it"
        )
    try:
        stored = decoded_of_known_shape(decoder, data, location)
    except FormatError:
        _refuse_the_future(data, location, features)
        raise
    if stored.format != FORMAT:
        _refuse_the_future(data, location, features)
        raise FormatError(
            f"{location} has the invalid format {stored.format}; find out which client wrote this object"
        )
    return stored


def _refuse_the_future(data: bytes, location: str, features: Collection[str]) -> None:
    """Raise UnsupportedFormat if a newer format, not damage, is why an object of a known shape cannot be read."""
    try:
        peek = _PEEK.decode(data)
    except UNREADABLE:
        return
    if peek.format > FORMAT:
        raise UnsupportedFormat(
            f"{location} has log format {peek.format}, and this lakelog reads up to {FORMAT}; "
            "upgrade lakelog to use this log"
        )
    check_features((*peek.all_features, *peek.root.all_features), features, location)
