"""What a source did between two imports: a comparison of the files that it had and has. Pure.

Rule: files are compared by their paths, sizes, checksums and deleted rows, whatever the source did one by one. It must
not know what was done in the table since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.formats.imports.changes import is_same_object, with_rows
from lakelog.catalog.formats.imports.described import new_columns
from lakelog.catalog.formats.imports.source import SourceVersion


@dataclass(slots=True)
class Difference:
    """What the source did since the last import, by path. `changed` files have other deleted rows; of `described` ones,
    which may be among these, the source names columns that it did not name before, or by other ids."""

    added: dict[str, DataFile] = field(default_factory=dict)
    removed: dict[str, DataFile] = field(default_factory=dict)
    changed: dict[str, DataFile] = field(default_factory=dict)
    described: dict[str, DataFile] = field(default_factory=dict)


def difference(before: Mapping[str, DataFile], now: SourceVersion) -> Difference:
    """Return what has changed of a source's files."""
    found, live = Difference(), {file.path: file for file in with_rows(now.added)}
    for path, file in live.items():
        old = before.get(path)
        if old is None:
            found.added[path] = file
        elif not is_same_object(old, file):
            found.removed[path], found.added[path] = old, file
        else:
            if mark_of(old) != mark_of(file):
                found.changed[path] = file
            if new_columns(old, file, now.schema):
                found.described[path] = file
    found.removed |= {path: file for path, file in before.items() if path not in live}
    return found


def mark_of(file: DataFile) -> tuple[int, int, int] | None:
    """Return what is different where other rows are deleted, wherever the vector is."""
    if file.deletes is None:
        return None
    return file.deletes.rows, file.deletes.size_bytes, file.deletes.crc


def is_same(one: DataFile | None, other: DataFile) -> bool:
    """Return whether two entries of one path say the same of the file, and have the same deleted rows."""
    return (
        one is not None
        and (one.write_id, one.names) == (other.write_id, other.names)
        and mark_of(one) == mark_of(other)
    )
