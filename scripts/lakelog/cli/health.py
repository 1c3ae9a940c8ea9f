"""The command that says how tables are, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from lakelog.catalog.choices import COMMITS_MAX
from lakelog.catalog.keeping.upkeep import Advice, Health
from lakelog.cli import answer
from lakelog.cli.options import REFERENCE, Count, Place, is_location, takes_place
from lakelog.cli.progress import Progress


@click.command()
@click.argument("name", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)
@click.option(
    "--commits",
    type=Count(),
    default=COMMITS_MAX,
    show_default=True,
    metavar="N",
    help="Read the newest N commits of each table.",
)
@click.option("--list", "listing", is_flag=True, help="Count what a vacuum would delete now, by listing it.")
@takes_place
def health(place: Place, name: str, commits: int, listing: bool) -> None:
    """Say how TABLE is, or each table of NAMESPACE, and what is to be done about it.

    Without either, of the whole warehouse. It reads metadata alone: the sizes of files, deleted rows, how files overlap
    along the columns that rows are clustered by, versions that only time travel needs, and the commits and lost races
    of the last day. For what is to be done it says what that would read and write, what it is expected to save, and the
    command. Nothing is changed. Exit code 4 where a table cannot be read.
    """
    catalog = place.catalog_for(name)
    what: dict[str, Any] = {"location": name} if is_location(name) else {"name": name or None}
    with Progress() as progress:
        found = catalog.health(**what, commits=commits, listing=listing, progress=progress)
    if place.as_json:
        answer.in_json({"tables": msgspec.to_builtins(found)})
    elif len(found) == 1:
        _show(found[0])
    else:
        _show_all(found)
    if any(each.problem and not each.version for each in found):
        raise click.exceptions.Exit(4)


COMMANDS = (health,)


def _show(table: Health) -> None:
    answer.heading(table.name)
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
            ("all others" if each.below_bytes >= 1 << 62 else answer.size(each.below_bytes), f"{each.files:,}",
             answer.size(each.size_bytes))
            for each in table.sizes
        ],
        empty="There are no files.",
    )  # fmt: skip
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


def _show_all(found: Sequence[Health]) -> None:
    answer.rows(
        ("table", ">files", ">small", ">size", ">deleted rows", ">old versions", "to do"),
        [
            (
                each.name,
                answer.count(each.files),
                answer.count(each.small_files),
                answer.size(each.size_bytes),
                answer.count(each.deleted_rows),
                answer.count(each.old_versions),
                each.problem or ", ".join(advice.action for advice in each.advice if advice.action),
            )
            for each in found
        ],
        empty="There are no tables.",
    )
