"""The commands for dropped objects: list those that can be restored, and restore one."""

from __future__ import annotations

from typing import Any

import click

from lakelog.catalog.core.ddl import DroppedEntry
from lakelog.catalog.names import Identifier, identifier, quoted_where_needed
from lakelog.cli import answer
from lakelog.cli.options import REFERENCE, Place, takes_place


@click.command()
@click.argument("namespace", default="", type=REFERENCE)
@takes_place
def dropped(place: Place, namespace: str) -> None:
    """List what was dropped and can be restored.

    In NAMESPACE and all below it; without NAMESPACE, in the whole warehouse. The latest drop comes first. A dropped
    namespace stands for all that was dropped with it. "Until" is when vacuum may purge it; nothing happens by itself.
    """
    found = place.catalog().dropped(identifier(namespace), recursive=True)
    if place.as_json:
        answer.in_json([_in_json(entry) for entry in found])
    else:
        answer.rows(
            ("kind", "name", "dropped", "by", "until", "id"),
            [
                (
                    entry.kind,
                    quoted_where_needed(entry.name),
                    answer.time(entry.dropped_us),
                    entry.user or "",
                    answer.time(entry.kept_until_us),
                    entry.id,
                )
                for entry in found
            ],
            empty="Nothing that was dropped can be restored.",
        )


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--id", metavar="ID", help="Which one, where several were dropped under that name.")
@click.option("--to", metavar="NAME", help="Another name, for instance because the old one is taken.")
@takes_place
def undrop(place: Place, name: str, id: str | None, to: str | None) -> None:
    """Restore what was dropped as NAME: a table or namespace with its history, a view, or a function.

    The one that was dropped last under that name; a namespace comes back with all that was dropped together with it.
    """
    catalog = place.catalog()
    path = identifier(name)
    kinds = {
        entry.kind
        for entry in catalog.dropped(path[:-1])
        if entry.name == path and (id is None or entry.id == id)
    }
    if len(kinds) > 1:
        raise click.UsageError(
            f"A {' and a '.join(sorted(kinds))} were dropped as {name}: choose one with --id (see lakelog dropped)"
        )
    kind = next(iter(kinds), "table")
    restore = {
        "table": catalog.undrop_table,
        "view": catalog.undrop_view,
        "function": catalog.undrop_function,
        "namespace": catalog.undrop_namespace,
    }[kind]
    restored = restore(path, id=id, to=to)
    if place.as_json:
        answer.in_json({"kind": kind, "name": list(restored)})
    else:
        answer.say(f"Restored the {kind} {quoted_where_needed(restored)}.")


COMMANDS = (dropped, undrop)


def _in_json(entry: DroppedEntry) -> dict[str, Any]:
    name: Identifier = entry.name
    return {
        "kind": entry.kind,
        "name": list(name),
        "id": entry.id,
        "location": entry.location,
        "dropped": answer.iso_time(entry.dropped_us),
        "until": answer.iso_time(entry.kept_until_us),
        "writer": entry.writer,
    }
