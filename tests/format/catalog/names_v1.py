"""Makes the golden warehouse of a namespace whose names are in pages, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.names_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from unittest.mock import patch

from tests.format.catalog.warehouse_v1 import build as built
from tests.format.writing import write_objects

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema import ViewDefinition
from lakelog.catalog.core.state import (
    RELATION,
    TABLE,
    EntryDefined,
    EntryLinked,
    EntryRenamed,
    EntryUnlinked,
    NamespaceEvent,
    encode,
    name_pages,
    namespace_state,
    paged_map,
)
from lakelog.log import Draft

NAMES = [f"t{number:02d}" for number in range(30)]
VIEWS = [f"v{number:02d}" for number in range(12)]


def fill(catalog: Catalog) -> None:
    """Have names come and go: some are in pages of a base, some beside them in a snapshot, and some in commits."""
    catalog.create_namespace("n")
    # No table is behind the names: a reader of names meets none.
    _commit(catalog, *map(_linked, NAMES), *map(defined, VIEWS))
    dropped = [EntryUnlinked(space=RELATION, name=name, id=f"id-{name}", dropped=True) for name in NAMES[20:]]
    dropped += [EntryUnlinked(space=RELATION, name=name, id=f"id-{name}", dropped=True) for name in VIEWS]
    _commit(catalog, *dropped)
    _commit(catalog, *map(_linked, [f"{name}-again" for name in NAMES]), *map(_defined_anew, VIEWS))
    catalog.expire(namespace="n", retain_last=1, dry_run=False)
    _commit(catalog, EntryRenamed(space=RELATION, name="t03", id="id-t03", new_name="renamed"))
    _commit(catalog, EntryUnlinked(space=RELATION, name="t04", id="id-t04", dropped=True), _linked("t20"))
    tracked_log = catalog._tree.namespace(("n",)).tracked
    tracked_log.log.snapshot(tracked_log.current())
    _commit(catalog, EntryUnlinked(space=RELATION, name="t05", id="id-t05"), _linked("last"))


def _commit(catalog: Catalog, *events: NamespaceEvent) -> None:
    tracked_log = catalog._tree.namespace(("n",)).tracked
    tracked_log.commit(tracked_log.current(), lambda view, passed: Draft(events=encode(events)))


def _linked(name: str) -> EntryLinked:
    return EntryLinked(space=RELATION, name=name, kind=TABLE, id=f"id-{name}", location=f"n/t-id-{name}")


def defined(name: str, id: str | None = None) -> EntryDefined:
    definition = ViewDefinition(text=f"SELECT '{name}'", columns=(), properties={"owner": "ada"})
    return EntryDefined(space=RELATION, name=name, id=id or f"id-{name}", definition=definition)


def _defined_anew(name: str) -> EntryDefined:
    return defined(name, f"id-{name}-again")


def build() -> dict[str, bytes]:
    """Return the objects of the warehouse, in which few names are many."""
    with (
        patch.object(namespace_state, "PAGED_FROM", 8),
        patch.object(paged_map, "PAGED_FROM", 8),
        patch.object(paged_map, "PAGE_NAMES", 5),
        patch.object(name_pages, "PAGE_NAMES", 5),
        patch.object(paged_map, "DIFFERENT_MIN", 2),
    ):
        return built(fill)


if __name__ == "__main__":
    write_objects(build())
