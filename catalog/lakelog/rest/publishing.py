"""A static REST catalog: a server's answers, as objects that clients read by plain GETs.

Rule: an object's bytes are a function of the versions that it shows, so all publishers write the same bytes.
An object that leads to another is written after it and removed before it. So no reader finds a name that
cannot be loaded, except for a moment if two publish at once. A client's `?parent=` is ignored, so a single
list has the namespaces of all levels. It must not know which store a tree is in.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from lakelog.catalog import Catalog, NoSuchNamespace, NoSuchTable, engine
from lakelog.catalog.engine.exports import iceberg_metadata, iceberg_views
from lakelog.catalog.formats.iceberg import ExportedView, exported_version
from lakelog.catalog.names import Identifier
from lakelog.log.errors import (
    InvalidInput,
    LakelogError,
    PermissionDenied,
    StorageError,
    Unsupported,
)
from lakelog.rest import documents

MARK = "lakelog.json"
"""An object beside the tree that says which warehouse and namespace it shows."""
TOP = "v1/"
THREADS = 8
ROUNDS_MAX = 5

_CONFIG = f"{TOP}config"
_NAMESPACES = f"{TOP}namespaces"
_DEPTH = 4
"""Slashes in the path of a table or a view; a namespace's path has two less."""
_NO_PART = re.compile(r"[/\\\x00-\x1f\x7f]|\A\.{0,2}\Z")
"""Matches names that cannot be one part of a key, whatever client has written them."""


class ObjectTree(Protocol):
    """The place of the objects. A path is the client's decoded request path."""

    url: str

    def takes(self, path: str) -> bool:
        """Return whether the store has names as long as this path."""
        ...

    def digest_of(self, data: bytes) -> str:
        """Return the digest that `digests` has for an object of these bytes."""
        ...

    def digests(self, top: str) -> dict[str, str]:
        """Return the digests of the objects whose paths begin with `top`, by path."""
        ...

    def get(self, path: str) -> bytes | None: ...

    def create(self, path: str, data: bytes) -> bool:
        """Create an object; return False if it already exists."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object. Raises Unsupported if the store cannot have it beside objects below its name."""
        ...

    def delete(self, path: str) -> None: ...


@dataclass(slots=True)
class PublishResult:
    """The size of a tree, and the counts of objects that were written and removed for it.

    `left_out` has the names that cannot be in the tree, with the reason. `failed` has names that could not be
    read or exported. They are older in the tree than in the warehouse, or not there yet.
    """

    namespaces: int = 0
    tables: int = 0
    views: int = 0
    written: int = 0
    written_bytes: int = 0
    removed: int = 0
    left_out: dict[Identifier, str] = field(default_factory=dict)
    failed: dict[Identifier, str] = field(default_factory=dict)


def publish(catalog: Catalog, tree: ObjectTree, namespace: Identifier = ()) -> PublishResult:
    """Bring a tree to the current state of a warehouse, or of a namespace with everything below it.

    Makes a LIST for every 1000 objects, and about 7 GETs for each table. If this process has not read a
    table's log, that takes 25 more in parallel. A due export, and a PUT for each changed object, come on top.
    If the namespace was dropped since it was published, the tree becomes empty; raises NoSuchNamespace for
    other missing namespaces. Raises InvalidInput if the tree is another warehouse's or namespace's. If it
    raises, all objects of the tree are still there.
    """
    mark = msgspec.json.encode({"warehouse": catalog.warehouse, "namespace": namespace})
    try:
        catalog.load_namespace(namespace)
    except NoSuchNamespace:
        if tree.get(MARK) != mark:
            raise
    _claim(tree, mark)
    counts = PublishResult()
    changed_paths: set[str] | None = None
    # A publisher with older knowledge may write at the same time. So changed objects are made again: the last
    # publisher that changes an object has seen everything that those before it have seen.
    for _ in range(ROUNDS_MAX):
        changed_paths = _Round(catalog, tree, counts, changed_paths).run(namespace)
        if not changed_paths:
            break
    return counts


def _claim(tree: ObjectTree, mark: bytes) -> None:
    """Mark the tree's owner. Raises InvalidInput if it is another owner's, or contains other objects."""
    existing_mark = tree.get(MARK)
    if existing_mark is None:
        if tree.digests(TOP):
            raise InvalidInput(
                f"{tree.url}/{TOP} has objects that lakelog publish did not write: choose an empty place"
            )
        if tree.create(MARK, mark):
            return
        existing_mark = tree.get(MARK)
    if existing_mark != mark:
        raise InvalidInput(
            f"{tree.url} has the published catalog of another warehouse or namespace, which its {MARK} names: choose "
            "an empty place, or delete that one first"
        )


@dataclass(frozen=True, slots=True)
class _Space:
    """A namespace: its path, its document, and its content."""

    name: Identifier
    path: str
    document: Any
    tables: list[Identifier]
    views: dict[Identifier, ExportedView]


class _Round:
    """A walk over all names. With `again`, only these paths and new paths are made, as the others were just made."""

    def __init__(
        self, catalog: Catalog, tree: ObjectTree, publish_result: PublishResult, again: set[str] | None
    ) -> None:
        self._catalog = catalog
        self._tree = tree
        self._done = publish_result
        self._again = again
        self._there = tree.digests(TOP)
        self._wanted: set[str] = set()
        self._changed: set[str] = set()
        self._kept: set[Identifier] = set()
        self._lock = threading.Lock()
        self._store_failed = threading.Event()

    def run(self, top: Identifier) -> set[str]:
        """Make the tree match the warehouse; return the changed paths."""
        spaces = list(self._spaces(top))
        pool = ThreadPoolExecutor(THREADS)
        try:
            pending_tables = [pool.map(self._table_unless_failed, space.tables) for space in spaces]
            table_flags = [list(flags) for flags in pending_tables]
        finally:
            # If the user interrupts, tables that have not begun are not tried.
            pool.shutdown(cancel_futures=True)
        for space, are_there in zip(spaces, table_flags, strict=True):
            tables = [name for name, is_there in zip(space.tables, are_there, strict=True) if is_there]
            for name, view in space.views.items():
                self._put(_path_of(name, "views"), documents.loaded(view.url, view.metadata))
            self._put(f"{space.path}/tables", documents.identifiers(tables))
            self._put(f"{space.path}/views", documents.identifiers(list(space.views)))
            self._put(space.path, space.document)
        names = sorted([*(space.name for space in spaces), *self._kept])
        self._put(_NAMESPACES, documents.namespaces(names))
        self._put(_CONFIG, documents.config())
        removed_paths = self._there.keys() - self._wanted
        for path in sorted(removed_paths, key=lambda path: path.count("/")):
            self._tree.delete(path)
        self._done.removed += len(removed_paths)
        kinds = Counter(path.split("/")[3] for path in self._wanted if path.count("/") == _DEPTH)
        self._done.namespaces, self._done.tables, self._done.views = (
            len(names),
            kinds["tables"],
            kinds["views"],
        )
        return self._changed | removed_paths

    def _spaces(self, name: Identifier) -> Iterator[_Space]:
        """Yield a namespace and those below it, except the root and namespaces that are dropped during the walk."""
        if name and not self._takes(name, f"{_path_of_namespace(name)}/tables"):
            return
        self._done.failed.pop(name, None)
        try:
            document = documents.namespace(self._catalog, name)
            tables, views = engine.list_relations(self._catalog, name)
            children = self._catalog.list_namespaces(name)
            exported_views, left_out = iceberg_views(self._catalog, name) if name else ({}, {})
        except NoSuchNamespace:
            return
        except LakelogError as error:
            if not name or _is_of_store(error):
                raise
            self._done.failed[name] = str(error)
            self._keep(_path_of_namespace(name))
            return
        if name:
            tables = [child for child in tables if self._takes(child, _path_of(child, "tables"))]
            exported_views = {
                child: view
                for child, view in exported_views.items()
                if self._takes(child, _path_of(child, "views"))
            }
            yield _Space(name, _path_of_namespace(name), document, tables, exported_views)
        else:
            why = "the protocol has no tables and views outside of a namespace: move it into one"
            left_out = dict.fromkeys((*tables, *views), why)
        self._done.left_out |= left_out
        for child in children:
            yield from self._spaces(child)

    def _keep(self, space: str) -> None:
        """Keep a namespace and everything below it as it was published."""
        kept_paths = {
            path
            for path in self._there
            if f"{path}/".startswith((f"{space}/", f"{space}{documents.SEPARATOR}"))
        }
        self._wanted |= kept_paths
        for path in kept_paths:
            if path.count("/") == _DEPTH - 2:
                self._kept.add(tuple(path.rpartition("/")[2].split(documents.SEPARATOR)))

    def _takes(self, name: Identifier, path: str) -> bool:
        """Return whether a name can be a path of its own; record it as left out if it cannot."""
        why = None
        if any(map(_NO_PART.search, name)):
            why = "a part of its name cannot be one part of an object's key: rename it, or use lakelog serve"
        elif not self._tree.takes(path):
            if self._tree.takes(path.replace(documents.SEPARATOR, "-")):
                why = "this store has no key for a namespace inside another: use lakelog serve"
            else:
                why = "its name is too long for an object's key: use shorter ones, or lakelog serve"
        if why is not None:
            self._done.left_out[name] = why
        return why is None

    def _table_unless_failed(self, name: Identifier) -> bool:
        """Publish a table as `_table` does. Once the store has failed, no other table is tried."""
        if self._store_failed.is_set():
            return False
        try:
            return self._table(name)
        except LakelogError:
            self._store_failed.set()
            raise

    def _table(self, name: Identifier) -> bool:
        """Publish a table; return whether it is in the tree."""
        path, counts = _path_of(name, "tables"), self._done
        if self._again is not None and path in self._there and path not in self._again:
            self._wanted.add(path)
            return True
        counts.left_out.pop(name, None)
        counts.failed.pop(name, None)
        try:
            table = self._catalog.load_table(name)
            url, metadata = iceberg_metadata(table)
        except NoSuchTable:
            return False
        except Unsupported as error:
            counts.left_out[name] = str(error)
            return False
        except LakelogError as error:
            if _is_of_store(error):
                raise
            counts.failed[name] = str(error)
            if is_there := path in self._there:
                self._wanted.add(path)
            return is_there
        if (published := exported_version(metadata)) < table.version:
            counts.failed[name] = (
                f"version {table.version} is the newest, and its newest export is of version {published}: run lakelog "
                "export, or this command, as a user that may write beside the table"
            )
        self._put(path, documents.loaded(url, metadata))
        return True

    def _put(self, path: str, document: Any) -> None:
        self._wanted.add(path)
        data = msgspec.json.encode(document)
        if self._there.get(path) == self._tree.digest_of(data):
            return
        self._tree.put(path, data)
        with self._lock:
            self._changed.add(path)
            self._done.written += 1
            self._done.written_bytes += len(data)


def _is_of_store(error: LakelogError) -> bool:
    """Return whether the store failed. A refusal, or stored data in another form, concerns only a single name."""
    return isinstance(error, StorageError) and not isinstance(error, PermissionDenied)


def _path_of_namespace(name: Identifier) -> str:
    return f"{_NAMESPACES}/{documents.SEPARATOR.join(name)}"


def _path_of(name: Identifier, kind: str) -> str:
    return f"{_path_of_namespace(name[:-1])}/{kind}/{name[-1]}"
