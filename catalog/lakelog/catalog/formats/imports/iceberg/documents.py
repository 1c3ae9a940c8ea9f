"""Finding the metadata of an Iceberg table: by its file, or by the folder of a Hadoop table.

Only names and the hint say which metadata of a folder is the newest. If two files have the highest number,
one of them was never committed, and the user has to name the right file.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from lakelog.log import OpenUrl, canonical_url
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound
from lakelog.log.stores import ObjectStore

_NAMED = re.compile(r"(?:v(\d+)|(\d+)-[^/]+)(\.gz)?\.metadata\.json(\.gz)?")
_ENDS = (".metadata.json", ".metadata.json.gz")
_HINT = "version-hint.text"
_AHEAD_MAX = 1_000
_GZIP = b"\x1f\x8b"

Document = Mapping[str, Any]


def place_of(location: str) -> str:
    """Return the path or URL of an object as its table names it. Local names stay as they are, not decoded."""
    if location.startswith("file:"):
        path = location.removeprefix("file:")
        return f"/{path.lstrip('/')}"
    return location if location.startswith("/") else canonical_url(location)


def document_of(source: str, open_url: OpenUrl) -> tuple[str, Document]:
    """Return the place and the content of a table's metadata. Raises NotFound, InvalidInput or FormatError."""
    url = place_of(source) if source.endswith(_ENDS) else _newest(canonical_url(source), open_url)
    store, key = open_url(url)
    data = store.get(key)
    if data is None:
        raise NotFound(f"there is no metadata of an Iceberg table at {url}: check the path")
    try:
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        document = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, OSError, EOFError) as error:
        raise FormatError(f"the metadata at {url} is not JSON: {error}") from None
    if document.get("format-version") not in (1, 2, 3):
        raise InvalidInput(
            f"the metadata at {url} is of version {document.get('format-version')!r} of Iceberg's format: lakelog "
            "imports 1, 2 and 3"
        )
    return url, document


@contextmanager
def as_metadata(url: str) -> Iterator[None]:
    """Raise FormatError if content of the metadata at `url` does not follow Iceberg's format."""
    try:
        yield
    except LakelogError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(
            f"the metadata at {url} is not as Iceberg's format has it ({type(error).__name__}: {error}): import "
            "metadata that Iceberg's own readers read"
        ) from error


def _newest(folder: str, open_url: OpenUrl) -> str:
    store, key = open_url(f"{folder}/metadata/{_HINT}")
    prefix = key.removesuffix(_HINT)
    hint = store.get(key)
    if hint is not None and hint.strip():
        return f"{folder}/metadata/{_hinted(hint.decode().strip(), store, prefix)}"
    names_by_number: dict[int, list[str]] = {}
    for name, _ in store.list_sizes(prefix):
        match = _NAMED.fullmatch(name.removeprefix(prefix))
        if match is not None:
            names_by_number.setdefault(int(match[1] or match[2]), []).append(name.removeprefix(prefix))
    if not names_by_number:
        raise NotFound(
            f"there is no Iceberg table at {folder}: it has no metadata/*.metadata.json. Give the table's folder, or "
            "its metadata file"
        )
    newest = names_by_number[max(names_by_number)]
    if len(newest) > 1:
        raise InvalidInput(
            f"{folder} has {len(newest)} metadata files of the highest number, {', '.join(sorted(newest)[:3])}, of "
            "which only one was committed: name the file that the table's catalog has"
        )
    return f"{folder}/metadata/{newest[0]}"


def _hinted(hint: str, store: ObjectStore, prefix: str) -> str:
    """Return the name of the metadata that a hint leads to. The hint may be behind."""
    if not hint.isdigit():
        return f"{hint}.metadata.json"
    number = int(hint)
    newest = _numbered(number, store, prefix) or f"v{number}.metadata.json"
    for _ in range(_AHEAD_MAX):
        number += 1
        next_name = _numbered(number, store, prefix)
        if next_name is None:
            break
        newest = next_name
    return newest


def _numbered(number: int, store: ObjectStore, prefix: str) -> str | None:
    """Return the name of the metadata of that number, with any compression."""
    names = (f"v{number}{end}" for end in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"))
    return next((name for name in names if store.get(f"{prefix}{name}") is not None), None)
