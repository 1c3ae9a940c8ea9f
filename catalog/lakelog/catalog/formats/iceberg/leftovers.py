"""Objects of exports: which objects are at a place, and which objects the newest export does not need.

Rule: an object's name has the version of its export. An object can no longer come into use if two conditions
hold. The newest export does not name it, and its version is at most the newest export's. This holds because
each export has a newer version than the export before it.
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
    """Return the sizes of all objects of exports at a place, by key.

    Makes a LIST request for every 1000 objects.
    """
    return {
        key: size for key, size in store.list_sizes(f"{prefix}{FOLDER}/") if _is_own(key.removeprefix(prefix))
    }


def _is_own(path: str) -> bool:
    return path == HINT or _OWN.fullmatch(path) is not None or _NUMBERED.fullmatch(path) is not None


def newest_number(store: ObjectStore, prefix: str) -> int:
    """Return the highest number of an export at a place, by a listing. 0 if there is none."""
    return max(map(_number, objects_of(store, prefix)), default=0)


def _number(key: str) -> int:
    match = _NUMBERED.search(key)
    return 0 if match is None else int(match[1])


def unneeded(store: ObjectStore, prefix: str, url: str) -> dict[str, int]:
    """Return the objects that the newest export at `url` does not need, with their sizes, by key.

    Empty if the export cannot be read, or is another program's. Makes a GET request for each snapshot that
    the export lists, and for each manifest of vectors.
    """
    sizes = objects_of(store, prefix)
    number = max(map(_number, sizes), default=0)
    if not number:
        return {}
    newest = metadata_path(number)
    try:
        data = store.get(f"{prefix}{newest}") or b""
        document = decoded_document(data)
        if not is_as_signed(document, data):
            return {}  # the next export begins anew, and may need any of these objects
        version = int(document["properties"][VERSION])
        needed_paths = {newest, HINT} | _named(store, prefix, url, document)
        needed_paths |= {
            str(log_entry["metadata-file"]).removeprefix(f"{url}/") for log_entry in document["metadata-log"]
        }
    except (FormatError, KeyError, TypeError, ValueError, AttributeError):
        return {}
    return {
        key: size
        for key, size in sizes.items()
        if (path := key.removeprefix(prefix)) not in needed_paths and _is_past(path, version)
    }


def _is_past(path: str, version: int) -> bool:
    match = _OWN.fullmatch(path)
    return match is None or int(match[1]) <= version


def _named(store: ObjectStore, prefix: str, url: str, document: Mapping[str, Any]) -> set[str]:
    """Return the paths of all objects that a document leads to.

    Raises FormatError if an object cannot be read.
    """

    def read(path: str) -> list[dict[str, Any]]:
        data = store.get(f"{prefix}{path}")
        if data is None:
            raise FormatError(f"{path} is missing")
        return avro_files.read(data)

    def inside(place: str) -> str:
        return str(place).removeprefix(f"{url}/")

    lists = {inside(snapshot["manifest-list"]) for snapshot in document["snapshots"]}
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
