"""Columns of a file that a source names now, and did not name at the last import. Pure.

A column that the source has added, or has again, may be in files that were imported without it. Rule: only
the source says which columns a file has. An entry that does not name a column is from another time.
"""

from __future__ import annotations

import msgspec

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.schema import Schema


def new_columns(old: DataFile, file: DataFile, schema: Schema) -> list[int]:
    """Return ids of a file's columns that its older entry lacks. They were read as NULL."""
    names, old_names = file.names or {}, old.names or {}
    if names == old_names and file.constants.keys() == old.constants.keys():
        return []
    ids = [id for id, name in names.items() if old_names.get(id) != name]
    ids += file.constants.keys() - old.constants.keys()
    return [id for id in ids if schema.has_id(id)]


def has_one_again(old: DataFile, file: DataFile, schema: Schema) -> bool:
    """Return whether a new column of a file is a column that it had before.

    The file had it by an id that is no longer a column's, or its partition has it.
    """
    gone_names = {name for id, name in (old.names or {}).items() if not schema.has_id(id)}
    new = new_columns(old, file, schema)
    return any(id in file.constants or (file.names or {}).get(id) in gone_names for id in new)


def with_columns(old: DataFile, file: DataFile) -> DataFile:
    """Return an entry with the source's present names of columns, and older names of other columns."""
    return msgspec.structs.replace(
        old,
        names={**(old.names or {}), **(file.names or {})},
        constants=file.constants,
        spec_id=file.spec_id,
        partition=file.partition,
    )
