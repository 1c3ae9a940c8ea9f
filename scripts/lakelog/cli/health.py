"""The command that shows how tables are, and the work that they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from lakelog.catalog.choices import COMMITS_MAX
from lakelog.catalog.keeping.upkeep import Advice, Health
from lakelog.catalog.operations.maintaining import HEALTH
from lakelog.cli import answer
from lakelog.cli.operations import command_of
from lakelog.cli.options import Count, Place, is_location
from lakelog.cli.progress import Progress


@command_of(
    HEALTH,
    click.option(
        "--commits",
        type=Count(),
        default=COMMITS_MAX,
        show_default=True,
        metavar="N",
        help="Read the newest N commits of each table.",
    ),
)
def health(place: Place, name: str, commits: int, listing: bool) -> None:
    catalog = place.catalog_for(name)
    scope: dict[str, Any] = {"location": name} if is_location(name) else {"name": name or None}
    with Progress() as progress:
        tables = catalog.health(**scope, commits=commits, listing=listing, progress=progress)
    if place.as_json:
        answer.list_in_json(answer.facts(tables))
    elif len(tables) == 1:
        _show(tables[0])
    else:
        _show_all(tables)
    if any(table.problem and not table.version for table in tables):
        raise click.exceptions.Exit(4)


COMMANDS = (health,)


def _show(table: Health) -> None:
    answer.heading(answer.respelled(table.name))
    if not table.version:
        answer.say(f"Cannot be read: {table.problem}")
        return
    day = table.last_day
    since = "" if table.read_from <= 1 else f" since version {table.read_from:,}"
    facts = {
        "files": f"{table.files:,} of {answer.size(table.size_bytes)} together, {table.small_files:,} of them small "
        f"(target: {answer.size(table.target_bytes)})",
        "rows": f"{table.rows:,}, and {table.deleted_rows:,} deleted that are still in their files",
        **{
            f"along {key.column}": f"a file overlaps {key.overlap - 1:.1f} others; at worst {key.deepest:,} may hold "
            "one value"
            for key in table.keys
        },
        "old versions": f"{table.old_versions:,}, which only time travel needs; commits{since} removed "
        f"{table.past_files:,} files of {answer.size(table.past_bytes)} (an estimate of what expiry can free)",
        "metadata": f"{table.manifests:,} manifests, {table.since_manifests:,} changes of files since",
        "last day": f"{day.commits:,} commits, {day.upkeep:,} of upkeep; {day.rebased:,} lost races, to {day.passed:,} "
        "commits",
    }
    if table.unreachable_files is not None:
        facts["unreachable"] = (
            f"{table.unreachable_files:,} objects of {answer.size(table.unreachable_bytes or 0)}"
        )
    if table.problem is not None:
        facts["problem"] = table.problem
    answer.pairs(facts)
    answer.rows(
        ("files below", ">files", ">size"),
        [
            (
                "all others" if size_class.below_bytes >= 1 << 62 else answer.size(size_class.below_bytes),
                answer.count(size_class.files),
                answer.size(size_class.size_bytes),
            )
            for size_class in table.sizes
        ],
        empty="There are no files.",
    )
    for advice in table.advice:
        answer.say(_said(advice))
        for command in (advice.command, advice.sql):
            if command is not None:
                answer.say(f"    {command}")


def _said(advice: Advice) -> str:
    costs = [
        f"{verb} {answer.size(size_bytes)}"
        for verb, size_bytes in (
            ("reads", advice.reads_bytes),
            ("writes", advice.writes_bytes),
            ("frees", advice.frees_bytes),
        )
        if size_bytes is not None
    ]
    return f"{advice.what} ({', '.join(costs)})" if costs else advice.what


def _show_all(healths: Sequence[Health]) -> None:
    answer.rows(
        ("table", ">files", ">small", ">size", ">deleted rows", ">old versions", "to do"),
        [
            (
                answer.respelled(table.name),
                answer.count(table.files),
                answer.count(table.small_files),
                answer.size(table.size_bytes),
                answer.count(table.deleted_rows),
                answer.count(table.old_versions),
                table.problem or ", ".join(advice.action for advice in table.advice if advice.action),
            )
            for table in healths
        ],
        empty="There are no tables.",
    )
