"""A source's changes between two imports: a comparison of its former and present files. Pure.

Rule: files are compared by their paths, sizes, checksums and deleted rows, whatever the source's single
commits did. This module must not know the table's own changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.formats.imports.changes import is_same_object, with_rows
from lakelog.catalog.formats.imports.described import new_columns
from lakelog.catalog.formats.imports.source import SourceVersion


@dataclass(slots=True)
class SourceDifference:
    """A source's changes since the last import, by path.

    `changed` files have other deleted rows. For `described` files, which may also be `changed`, the source
    names columns that it did not name before, or names them by other ids.
    """

    added: dict[str, DataFile] = field(default_factory=dict)
    removed: dict[str, DataFile] = field(default_factory=dict)
    changed: dict[str, DataFile] = field(default_factory=dict)
    described: dict[str, DataFile] = field(default_factory=dict)


def difference(files_before: Mapping[str, DataFile], version: SourceVersion) -> SourceDifference:
    """Return the changes of a source's files."""
    result, live = SourceDifference(), {file.path: file for file in with_rows(version.added)}
    for path, file in live.items():
        old = files_before.get(path)
        if old is None:
            result.added[path] = file
        elif not is_same_object(old, file):
            result.removed[path], result.added[path] = old, file
        else:
            if mark_of(old) != mark_of(file):
                result.changed[path] = file
            if new_columns(old, file, version.schema):
                result.described[path] = file
    result.removed |= {path: file for path, file in files_before.items() if path not in live}
    return result


def mark_of(file: DataFile) -> tuple[int, int, int] | None:
    """Return a value that differs if other rows are deleted, wherever the vector is."""
    if file.deletes is None:
        return None
    return file.deletes.rows, file.deletes.size_bytes, file.deletes.crc


def is_same(file: DataFile | None, other_file: DataFile) -> bool:
    """Return whether two entries of a path have the same names of columns, and the same deleted rows."""
    return (
        file is not None
        and (file.write_id, file.names) == (other_file.write_id, other_file.names)
        and mark_of(file) == mark_of(other_file)
    )
