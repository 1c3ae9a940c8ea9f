"""The command that shows who changed what, over a whole warehouse, and verifies every hash on the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import click
import msgspec

from lakelog.catalog.looking.audit import AuditEntry
from lakelog.catalog.looking.pictures import what_was_done
from lakelog.catalog.names import identifier, quoted_where_needed
from lakelog.cli import answer
from lakelog.cli.options import LOG, REFERENCE, Count, Place, is_location, takes_place

EXIT_DAMAGE = 4
ROWS_PER_TABLE = 500
"""So many lines are laid out together: a history of any length is printed as it is read."""


@click.command()
@click.option("--since", metavar="TIME", help="From this time on: 2026-11-20, or 2026-11-20 08:00 (UTC).")
@click.option("--until", metavar="TIME", help="Up to this time; a date alone means its whole day.")
@click.option(
    "--table", type=LOG, metavar="TABLE", help="This table only, also by a former name or after its drop."
)
@click.option(
    "--namespace", type=REFERENCE, metavar="NAMESPACE", help="This namespace and all below it only."
)
@click.option("--user", metavar="NAME", help="What this user did; * and ? stand for any characters.")
@click.option("--operation", metavar="NAME", help="Such operations only: append, drop, 'create*' and so on.")
@click.option("--limit", type=Count(), metavar="N", help="The first N entries only.")
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
    """Show who changed what in the whole warehouse, and verify it.

    Every commit of every namespace and table, dropped ones too, the newest first: when, who, with which engine,
    application, query and statement. Commits of one transaction stand together.

    What is shown is verified on the way: each commit's hash, and that it continues the one before it. Damage is shown
    in its place, and makes the exit code 4. Expired versions are shown as such, and their hashes are verified too.

    With --json, one JSON object a line.
    """
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
    damaged = 0
    any_printed = False
    for page in _pages(islice(entries, limit)):
        any_printed = True
        damaged += sum(entry.what == "damage" for entry in page)
        if place.as_json:
            lines = (json.dumps(in_json(entry), ensure_ascii=False) for entry in page)
            sys.stdout.writelines(f"{answer.harmless(line)}\n" for line in lines)
        else:
            answer.rows(("time", "log", ">version", "what", "who"), map(_line, page), empty="")
    if not any_printed and not place.as_json:
        answer.rows((), (), empty="Nothing has happened.")
    if damaged:
        sys.stdout.flush()
        answer.say(f"lakelog: {damaged} of these entries report damage: see lakelog fsck", err=True)
        raise click.exceptions.Exit(EXIT_DAMAGE)


COMMANDS = (audit,)


def in_json(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as --json shows it: always the same members, null for what is not known."""
    plain: dict[str, Any] = msgspec.to_builtins(entry)
    time_us = plain.pop("time_us")
    return {"what": entry.what, "time": None if time_us is None else answer.iso_time(time_us)} | plain


def _pages(entries: Iterator[AuditEntry]) -> Iterator[Sequence[AuditEntry]]:
    while page := list(islice(entries, ROWS_PER_TABLE)):
        yield page


def _line(entry: AuditEntry) -> tuple[str, str, str, str, str]:
    name = entry.location if entry.name is None else quoted_where_needed(entry.name) or "(root)"
    return (
        "" if entry.time_us is None else answer.time(entry.time_us),
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
