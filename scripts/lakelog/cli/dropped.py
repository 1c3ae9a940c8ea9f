"""The commands for dropped objects: list the objects that can be restored, and restore an object."""

from __future__ import annotations

from typing import Any

import click

from lakelog.catalog import DroppedEntry
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.catalog.operations.copies import DROPPED
from lakelog.cli import answer
from lakelog.cli.operations import command_of
from lakelog.cli.options import REFERENCE, Place, takes_place


@command_of(DROPPED, click.argument("namespace", default="", type=REFERENCE), without=("namespace",))
def dropped(place: Place, namespace: str) -> None:
    entries = place.catalog().dropped(identifier(namespace), recursive=True)
    if place.as_json:
        answer.list_in_json(map(_in_json, entries))
    else:
        answer.rows(
            ("kind", "name", "dropped", "by", "until", "id"),
            [
                (
                    entry.kind,
                    quoted_where_needed(entry.name),
                    answer.time(entry.dropped_at),
                    entry.user or "",
                    answer.time(entry.kept_until),
                    entry.id,
                )
                for entry in entries
            ],
            empty="Nothing that was dropped can be restored.",
        )


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--id", metavar="ID", help="The id, if several were dropped under that name.")
@click.option("--to", metavar="NAME", help="Restore it under another name.")
@takes_place
def undrop(place: Place, name: str, id: str | None, to: str | None) -> None:
    """Restore a dropped table, namespace, view or function.

    A table or namespace has its history again. If several were dropped under NAME, the latest is restored. A namespace
    comes back with everything that was dropped together with it.
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
    new_name = restore(path, id=id, to=to)
    if place.as_json:
        answer.in_json({"kind": kind, "name": answer.name_in_json(new_name)})
    else:
        answer.say(f"Restored the {kind} {quoted_where_needed(new_name)}.")


COMMANDS = (dropped, undrop)


def _in_json(entry: DroppedEntry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "name": answer.name_in_json(entry.name),
        "id": entry.id,
        "location": entry.location,
        "dropped_at": entry.dropped_at.isoformat(),
        "kept_until": entry.kept_until.isoformat(),
        "writer": entry.writer,
    }
