"""Packs: objects with the entries of many files, of which a plan reads the parts that it needs.

A pack has leaves of some thousand entries, and each leaf is several parts. `files` has the columns of each
file that a plan returns. The statistics of each column are a part, and so is the `rest`. No column is in
two parts, and each part is an Arrow stream of its own. Parts of the same kind lie side by side for all
leaves of the pack, so that a read of many leaves is a single request.

The snapshot's root has the places and the hashes of the parts of its leaves. A leaf is named by the hash of
these hashes. So the hash of every part is known before the part is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Meta

from lakelog.catalog.core.files.arrow_lists import EncodedTable, encode_table
from lakelog.catalog.core.files.data_file import (
    BASE_SCHEMA,
    check_columns,
    checked_values,
    is_planned,
    split_name,
)
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.log import BlobRange
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Number

FILES, REST = "files", "rest"

PARTS_MAX = 20_000
RANGES_MAX = 2
"""A plan reads at most so many ranges of an object, however many parts: gaps cost less than a request."""

GAP_BYTES = 32 * 1024
"""The gap between two ranges is read if it is at most this long."""

KEPT_BYTES = 128 * 1024 * 1024

HASH_BYTES = 32

_Size = Annotated[int, Meta(gt=0, le=2**40)]
_Kind = Annotated[str, Meta(pattern=r"^(?:files|rest|0|[1-9][0-9]{0,9})$(?!\n)")]


class StoredPack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Those leaves of a pack that a root names, each with its number of entries.

    Each leaf has parts of all `kinds`. `places` has for each leaf the first byte and the size of each part, in
    the order of the kinds. `sha256` has for each leaf the joined hashes of its parts, in Base64.
    """

    kinds: Annotated[tuple[_Kind, ...], Meta(max_length=PARTS_MAX)]
    entries: tuple[Number, ...]
    places: tuple[tuple[tuple[Number, _Size], ...], ...]
    sha256: tuple[str, ...]

    @staticmethod
    def of(leaves: Sequence[tuple[int, LeafDirectory]]) -> StoredPack:
        """Return the form in a root of leaves, each with its number of entries."""
        return StoredPack(
            kinds=leaves[0][1].kinds,
            entries=tuple(entries for entries, _ in leaves),
            places=tuple(leaf.places for _, leaf in leaves),
            sha256=tuple(base64.b64encode(leaf.hashes).decode("ascii") for _, leaf in leaves),
        )


ready(StoredPack)


class ManifestPart(NamedTuple):
    """The place of a part in its pack, and its hash.

    Its kind is a kind of the module, or the id of a column.
    """

    kind: str
    first: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LeafDirectory:
    """The places and the joined hashes of the parts of a leaf, in the order of their kinds."""

    kinds: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    hashes: bytes

    @property
    def sha256(self) -> str:
        """The hash that names the leaf: the same for the same parts, wherever they are."""
        return hashlib.sha256(self.hashes).hexdigest()

    def parts(self) -> dict[str, ManifestPart]:
        """Return the parts by their kinds."""
        hashes = self.hashes.hex()
        return {
            kind: ManifestPart(kind, *place, hashes[2 * HASH_BYTES * at : 2 * HASH_BYTES * (at + 1)])
            for at, (kind, place) in enumerate(zip(self.kinds, self.places, strict=True))
        }


Directories = Mapping[tuple[str, str], LeafDirectory]
"""Directories of leaves by the name of the pack and the hash of the leaf."""


class PartCache:
    """Parts that were read, the latest requested, up to the limit.

    They are known by their hashes. A part is kept encoded until its columns are requested.
    """

    def __init__(
        self, limit_bytes: int = KEPT_BYTES, lock: AbstractContextManager[Any] | None = None
    ) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self._lock = nullcontext() if lock is None else lock
        self._parts: OrderedDict[str, tuple[EncodedTable | pa.Table, int]] = OrderedDict()

    def get(self, sha256: str) -> EncodedTable | pa.Table | None:
        with self._lock:
            part_and_size = self._parts.get(sha256)
            if part_and_size is None:
                return None
            self._parts.move_to_end(sha256)
            return part_and_size[0]

    def put(self, sha256: str, part: EncodedTable | pa.Table) -> None:
        size = part.size_bytes if isinstance(part, EncodedTable) else part.nbytes
        with self._lock:
            if sha256 in self._parts:
                self.bytes -= self._parts.pop(sha256)[1]
            self._parts[sha256] = part, size
            self.bytes += size
            while self.bytes > self.limit_bytes:
                self.bytes -= self._parts.popitem(last=False)[1][1]


def kind_of(name: str) -> str:
    """Return the kind of the part that has a column."""
    kind, id = split_name(name)
    if kind not in ("", "p"):
        return str(id)
    return FILES if is_planned(name, ()) else REST


def kinds_of_columns(kinds: Iterable[str], statistics: Collection[int] | None) -> list[str]:
    """Return the kinds of parts that a plan needs (see `is_planned`); None stands for all."""
    if statistics is None:
        return list(kinds)
    return [kind for kind in kinds if kind == FILES or (kind != REST and int(kind) in statistics)]


def parts_of(files: pa.Table) -> int:
    """Return how many parts a leaf of these files has."""
    return len({FILES, REST, *map(kind_of, files.column_names)})


def packed(leaves: Sequence[pa.Table]) -> tuple[bytes, list[LeafDirectory]]:
    """Return the pack of some leaves, which have the same columns, and the directory of each."""
    columns: dict[str, list[str]] = {}
    for name in leaves[0].column_names:
        columns.setdefault(kind_of(name), []).append(name)
    kinds = (FILES, *sorted(columns.keys() - {FILES, REST}, key=int), REST)
    blob, places, hashes = (
        bytearray(),
        [list[tuple[int, int]]() for _ in leaves],
        [bytearray() for _ in leaves],
    )
    for kind in kinds:
        for at, leaf in enumerate(leaves):
            part = encode_table(leaf.select(columns[kind]))
            places[at].append((len(blob), len(part)))
            hashes[at] += hashlib.sha256(part).digest()
            blob += part
    return bytes(blob), [
        LeafDirectory(kinds, tuple(places[at]), bytes(hashes[at])) for at in range(len(leaves))
    ]


def directories_in(name: str, pack: StoredPack) -> list[LeafDirectory]:
    """Return the directories of the leaves of a pack. Raises FormatError if any is wrong."""
    kinds = set(pack.kinds)
    if len(kinds) < len(pack.kinds) or not {FILES, REST} <= kinds:
        raise FormatError(
            f"the parts of the pack {name} lack {FILES} or {REST}, or are there twice: another program wrote them"
        )
    if not len(pack.entries) == len(pack.places) == len(pack.sha256):
        raise FormatError(
            f"the pack {name} has entries of {len(pack.entries)} leaves, places of {len(pack.places)}, and hashes of "
            f"{len(pack.sha256)}: another program wrote it"
        )
    directories = []
    for places, text in zip(pack.places, pack.sha256, strict=True):
        try:
            hashes = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            hashes = b""
        if len(hashes) != HASH_BYTES * len(kinds) or len(places) != len(kinds):
            raise FormatError(
                f"a leaf of the pack {name} does not have a place and a hash for each of its parts: another program "
                "wrote it"
            )
        directories.append(LeafDirectory(pack.kinds, places, hashes))
    return directories


def checked_part(part: ManifestPart, data: bytes) -> EncodedTable:
    """Return a part that was read.

    Raises FormatError for other bytes than the directory names, or other columns.
    """
    if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
        raise FormatError(
            f"its part {part.kind} does not have the content that its snapshot names: it was altered or truncated. "
            "Run lakelog fsck --repair, which writes it anew where the log allows that"
        )
    table = EncodedTable(data)
    check_columns(table.names)
    strange = [name for name in table.names if kind_of(name) != part.kind]
    required_names = [name for name in BASE_SCHEMA.names if kind_of(name) == part.kind]
    absent_names = [name for name in required_names if name not in table.names]
    if strange or absent_names:
        raise FormatError(
            f"its part {part.kind} lacks the columns {', '.join(absent_names) or '(none)'}, and has "
            f"{', '.join(strange)[:80] or '(none)'}: another program wrote it"
        )
    return table


def decoded(part: ManifestPart, table: EncodedTable, names: Collection[str] | None = None) -> pa.Table:
    """Return columns of a part. Raises FormatError for values that no list of files may have."""
    return checked_values(table.columns(table.names if names is None else names))


def ranges_of(parts: Iterable[tuple[str, ManifestPart]], most: int = RANGES_MAX) -> list[BlobRange]:
    """Return the ranges of objects, by their names, that contain these parts.

    There are at most so many ranges of each object, without small gaps.
    """
    by_name: dict[str, list[ManifestPart]] = {}
    for name, part in parts:
        by_name.setdefault(name, []).append(part)
    return [
        blob_range
        for name, object_parts in by_name.items()
        for blob_range in _joined(name, object_parts, most)
    ]


def _joined(name: str, parts: Iterable[ManifestPart], ranges: int) -> list[BlobRange]:
    spans: list[tuple[int, int]] = []
    for part in sorted(parts, key=lambda part: part.first):
        end = part.first + part.size
        if spans and part.first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((part.first, end))
    gaps = [next_span[0] - span[1] for span, next_span in zip(spans, spans[1:], strict=False)]
    most = sorted(gaps, reverse=True)[ranges - 1] if len(gaps) >= ranges else 0
    joint_spans = spans[:1]
    for gap, span in zip(gaps, spans[1:], strict=True):
        if gap <= max(most, GAP_BYTES):
            joint_spans[-1] = joint_spans[-1][0], span[1]
        else:
            joint_spans.append(span)
    return [BlobRange(name, first, end - first) for first, end in joint_spans]
