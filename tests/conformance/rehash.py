"""Changes texts in the objects of a warehouse, and puts right all hashes that follow from them.

The runner places warehouses with absolute paths by it, and warehouses that have to be refused are made by it.
Standard library only, as the kit has it too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

TAIL = 75
"""The bytes of `,"hash":"…"}` at the end of an object of a log."""

_OBJECT = re.compile(r"(?:.*/)?_(?:log|txn)/(?!_lost/)(?:.*/)?[^/]+\.json")
_HASH = re.compile(rb"[0-9a-f]{64}")
_SNAPSHOT = re.compile(r"(.*/_log/snapshots/\d{20}-)([0-9a-f]{16})(\.json)")

Objects = dict[str, bytes]
Edit = Callable[[str, bytes], bytes]


def objects_of(folder: Path) -> Objects:
    """Return all files of a folder by their keys."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write_objects(folder: Path, objects: Objects) -> None:
    """Write files by their keys."""
    for key, data in objects.items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def rehashed(objects: Objects, edit: Edit) -> Objects:
    """Return the objects after `edit` of each JSON object of a log, given by its key and its bytes without the hash.

    Hashes of changed objects are made anew, and replaced wherever another object names them.
    """
    result = dict(objects)
    replaced_data: dict[bytes, bytes] = {}
    for key in _in_order(objects):
        body, old = objects[key][:-TAIL], objects[key][-TAIL + 9 : -2]
        body = _HASH.sub(lambda match: replaced_data.get(match[0], match[0]), edit(key, body))
        new = hashlib.sha256(body + b"}").hexdigest().encode()
        result[key] = body + b',"hash":"' + new + b'"}'
        if new != old:
            replaced_data[old] = new
    prefixes = {old[:16].decode(): new[:16].decode() for old, new in replaced_data.items()}
    return {_renamed_text(key, prefixes): data for key, data in result.items()}


def moved(objects: Objects, old: str, new: str) -> Objects:
    """Return the objects of a warehouse with another absolute path in place of `old`."""
    return rehashed(objects, lambda _key, body: body.replace(old.encode(), new.encode()))


def _in_order(objects: Objects) -> Iterator[str]:
    """Yield the keys of hashed objects: commits in their order, then those that name commits."""
    keys = sorted(
        key for key in objects if _OBJECT.fullmatch(key) and objects[key][-TAIL:].startswith(b',"hash":"')
    )
    ranks = (r".*_log/\d{20}\.json", r".*_log/bases/.*", r".*")
    for rank in ranks:
        for key in [key for key in keys if re.fullmatch(rank, key)]:
            keys.remove(key)
            yield key


def _renamed_text(key: str, prefixes: dict[str, str]) -> str:
    match = _SNAPSHOT.fullmatch(key)
    return key if match is None else f"{match[1]}{prefixes.get(match[2], match[2])}{match[3]}"
