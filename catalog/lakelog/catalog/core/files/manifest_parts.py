"""Packs: objects with the entries of many files, of which a plan reads the parts that it needs.

A pack has leaves of some thousand entries, and each leaf is several parts: `files` (what a plan returns of each file),
`judged` (copies of what files are judged by beside statistics), for each column its statistics, and `rest`. Each is an
Arrow stream of its own. Parts of one kind lie side by side for all leaves of the pack, so that what is asked of many
leaves is read at once. The `directory` of a leaf, which stands in the snapshot's root, says where its parts are, and
their hashes; the leaf is named by the hash of its directory. So whatever is read is known by a hash before it is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Meta

from lakelog.catalog.core.files.arrow_lists import EncodedTable, decode_table, encode_table
from lakelog.catalog.core.files.data_file import (
    BASE_SCHEMA,
    checked_values,
    is_judged,
    is_planned,
    split_name,
)
from lakelog.log import BlobRange
from lakelog.log.decoding import said
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Hash, Number

FILES, JUDGED, REST = "files", "judged", "rest"

PARTS_MAX = 20_000
RANGES_MAX = 2
"""Of one object, a plan reads so many ranges at most, however many parts: what is between costs less than a request."""

GAP_BYTES = 32 * 1024
"""What lies between two ranges is read where it is not more than this."""

KEPT_BYTES = 128 * 1024 * 1024

_Size = Annotated[int, Meta(gt=0, le=2**40)]
_Kind = Annotated[str, Meta(pattern=r"^(?:files|judged|rest|0|[1-9][0-9]{0,9})$(?!\n)")]


class Part(NamedTuple):
    """Where a part is in its pack, and its hash. The kind is that of the module, or the id of a column."""

    kind: _Kind
    first: Number
    size: _Size
    sha256: Hash


_DIRECTORY = msgspec.json.Decoder(list[Part])


class Kept:
    """Parts that were read, those that were asked for last, until they are more than the limit.

    They are known by their hashes. A part is kept encoded until its columns were asked for.
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
            found = self._parts.get(sha256)
            if found is None:
                return None
            self._parts.move_to_end(sha256)
            return found[0]

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


def kinds_of_columns(directory: Mapping[str, Part], statistics: Collection[int] | None) -> list[str]:
    """Return the kinds of a leaf's parts that have what a plan needs (see `is_planned`); None stands for all."""
    if statistics is None:
        return list(directory)
    return [kind for kind in directory if kind == FILES or (kind.isdigit() and int(kind) in statistics)]


def parts_of(files: pa.Table) -> int:
    """Return how many parts a leaf of these files has."""
    return len({FILES, JUDGED, REST, *map(kind_of, files.column_names)})


def packed(leaves: Sequence[pa.Table]) -> tuple[bytes, list[str]]:
    """Return the pack of some leaves, and the directory of each, as text."""
    contents: list[dict[str, bytes]] = []
    for leaf in leaves:
        names: dict[str, list[str]] = {}
        for name in leaf.column_names:
            names.setdefault(kind_of(name), []).append(name)
        names[JUDGED] = [name for name in leaf.column_names if is_judged(name, ())]
        contents.append({kind: encode_table(leaf.select(some)) for kind, some in names.items()})
    kinds = {kind for each in contents for kind in each}
    order = [FILES, JUDGED, *sorted(kinds - {FILES, JUDGED, REST}, key=int), REST]
    blob, found = bytearray(), [list[Part]() for _ in leaves]
    for kind in order:
        for content, parts in zip(contents, found, strict=True):
            if kind in content:
                data = content[kind]
                parts.append(Part(kind, len(blob), len(data), hashlib.sha256(data).hexdigest()))
                blob += data
    return bytes(blob), [msgspec.json.encode(parts).decode() for parts in found]


def encode_directories(texts: Collection[str]) -> str | None:
    """Return directories as the text that a snapshot has, None for none."""
    if not texts:
        return None
    table = pa.table({"parts": pa.array(list(texts), pa.string())})
    return base64.b64encode(encode_table(table)).decode("ascii")


def decode_directories(text: str | None) -> dict[str, str]:
    """Return what `encode_directories` wrote, by the hashes that leaves are named by. FormatError for another text."""
    if text is None:
        return {}
    try:
        table = decode_table(base64.b64decode(text, validate=True))
    except binascii.Error as error:
        raise FormatError(
            f"parts of manifests are no base64 ({error}): find out which client wrote them"
        ) from None
    if table.schema != pa.schema([("parts", pa.string())]) or table["parts"].null_count:
        raise FormatError("parts of manifests have other columns than texts: another program wrote them")
    return {hash_of(each): each for each in table["parts"].to_pylist()}


def hash_of(directory: str) -> str:
    return hashlib.sha256(directory.encode()).hexdigest()


def parts_in(directory: str) -> dict[str, Part]:
    """Return the parts of a leaf by their kinds. FormatError for what is no directory."""
    try:
        parts = _DIRECTORY.decode(directory)
    except msgspec.MsgspecError as error:
        raise FormatError(f"its parts cannot be read ({said(error)}): another program wrote them") from None
    found = {part.kind: part for part in parts}
    missing = [kind for kind in (FILES, JUDGED, REST) if kind not in found]
    if missing or len(found) < len(parts) or len(parts) > PARTS_MAX:
        raise FormatError(
            f"its parts lack {', '.join(missing) or 'nothing'}, are there twice or too many: another program wrote them"
        )
    return found


def checked_part(part: Part, data: bytes) -> EncodedTable:
    """Return a part that was read. FormatError for other bytes than the directory names, or other columns."""
    if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
        raise FormatError(
            f"its part {part.kind} does not have the content that its snapshot names: it was altered or truncated. "
            "Run lakelog fsck --repair, which writes it anew where the log allows that"
        )
    table = EncodedTable(data)
    strange = [name for name in table.names if not _is_of(part.kind, name)]
    required = [name for name in BASE_SCHEMA.names if _is_of(part.kind, name)]
    missing = [name for name in required if name not in table.names]
    if strange or missing:
        raise FormatError(
            f"its part {part.kind} lacks the columns {', '.join(missing) or '(none)'}, and has "
            f"{', '.join(strange)[:80] or '(none)'}: another program wrote it"
        )
    return table


def decoded(part: Part, table: EncodedTable, names: Collection[str] | None = None) -> pa.Table:
    """Return columns of a part. FormatError for values that no list of files may have."""
    return checked_values(table.columns(table.names if names is None else names))


def _is_of(kind: str, name: str) -> bool:
    return is_judged(name, ()) if kind == JUDGED else kind_of(name) == kind


def ranges_of(parts: Iterable[tuple[str, Part]], most: int = RANGES_MAX) -> list[BlobRange]:
    """Return what is read of objects, by their names, to have these parts of them: at most so many ranges of each,
    without small gaps."""
    by_name: dict[str, list[Part]] = {}
    for name, part in parts:
        by_name.setdefault(name, []).append(part)
    return [each for name, some in by_name.items() for each in _joined(name, some, most)]


def _joined(name: str, parts: Iterable[Part], ranges: int) -> list[BlobRange]:
    spans: list[tuple[int, int]] = []
    for part in sorted(parts, key=lambda each: each.first):
        end = part.first + part.size
        if spans and part.first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((part.first, end))
    gaps = [after[0] - before[1] for before, after in zip(spans, spans[1:], strict=False)]
    most = sorted(gaps, reverse=True)[ranges - 1] if len(gaps) >= ranges else 0
    found = spans[:1]
    for gap, span in zip(gaps, spans[1:], strict=True):
        if gap <= max(most, GAP_BYTES):
            found[-1] = found[-1][0], span[1]
        else:
            found.append(span)
    return [BlobRange(name, first, end - first) for first, end in found]
