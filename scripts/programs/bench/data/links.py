"""Names of very many tables or namespaces, linked by few commits of the namespace's log. No objects exist for them."""

from __future__ import annotations

import uuid

from lakelog.catalog import Catalog
from lakelog.catalog.core.state import RELATION, TABLE, EntryLinked, encode
from lakelog.log import Draft

LINKS_PER_COMMIT = 20_000


def link(catalog: Catalog, namespace: str, names: int, *, space: str = RELATION, kind: str = TABLE) -> None:
    """Link the names by valid commits, although no tables or namespaces exist for them."""
    tracked_log = catalog._tree.namespace((namespace,)).tracked
    for first in range(0, names, LINKS_PER_COMMIT):
        ids = [
            (number, f"{uuid.uuid4().hex[:26]}")
            for number in range(first, min(names, first + LINKS_PER_COMMIT))
        ]
        events = encode(
            [
                EntryLinked(
                    space=space,
                    name=f"{kind}_{number:07d}",
                    kind=kind,
                    id=id,
                    location=f"{tracked_log.location}/{kind[0]}-{id}",
                )
                for number, id in ids
            ]
        )
        tracked_log.commit(tracked_log.current(), lambda view, passed, events=events: Draft(events=events))  # type: ignore[misc]
