"""A static REST catalog: what a server would answer, as objects that clients read by plain GETs.

Rule: an object's bytes are a function of the versions of what it shows, so all publishers write the same ones. What
leads to an object is written after it and removed before it: no reader finds a name that cannot be loaded, except for a
moment where two publish at once. A client's `?parent=` is not seen, so that one list has the namespaces of all levels.
It must not know which store a tree is in.
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

from lakelog.catalog import Catalog, NoSuchNamespace, NoSuchTable
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
"""Says beside the tree what is published in it."""
TOP = "v1/"
THREADS = 8
ROUNDS_MAX = 5

_CONFIG = f"{TOP}config"
_NAMESPACES = f"{TOP}namespaces"
_DEPTH = 4
"""Slashes in the path of a table and of a view; that of a namespace has two less."""
_NO_PART = re.compile(r"[/\\\x00-\x1f\x7f]|\A\.{0,2}\Z")
"""In names that cannot be one part of a key, whatever client has written them."""


class Tree(Protocol):
    """Where the objects go. A path is what clients ask for, decoded."""

    url: str

    def takes(self, path: str) -> bool:
        """Return whether the store has names as long as this path."""
        ...

    def digest_of(self, data: bytes) -> str:
        """Return what `digests` has for an object of these bytes."""
        ...

    def digests(self, top: str) -> dict[str, str]:
        """Return the digests of the objects whose paths begin with `top`, by path."""
        ...

    def get(self, path: str) -> bytes | None: ...

    def create(self, path: str, data: bytes) -> bool:
        """Create an object; False where there is one."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object. Unsupported where the store cannot have it beside those below its name."""
        ...

    def delete(self, path: str) -> None: ...


@dataclass(slots=True)
class Published:
    """How much is in a tree now, and what was done for it: objects that were written and removed.

    `left_out` has what cannot be in the tree, and why; `failed` what is older there than in the warehouse, or is not
    there yet, since it could not be read or exported.
    """

    namespaces: int = 0
    tables: int = 0
    views: int = 0
    written: int = 0
    written_bytes: int = 0
    removed: int = 0
    left_out: dict[Identifier, str] = field(default_factory=dict)
    failed: dict[Identifier, str] = field(default_factory=dict)


def publish(catalog: Catalog, tree: Tree, namespace: Identifier = ()) -> Published:
    """Bring a tree to what a warehouse, or a namespace with all below it, is now.

    Costs a LIST for every 1000 objects, about 7 GETs for each table (and 25 side by side, where this process has not
    read its log), its export where that is due, and a PUT for what
    has changed. A namespace that was dropped since it was published leaves the tree empty; NoSuchNamespace for another.
    InvalidInput where the tree is of another warehouse or namespace. Where it raises, all that was in the tree is still
    there.
    """
    mark = msgspec.json.encode({"warehouse": catalog.warehouse, "namespace": namespace})
    try:
        catalog.load_namespace(namespace)
    except NoSuchNamespace:
        if tree.get(MARK) != mark:
            raise
    _claim(tree, mark)
    done = Published()
    changed: set[str] | None = None
    # Another publisher that knew less may write at the same time. So what was changed is made once more: the last one
    # that changes an object sees what all before it have seen.
    for _ in range(ROUNDS_MAX):
        changed = _Round(catalog, tree, done, changed).run(namespace)
        if not changed:
            break
    return done


def _claim(tree: Tree, mark: bytes) -> None:
    """Note whose the tree is. InvalidInput where it is another's, or where other objects are."""
    there = tree.get(MARK)
    if there is None:
        if tree.digests(TOP):
            raise InvalidInput(
                f"{tree.url}/{TOP} has objects that lakelog publish did not write: choose an empty place"
            )
        if tree.create(MARK, mark):
            return
        there = tree.get(MARK)
    if there != mark:
        raise InvalidInput(
            f"{tree.url} has the published catalog of another warehouse or namespace, which its {MARK} names: choose "
            "an empty place, or delete that one first"
        )


@dataclass(frozen=True, slots=True)
class _Space:
    """A namespace: its path, its document, and what is in it."""

    name: Identifier
    path: str
    document: Any
    tables: list[Identifier]
    views: dict[Identifier, ExportedView]


class _Round:
    """One walk over all names. With `again`, only these paths and new ones are made: the others were, just now."""

    def __init__(self, catalog: Catalog, tree: Tree, done: Published, again: set[str] | None) -> None:
        self._catalog = catalog
        self._tree = tree
        self._done = done
        self._again = again
        self._there = tree.digests(TOP)
        self._wanted: set[str] = set()
        self._changed: set[str] = set()
        self._kept: set[Identifier] = set()
        self._lock = threading.Lock()
        self._store_failed = threading.Event()

    def run(self, top: Identifier) -> set[str]:
        """Make the tree what it has to be; return the paths of what was changed for that."""
        spaces = list(self._spaces(top))
        pool = ThreadPoolExecutor(THREADS)
        try:
            asked = [pool.map(self._table_unless_failed, space.tables) for space in spaces]
            loaded = [list(each) for each in asked]
        finally:
            # Where the user interrupts, the tables that are not begun are not tried one by one.
            pool.shutdown(cancel_futures=True)
        for space, are_there in zip(spaces, loaded, strict=True):
            tables = [name for name, is_there in zip(space.tables, are_there, strict=True) if is_there]
            for name, view in space.views.items():
                self._put(_path_of(name, "views"), documents.loaded(view.url, view.metadata))
            self._put(f"{space.path}/tables", documents.identifiers(tables))
            self._put(f"{space.path}/views", documents.identifiers(list(space.views)))
            self._put(space.path, space.document)
        names = sorted([*(space.name for space in spaces), *self._kept])
        self._put(_NAMESPACES, documents.namespaces(names))
        self._put(_CONFIG, documents.config())
        gone = self._there.keys() - self._wanted
        for path in sorted(gone, key=lambda path: path.count("/")):
            self._tree.delete(path)
        self._done.removed += len(gone)
        kinds = Counter(path.split("/")[3] for path in self._wanted if path.count("/") == _DEPTH)
        self._done.namespaces, self._done.tables, self._done.views = (
            len(names),
            kinds["tables"],
            kinds["views"],
        )
        return self._changed | gone

    def _spaces(self, name: Identifier) -> Iterator[_Space]:
        """Yield a namespace and those below it, the root left out. Those that are dropped meanwhile are left out."""
        if not self._takes(name, f"{_path_of_namespace(name)}/tables"):
            return
        self._done.failed.pop(name, None)
        try:
            document = documents.namespace(self._catalog, name)
            tables, views = self._catalog.list_relations(name)
            below = self._catalog.list_namespaces(name)
            shown, left_out = self._catalog.iceberg_views(name) if name else ({}, {})
        except NoSuchNamespace:
            return
        except LakelogError as error:
            if not name or _is_of_store(error):
                raise
            self._done.failed[name] = str(error)
            self._keep(_path_of_namespace(name))
            return
        if name:
            tables = [each for each in tables if self._takes(each, _path_of(each, "tables"))]
            shown = {each: view for each, view in shown.items() if self._takes(each, _path_of(each, "views"))}
            yield _Space(name, _path_of_namespace(name), document, tables, shown)
        else:
            why = "the protocol has no tables and views outside of a namespace: move it into one"
            left_out = dict.fromkeys((*tables, *views), why)
        self._done.left_out |= left_out
        for each in below:
            yield from self._spaces(each)

    def _keep(self, space: str) -> None:
        """Have a namespace and all below it stay as they were published."""
        kept = {
            path
            for path in self._there
            if f"{path}/".startswith((f"{space}/", f"{space}{documents.SEPARATOR}"))
        }
        self._wanted |= kept
        for path in kept:
            if path.count("/") == _DEPTH - 2:
                self._kept.add(tuple(path.rpartition("/")[2].split(documents.SEPARATOR)))

    def _takes(self, name: Identifier, path: str) -> bool:
        """Return whether a name can be a path of its own; note where it cannot."""
        why = None
        if any(map(_NO_PART.search, name)):
            why = "a part of its name cannot be one part of an object's key: rename it, or use lakelog serve"
        elif not self._tree.takes(path):
            why = "its name is too long for an object's key: use shorter ones, or lakelog serve"
        if why is not None:
            self._done.left_out[name] = why
        return why is None

    def _table_unless_failed(self, name: Identifier) -> bool:
        """As `_table`. Once the store has failed, no other table is tried."""
        if self._store_failed.is_set():
            return False
        try:
            return self._table(name)
        except LakelogError:
            self._store_failed.set()
            raise

    def _table(self, name: Identifier) -> bool:
        """Publish a table; return whether it is in the tree."""
        path, done = _path_of(name, "tables"), self._done
        if self._again is not None and path in self._there and path not in self._again:
            self._wanted.add(path)
            return True
        done.left_out.pop(name, None)
        done.failed.pop(name, None)
        try:
            table = self._catalog.load_table(name)
            url, metadata = table.iceberg_metadata()
        except NoSuchTable:
            return False
        except Unsupported as error:
            done.left_out[name] = str(error)
            return False
        except LakelogError as error:
            if _is_of_store(error):
                raise
            done.failed[name] = str(error)
            if is_there := path in self._there:
                self._wanted.add(path)
            return is_there
        if (published := exported_version(metadata)) < table.version:
            done.failed[name] = (
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
    """Return whether the store failed. What it refuses, or holds in another form, concerns one name alone."""
    return isinstance(error, StorageError) and not isinstance(error, PermissionDenied)


def _path_of_namespace(name: Identifier) -> str:
    return f"{_NAMESPACES}/{documents.SEPARATOR.join(name)}"


def _path_of(name: Identifier, kind: str) -> str:
    return f"{_path_of_namespace(name[:-1])}/{kind}/{name[-1]}"
