"""The rights that requests take, by their bodies. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakelog.catalog.formats.iceberg_commits import is_create
from lakelog.catalog.names import Identifier
from lakelog.log.errors import InvalidInput
from lakelog.rest.access import CREATE, DROP, READ, VERBS, WRITE, NeededRight, rights_in
from lakelog.rest.client_bodies import Json, RenameRequest, TableCommitRequest

LOCATION = "location"
"""The member of a request to create a table, and the property of a namespace, that has a place for tables."""


def rights_to_commit(name: Identifier, request: TableCommitRequest) -> tuple[NeededRight, ...]:
    return rights_in(name[:-1], (READ, CREATE if is_create(request.requirements) else WRITE))


def rights_to_rename(request: RenameRequest) -> tuple[NeededRight, ...]:
    """Return the rights to take a name away, and to give the new name.

    An object that comes into another namespace is under the rights there. So the caller needs all verbs that it could
    get by that in the old namespace, too.
    """
    source, destination = request.source.namespace, request.destination.namespace
    return (*rights_in(source, (READ, WRITE, DROP)), *rights_in(destination, (CREATE,)))


def rights_to_place(names: Iterable[str]) -> tuple[NeededRight, ...]:
    """Return the rights to choose a place for tables, if a place is among the names of members or properties.

    It may be in the folder of any other namespace, or in any other folder that the server may write to.
    """
    if LOCATION not in names:
        return ()
    return tuple(NeededRight(verb, (), has_all_below=True) for verb in VERBS)


def rights_to_resolve(definition: Json) -> tuple[NeededRight, ...]:
    """Return the right to read the namespace in which a view's names are looked up: errors name functions there."""
    updates = definition.get("updates")
    versions = (
        [update.get("view-version") for update in updates if isinstance(update, dict)]
        if isinstance(updates, list)
        else []
    )
    needs: list[NeededRight] = []
    for version in (definition.get("view-version"), *versions):
        namespace = version.get("default-namespace") if isinstance(version, dict) else None
        if namespace is not None:
            if not isinstance(namespace, list) or not all(isinstance(part, str) for part in namespace):
                raise InvalidInput("the default-namespace of a view is a list of texts")
            needs.append(NeededRight(READ, tuple(namespace)))
    return tuple(needs)
