"""Tags and branches of a table that is made anew with copied files: the same contents under the same names.

Each is the difference to the table itself, as in any commit that creates one. Whether a branch has all that main has,
or main all that the branch has, stays: so what was to be published can be. It must not know where files are copied to.
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
    Operation,
    Ref,
    RefSet,
    TableEvent,
    encode,
    line_of,
)
from lakelog.catalog.core.writes import moved_files
from lakelog.log import Draft


def files_of_refs(source: TableHead) -> pa.Table:
    """Return the files that tags and branches have and main has not, or has otherwise; some of them more than once."""
    return pa.concat_tables(
        [
            source.all_files().slice(0, 0),
            *(_on(source, name).files_only_here(source.view) for name in _names(source)),
        ],
        promote_options="permissive",
    )


def copies_of(files: pa.Table) -> dict[str, str]:
    """Return for each path how the name of its copy ends: the same for those that are copies of one file, byte by byte,
    as lines of a clone have that was materialized. Two copies of a row would have its id twice."""
    names: dict[str, str] = {}
    known: dict[str, tuple[object, ...]] = {}
    paths, sizes = files["path"].to_pylist(), files["size"].to_pylist()
    checksums = files[CRC].to_pylist() if CRC in files.column_names else [None] * files.num_rows
    for path, size, crc in zip(paths, sizes, checksums, strict=True):
        origin = hash_in(path) or path_hash(path)
        same = crc is not None and known.setdefault(origin, (size, crc)) == (size, crc)
        names.setdefault(path, f"copy-{origin}" if same else copy_suffix(path))
    return names


def refs_drafts(
    source: TableHead, own: Callable[[pa.Table], pa.Table], new_id: Callable[[], str]
) -> Iterator[Draft]:
    """Yield what gives a table with the rows of `source` its tags and branches. `own` returns entries of the copies."""
    for name in _names(source):
        yield from _draft(source, name, source.state.refs[name], own, new_id())


def _draft(
    source: TableHead, name: str, ref: Ref, own: Callable[[pa.Table], pa.Table], id: str
) -> Iterator[Draft]:
    there = _on(source, name)
    added, removed = own(there.files_only_here(source.view)), own(source.files_only_here(there.view))
    metadata = source.state.current
    changed, blobs = moved_files(Operation.SET_REF, added, removed, metadata)
    moved = {field: getattr(changed, field) for field in changed.__struct_fields__}
    differs = bool(added.num_rows or removed.num_rows)
    (main, line), other = line_of(source.state, MAIN), ref.line
    if ref.kind == TAG:
        then = None if ref.metadata is None or ref.metadata == metadata else ref.metadata
        apart = differs and other.origin != main
        tag = RefSet(**moved, name=name, kind=TAG, id=id, of=MAIN, ahead=differs, apart=apart, metadata=then)
        yield _encoded(tag, blobs)
    elif differs and other.has_all_of(main, line):
        plain, _ = moved_files(Operation.SET_REF, added.slice(0, 0), removed.slice(0, 0), metadata)
        unmoved = {field: getattr(plain, field) for field in plain.__struct_fields__}
        yield _encoded(RefSet(**unmoved, name=name, kind=BRANCH, id=id, of=MAIN), ())
        yield _encoded(BranchFilesChanged(**moved, branch=name), blobs)
    else:
        apart = differs and not line.has_all_of(ref.id, other)
        yield _encoded(
            RefSet(**moved, name=name, kind=BRANCH, id=id, of=MAIN, ahead=differs, apart=apart), blobs
        )


def _encoded(event: TableEvent, blobs: tuple[bytes, ...]) -> Draft:
    return Draft(events=encode([event]), blobs=blobs)


def _names(source: TableHead) -> list[str]:
    return sorted(source.state.refs)


def _on(source: TableHead, name: str) -> TableHead:
    return source.at(seen_on(source.view, name))
