"""Tags and branches of a table that is made anew with copied files: the same contents under the same names.

Each is the difference to the table itself, as in any commit that creates a tag or branch. Whether a branch
has everything of main, or main everything of the branch, does not change. So changes that could be published
still can be. This module must not know the target of the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakelog.catalog.core.files import CRC, copy_suffix, hash_in, path_hash
from lakelog.catalog.core.logs import TableHead, seen_on
from lakelog.catalog.core.state import (
    BRANCH,
    MAIN,
    TAG,
    BranchFilesChanged,
    OperationKind,
    Ref,
    RefSet,
    TableEvent,
    encode,
    line_of,
)
from lakelog.catalog.core.writes import moved_files
from lakelog.log import Draft


def files_of_refs(source: TableHead) -> pa.Table:
    """Return the files that tags and branches have and main lacks, or has in another state.

    May have duplicates.
    """
    return pa.concat_tables(
        [
            source.all_files().slice(0, 0),
            *(_on(source, name).files_only_here(source.view) for name in _names(source)),
        ],
        promote_options="permissive",
    )


def copies_of(files: pa.Table) -> dict[str, str]:
    """Return the ending of the name of each path's copy.

    Byte-identical copies of a file have the same ending, as lines of a materialized clone may have such
    copies. Two copies of a row would have its id twice.
    """
    names: dict[str, str] = {}
    facts_by_origin: dict[str, tuple[object, ...]] = {}
    paths, sizes = files["path"].to_pylist(), files["size"].to_pylist()
    checksums = files[CRC].to_pylist() if CRC in files.column_names else [None] * files.num_rows
    for path, size, crc in zip(paths, sizes, checksums, strict=True):
        origin = hash_in(path) or path_hash(path)
        same = crc is not None and facts_by_origin.setdefault(origin, (size, crc)) == (size, crc)
        names.setdefault(path, f"copy-{origin}" if same else copy_suffix(path))
    return names


def refs_drafts(
    source: TableHead, own: Callable[[pa.Table], pa.Table], new_id: Callable[[], str]
) -> Iterator[Draft]:
    """Yield drafts that give a table with the rows of `source` its tags and branches.

    `own` returns the copies' entries.
    """
    for name in _names(source):
        yield from _draft(source, name, source.state.refs[name], own, new_id())


def _draft(
    source: TableHead, name: str, ref: Ref, own: Callable[[pa.Table], pa.Table], id: str
) -> Iterator[Draft]:
    ref_head = _on(source, name)
    new_files, old_files = (
        own(ref_head.files_only_here(source.view)),
        own(source.files_only_here(ref_head.view)),
    )
    metadata = source.state.current
    change, blobs = moved_files(OperationKind.SET_REF, new_files, old_files, metadata)
    members = {field: getattr(change, field) for field in change.__struct_fields__}
    differs = bool(new_files.num_rows or old_files.num_rows)
    (main, line), ref_line = line_of(source.state, MAIN), ref.line
    if ref.kind == TAG:
        ref_metadata = None if ref.metadata is None or ref.metadata == metadata else ref.metadata
        apart = differs and ref_line.origin != main
        tag = RefSet(
            **members, name=name, kind=TAG, id=id, of=MAIN, ahead=differs, apart=apart, metadata=ref_metadata
        )
        yield _encoded(tag, blobs)
    elif differs and ref_line.has_all_of(main, line):
        plain, _ = moved_files(OperationKind.SET_REF, new_files.slice(0, 0), old_files.slice(0, 0), metadata)
        plain_members = {field: getattr(plain, field) for field in plain.__struct_fields__}
        yield _encoded(RefSet(**plain_members, name=name, kind=BRANCH, id=id, of=MAIN), ())
        yield _encoded(BranchFilesChanged(**members, branch=name), blobs)
    else:
        apart = differs and not line.has_all_of(ref.id, ref_line)
        yield _encoded(
            RefSet(**members, name=name, kind=BRANCH, id=id, of=MAIN, ahead=differs, apart=apart), blobs
        )


def _encoded(event: TableEvent, blobs: tuple[bytes, ...]) -> Draft:
    return Draft(events=encode([event]), blobs=blobs)


def _names(source: TableHead) -> list[str]:
    return sorted(source.state.refs)


def _on(source: TableHead, name: str) -> TableHead:
    return source.at(seen_on(source.view, name))
