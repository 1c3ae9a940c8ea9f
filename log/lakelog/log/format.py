"""The stored objects of a log and their bytes. Pure: times and ids come in.

Every object is one JSON object whose last member is `"hash"`, the SHA-256 of the object without that member.
Anything that does not follow the format exactly is refused, by name where a newer lakelog wrote it. The hash shows
damage and not intent: members are believed in the forms of `grammar` only, and decoded within the limits of `decoding`.
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
"""Of one version: its tombstone, which keeps a digest of each id, stays below 20 KiB."""
PROPOSALS = "proposals"
"""The feature of a log for which there may be proposals: a version may refuse changes, and have those of others."""
FEATURES = frozenset({PROPOSALS})
"""Of the log itself; rooms above have their own."""
WINDOW = 256
"""In how many versions after the one that its author saw a proposal may be applied."""
PROPOSAL_SIZE_MAX = 1024 * 1024
PROPOSED_MAX = 256
"""Changes of one proposal."""
FEATURES_RESERVED = {
    "inline-rows": "rows carried inside a commit",
    "encryption": "encrypted logs",
}


class WriteRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write: its id, which its files' names carry, and the version of the log that it started from."""

    id: Id
    version: Number


class Sidecar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bulk of a commit in an object of its own."""

    name: SidecarName
    size_bytes: Number
    hash: Hash


class Intent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """In a commit that is part of a transaction across logs: it has the effect that the decision gives it.

    `txn` is new for every attempt, and ends with a hash of `folder` and of the sorted list of the places of all its
    logs in the warehouse, URLs where they are outside of it. `log` is this log's own place, which is at `index` of
    `count` in that list, as `proof` shows (see `merkle`). The decision is in `_txn/` of `folder`. `warehouse` is given
    to a log outside of it, which has no other way to find it.
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
        """The key of the decision, below the warehouse."""
        return f"{self.folder}/_txn/{self.txn}.json" if self.folder else f"_txn/{self.txn}.json"


Outcome: TypeAlias = Literal["committed", "aborted"]
COMMITTED: Outcome = "committed"
ABORTED: Outcome = "aborted"


class Settled(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """In the commit after an intent: what became of that, and the transaction's time where it committed."""

    outcome: Outcome
    time_us: TimeUs = 0


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a change was refused for good: the error of its author. `version` and `by` are what was in its way."""

    kind: Word
    message: Reason
    version: Number = 0
    by: Id | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several changes that share a version, by its author: `events` counts its own among those of the commit,
    which has them in the order of its changes.

    `seen` is the head that its author saw who proposed it, 0 where the client that put the version made it. One that is
    `refused` has no events, and no later version has it.
    """

    commit_id: Id
    base: Number
    writer: dict[str, Json] = {}
    write: WriteRef | None = None
    events: Number = 0
    seen: Number = 0
    refused: Refusal | None = None


class ProposedChange(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One of the changes of a proposal: what its author decided on the version that it saw. Instead of events it may
    have `rows`, of which the client that commits it makes them."""

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
    """An object in the store; `hash` is left out of what is hashed."""


class Commit(_Stored, frozen=True, kw_only=True, tag="commit"):
    """Version `version` of a log. `prev` is the hash of the object before it, "" for version 1.

    One that `reopens` follows a seal, has another `log_id` than it, and begins anew from nothing. One that
    `restores` follows a seal too, but the same log goes on, with the state that it had. After one that `purges`,
    which follows a seal, only a reopening may come. An `intent` has the effect that its decision gives it, and
    the commit after it `settles` it. Where it has `changes`, retries and histories
    look for their ids, and never for its own `commit_id`.
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
    fence: Number = 0
    seals: bool = False
    reopens: bool = False
    restores: bool = False
    purges: bool = False
    intent: Intent | None = None
    settles: Settled | None = None
    sidecars: tuple[Sidecar, ...] = ()
    events: tuple[dict[str, Json], ...] = ()
    changes: Annotated[tuple[Change, ...], Meta(max_length=CHANGES_MAX)] = ()
    hash: str = ""


class Tombstone(_Stored, frozen=True, kw_only=True, tag="tombstone"):
    """What expiry leaves of a commit: enough to settle which commit won its version.

    A pure function of the commit and, for an intent, of its decision: `outcome` is that ("" for a plain commit), and
    `time_us` the transaction's time where it committed. `applied` and `refused` have the digests of the ids of its
    changes.
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


class Root(_Stored, frozen=True, kw_only=True, tag="snapshot"):
    """The state after `version`: what the log itself knows, and the projection's own `state`.

    `base` is the number of the base that the state was derived from, 0: from version 1 on. Its manifests are
    sure to exist while there is no base `base` + 1. `uses` names all of them (None: not
    known, then the root cannot become a base). `settles` is what the next commit must say of the intent at
    `version`, None where that is a plain commit.
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
    settles: Settled | None = None
    features: tuple[Feature, ...] = ()
    uses: tuple[BlobName, ...] | None = None
    state: Json = None
    hash: str = ""


class Base(_Stored, frozen=True, kw_only=True, tag="base"):
    """Base `number`: readers may rely on `root`, and versions up to its own may be tombstones."""

    format: Number
    log_id: Id
    number: Number
    root: Root
    hash: str = ""


class Decision(_Stored, frozen=True, kw_only=True, tag="decision"):
    """What became of transaction `txn`: the client that creates this object first decides, for ever.

    `positions` are the versions of the intents by the names of the participants, and `time_us` is the
    transaction's time in all of them; an abort has neither.
    """

    format: Number
    txn: TxnId
    commit_id: Id
    outcome: Outcome
    time_us: TimeUs = 0
    positions: dict[str, Number] = {}
    hash: str = ""

    @property
    def settled(self) -> Settled:
        return Settled(outcome=self.outcome, time_us=self.time_us)


class Proposal(_Stored, frozen=True, kw_only=True, tag="proposal"):
    """Changes that a client wants others to commit for it, in one of the versions after `seen`, up to `until`.

    `features` are what these changes need, of the client that commits them and of every reader from then on.
    """

    format: Number
    log_id: Id
    seen: Number
    until: Number
    features: tuple[Feature, ...] = ()
    changes: Annotated[tuple[ProposedChange, ...], Meta(min_length=1, max_length=PROPOSED_MAX)]
    hash: str = ""


_STORED = TypeVar("_STORED", Commit | Tombstone, Root, Base, Decision, Proposal)
_HASH_MEMBER = b',"hash":"'
_TAIL = len(_HASH_MEMBER) + 64 + 2
_ENCODER = msgspec.json.Encoder()
_ENTRY: msgspec.json.Decoder[Commit | Tombstone] = msgspec.json.Decoder(Commit | Tombstone)
_ROOT = msgspec.json.Decoder(Root)
_BASE = msgspec.json.Decoder(Base)
_DECISION = msgspec.json.Decoder(Decision)
_PROPOSAL = msgspec.json.Decoder(Proposal)


class _Peek(msgspec.Struct):
    format: Number
    features: tuple[Feature, ...] = ()


_PEEK = msgspec.json.Decoder(_Peek)


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def id_digest(commit_id: str) -> str:
    """Return what a tombstone keeps of the id of a change: 64 bits, so that two ids agree by chance once in 10^19."""
    return hashlib.sha256(commit_id.encode()).hexdigest()[:16]


def encode(stored: Commit | Tombstone | Root | Base | Decision | Proposal) -> bytes:
    """Return the object's bytes, its hash appended; `stored.hash` must be empty."""
    if stored.hash:
        raise InvalidInput("an object that was read from a log is not written again: make a new one")
    try:
        plain = _ENCODER.encode(stored)
    except (RecursionError, OverflowError, UnicodeEncodeError, TypeError) as error:
        raise InvalidInput(
            f"an object of a log cannot have this: {shortened(str(error))}; give texts of Unicode, numbers of 64 bits, "
            f"and JSON of at most {DEPTH_MAX} levels"
        ) from error
    return b"".join((plain[:-1], _HASH_MEMBER, hash_of(plain).encode("ascii"), b'"}'))


def own_commit(data: bytes, location: str) -> Commit:
    """Return what `encode` made of a commit, as a reader will see it. InvalidInput for one that no reader will take."""
    try:
        commit = decoded(_ENTRY, data, f"the commit to {location}", size_max=COMMIT_SIZE_MAX)
    except FormatError as error:
        raise InvalidInput(f"nothing was written: {error.message.split('; find out')[0]}") from error
    if not isinstance(commit, Commit):
        raise InvalidInput(f"nothing was written to {location}: a {type(commit).__name__} is not a commit")
    return commit


def encode_derived(stored: Root | Base, location: str) -> bytes:
    """Return the object's bytes. Unsupported for one that no reader will take: a base that was created is never
    replaced."""
    data = encode(stored)
    try:
        check_shape(data, location, size_max=SIZE_MAX_DERIVED, depth_max=DEPTH_MAX_DERIVED)
    except FormatError as error:
        raise Unsupported(
            f"nothing was written, as the state is too large: {error.message.split('; find out')[0]}"
        ) from error
    return data


def decode_entry(data: bytes, location: str, features: Collection[str] = ()) -> Commit | Tombstone:
    """Return the object at a version. Raises FormatError, UnsupportedFormat; `features` are those known here."""
    entry = _decode(_ENTRY, data, location, features, COMMIT_SIZE_MAX, DEPTH_MAX)
    if isinstance(entry, Commit):
        check_features(entry.features, features, location)
    return entry


def decode_root(data: bytes, location: str, features: Collection[str] = ()) -> Root:
    root = _decode(_ROOT, data, location, features, SIZE_MAX_DERIVED, DEPTH_MAX_DERIVED)
    check_features(root.features, features, location)
    return root


def decode_base(data: bytes, location: str, features: Collection[str] = (), *, number: int) -> Base:
    """Return base `number`. FormatError also for another one: a walk over bases by what they say would never end."""
    base = _decode(_BASE, data, location, features, SIZE_MAX_DERIVED, DEPTH_MAX_DERIVED)
    check_features(base.root.features, features, location)
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
    """Return a proposal. FormatError, UnsupportedFormat; whether it is of its place, `inbox` says."""
    proposal = _decode(_PROPOSAL, data, location, features, PROPOSAL_SIZE_MAX, DEPTH_MAX)
    check_features(proposal.features, features, location)
    return proposal


def check_features(needed: Sequence[str], known: Collection[str], location: str) -> None:
    """Raise UnsupportedFormat for the features that this client does not know, by name."""
    unknown = [feature for feature in needed if feature not in known and feature not in FEATURES]
    if unknown:
        names = ", ".join(
            f"{name!r} ({FEATURES_RESERVED[name]})" if name in FEATURES_RESERVED else repr(name)
            for name in unknown
        )
        raise UnsupportedFormat(
            f"{location} needs a feature that this lakelog does not have: {names}; upgrade lakelog to use this log"
        )


def content_matches(data: bytes) -> bool:
    """Return whether the object's last member is the hash of the rest."""
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
    # Before the hash too: what is refused must not cost more than what is read.
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
    """Raise UnsupportedFormat if that, rather than damage, is why an object of a known shape cannot be read."""
    try:
        peek = _PEEK.decode(data)
    except UNREADABLE:
        return
    if peek.format > FORMAT:
        raise UnsupportedFormat(
            f"{location} has log format {peek.format}, and this lakelog reads up to {FORMAT}; "
            "upgrade lakelog to use this log"
        )
    check_features(peek.features, features, location)
