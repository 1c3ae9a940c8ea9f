"""What a source says of a file's columns, where it says more than at the last import. Pure.

A column that the source has added since, or has again, may be in files that were imported without it. Rule: what a file
has of a column is for its source to say, and an entry that does not name it is one of another time.
"""

from __future__ import annotations

import msgspec

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.schema import Schema


def new_columns(old: DataFile, file: DataFile, schema: Schema) -> list[int]:
    """Return ids of columns that the source says a file has, and that its older entry does not: it was read as NULL."""
    names, then = file.names or {}, old.names or {}
    if names == then and file.constants.keys() == old.constants.keys():
        return []
    found = [id for id, name in names.items() if then.get(id) != name]
    found += file.constants.keys() - old.constants.keys()
    return [id for id in found if schema.has_id(id)]


def has_one_again(old: DataFile, file: DataFile, schema: Schema) -> bool:
    """Return whether a new column of a file is one that it had before, by an id that is no column any more, or that its
    partition has."""
    gone = {name for id, name in (old.names or {}).items() if not schema.has_id(id)}
    new = new_columns(old, file, schema)
    return any(id in file.constants or (file.names or {}).get(id) in gone for id in new)


def with_columns(old: DataFile, file: DataFile) -> DataFile:
    """Return an entry with what the source says of the file's columns by now, beside what it said of others."""
    return msgspec.structs.replace(
        old,
        names={**(old.names or {}), **(file.names or {})},
        constants=file.constants,
        spec_id=file.spec_id,
        partition=file.partition,
    )
