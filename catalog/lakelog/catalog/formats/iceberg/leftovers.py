"""Objects of exports: which ones there are at a place, and which the newest export does not need.

Rule: an object is named by the version that its export was of. What the newest export does not name, and what is of its
version or an older one, can no longer come into use: an export is of a newer version than the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakelog.catalog.formats.iceberg import avro_files
from lakelog.catalog.formats.iceberg.avro_files import DELETES
from lakelog.catalog.formats.iceberg.metadata_json import VERSION, decoded_document, is_as_signed
from lakelog.log.errors import FormatError
from lakelog.log.stores import ObjectStore

FOLDER = "metadata"
HINT = f"{FOLDER}/version-hint.text"
_OWN = re.compile(r"metadata/([0-9]{20})-(?:snap|vectors|data|deletes)-[0-9a-f-]+\.(?:avro|puffin)")
_NUMBERED = re.compile(r"metadata/v([1-9][0-9]{0,18})\.metadata\.json$")


def metadata_path(number: int) -> str:
    return f"{FOLDER}/v{number}.metadata.json"


def objects_of(store: ObjectStore, prefix: str) -> dict[str, int]:
    """Return the sizes of all objects of exports at a place, by key. One LIST for every 1000."""
    return {
        key: size for key, size in store.list_sizes(f"{prefix}{FOLDER}/") if _is_own(key.removeprefix(prefix))
    }


def _is_own(path: str) -> bool:
    return path == HINT or _OWN.fullmatch(path) is not None or _NUMBERED.fullmatch(path) is not None


def newest_number(store: ObjectStore, prefix: str) -> int:
    """Return the highest number of an export at a place, by a listing; 0 where there is none."""
    return max(map(_number, objects_of(store, prefix)), default=0)


def _number(key: str) -> int:
    match = _NUMBERED.search(key)
    return 0 if match is None else int(match[1])


def unneeded(store: ObjectStore, prefix: str, url: str) -> dict[str, int]:
    """Return the objects that the newest export at `url` does not need, with their sizes, by key.

    None of them, where it cannot be read, or is another program's. Costs a GET for each snapshot that it lists, and
    each manifest of vectors.
    """
    found = objects_of(store, prefix)
    number = max(map(_number, found), default=0)
    if not number:
        return {}
    newest = metadata_path(number)
    try:
        data = store.get(f"{prefix}{newest}") or b""
        document = decoded_document(data)
        if not is_as_signed(document, data):
            return {}  # the next export begins anew, and may need any of them
        version = int(document["properties"][VERSION])
        needed = {newest, HINT} | _named(store, prefix, url, document)
        needed |= {str(each["metadata-file"]).removeprefix(f"{url}/") for each in document["metadata-log"]}
    except (FormatError, KeyError, TypeError, ValueError, AttributeError):
        return {}
    return {
        key: size
        for key, size in found.items()
        if (path := key.removeprefix(prefix)) not in needed and _is_past(path, version)
    }


def _is_past(path: str, version: int) -> bool:
    match = _OWN.fullmatch(path)
    return match is None or int(match[1]) <= version


def _named(store: ObjectStore, prefix: str, url: str, document: Mapping[str, Any]) -> set[str]:
    """Return the paths of all that a document leads to. FormatError where some of it cannot be read."""

    def read(path: str) -> list[dict[str, Any]]:
        data = store.get(f"{prefix}{path}")
        if data is None:
            raise FormatError(f"{path} is missing")
        return avro_files.read(data)

    def inside(place: str) -> str:
        return str(place).removeprefix(f"{url}/")

    lists = {inside(each["manifest-list"]) for each in document["snapshots"]}
    manifests = {
        inside(record["manifest_path"]): record["content"] for path in lists for record in read(path)
    }
    vectors = {
        inside(entry["data_file"]["file_path"])
        for path, content in manifests.items()
        if content == DELETES
        for entry in read(path)
    }
    return {*lists, *manifests, *vectors}
