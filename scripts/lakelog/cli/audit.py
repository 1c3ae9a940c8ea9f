"""The command that shows the author of every change in a warehouse, and verifies every hash on the way."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import click
import msgspec

from lakelog.catalog.looking.audit import AuditEntry
from lakelog.catalog.looking.pictures import what_was_done
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.catalog.times import age_of
from lakelog.cli import answer
from lakelog.cli.options import LOG, REFERENCE, Place, is_location, limit_option, takes_place

EXIT_DAMAGE = 4
ROWS_PER_TABLE = 500
"""The number of lines that are laid out together. A history of any length is thus printed as it is read."""


@click.command()
@click.option(
    "--since",
    metavar="TIME",
    help="From 2026-11-20, 2026-11-20 08:00 (UTC) or an age: 1h, 7d.",
)
@click.option("--until", metavar="TIME", help="Up to this time. A date alone means its whole day.")
@click.option(
    "--table",
    type=LOG,
    metavar="TABLE",
    help="This table only. A former name, or the name of a dropped table, will do.",
)
@click.option(
    "--namespace", type=REFERENCE, metavar="NAMESPACE", help="This namespace only, with all below it."
)
@click.option("--user", metavar="NAME", help="This user's commits only. * and ? stand for any characters.")
@click.option("--operation", metavar="NAME", help="These operations only: append, drop, 'create*' and so on.")
@limit_option("entries")
@click.option("--oldest-first", is_flag=True, help="Begin with the oldest entry rather than the newest.")
@takes_place
def audit(
    place: Place,
    since: str | None,
    until: str | None,
    table: str | None,
    namespace: str | None,
    user: str | None,
    operation: str | None,
    limit: int | None,
    oldest_first: bool,
) -> None:
    """Show every change in the warehouse, and verify its hash.

    It shows every commit of every namespace and table, dropped or not, the newest first. Each has its time, author,
    engine, application, query and statement. Commits of a transaction stand together.

    Each commit is verified: its hash, and that it continues the commit before it. Damage is shown in its place, and
    makes the exit code 4. Expired versions are shown as such, and their hashes are verified too.
    """
    since, until = _moment(since), _moment(until)
    at_a_place = table is not None and is_location(table)
    catalog = place.catalog_for(table if at_a_place and table is not None else "")
    entries = catalog.audit(
        since=since,
        until=until,
        table=None if at_a_place else table,
        namespace=namespace if namespace is None else identifier(namespace),
        location=table if at_a_place else None,
        user=user,
        operation=operation,
        newest_first=not oldest_first,
    )
    damage_count = 0
    has_entries = False
    for page in _pages(islice(entries, limit)):
        has_entries = True
        damage_count += sum(entry.what == "damage" for entry in page)
        if place.as_json:
            answer.list_in_json(map(in_json, page))
        else:
            answer.rows(("time", "log", ">version", "what", "who"), map(_line, page), empty="")
    if not has_entries and not place.as_json:
        answer.rows((), (), empty="Nothing has happened.")
    if damage_count:
        sys.stdout.flush()
        answer.complain(
            f"{damage_count} of these entries report damage: see lakelog fsck", "damage", EXIT_DAMAGE
        )
        raise click.exceptions.Exit(EXIT_DAMAGE)


COMMANDS = (audit,)


def _moment(text: str | None) -> str | None:
    """Return a time; of an age, the time that is so long ago."""
    age = None if text is None else age_of(text)
    return text if age is None else (dt.datetime.now(dt.UTC) - age).isoformat()


def in_json(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as --json shows it: always the same members, null if a fact is not known."""
    plain: dict[str, Any] = msgspec.to_builtins(entry)
    plain["name"] = answer.name_in_json(entry.name)
    moment = entry.committed_at
    return plain | {"committed_at": None if moment is None else moment.isoformat()}


def _pages(entries: Iterator[AuditEntry]) -> Iterator[Sequence[AuditEntry]]:
    while page := list(islice(entries, ROWS_PER_TABLE)):
        yield page


def _line(entry: AuditEntry) -> tuple[str, str, str, str, str]:
    name = entry.location if entry.name is None else quoted_where_needed(entry.name) or "(root)"
    return (
        "" if entry.committed_at is None else answer.time(entry.committed_at),
        f"{name} (dropped)" if entry.dropped else name,
        str(entry.version) if entry.version else "",
        _what(entry),
        " ".join(fact for fact in (entry.user, entry.engine, entry.application) if fact),
    )


def _what(entry: AuditEntry) -> str:
    if entry.what != "commit":
        return f"DAMAGE: {entry.note}" if entry.what == "damage" else str(entry.note)
    text = what_was_done(", ".join(entry.operations) or "nothing", entry.details)
    if entry.base is not None and entry.base < entry.version - 1:
        text += f" (prepared on {entry.base}, rebased)"
    if entry.transaction is not None:
        text += f" [transaction {entry.transaction[:8]}]"
    return f"{text}\n  {entry.statement}" if entry.statement else text
