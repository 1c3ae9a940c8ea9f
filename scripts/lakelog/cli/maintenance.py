"""The commands of upkeep: compact (small files), expire (old versions), vacuum (unreachable files)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import click

from lakelog.catalog.keeping.maintenance import EXPIRE_DEFAULT_AGE, VACUUM_DEFAULT_AGE, Expired, Vacuumed
from lakelog.catalog.operations.maintaining import COMPACT, EXPIRE, VACUUM
from lakelog.catalog.times import age_text
from lakelog.cli import answer
from lakelog.cli.inspection import details_of, load
from lakelog.cli.operations import chosen, command_of, counted, say_nothing_changed
from lakelog.cli.options import Place
from lakelog.cli.progress import Progress
from lakelog.log import noting_commits


@command_of(COMPACT)
def compact(
    place: Place, table: str, where: str | None, target_size: int | None, deleted_ratio: float | None
) -> None:
    old_table = load(place, table, None)
    with Progress() as progress, noting_commits() as noted_commits:
        new_table = old_table.compact(
            where, target_size_bytes=target_size, deleted_ratio=deleted_ratio, progress=progress
        )
    own = details_of(noted_commits, old_table, new_table)
    files, fewer = (
        sum(int(details.get(f"{kind}_files", 0)) for details in own) for kind in ("added", "removed")
    )
    if place.as_json:
        answer.in_json({"version": new_table.version, "added_files": files, "removed_files": fewer})
    elif not own:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(
            f"{counted(fewer, 'file')} became {counted(files, 'file')}, in version {new_table.version}."
        )


@command_of(EXPIRE)
def expire(place: Place, name: str, **wish: Any) -> None:
    limits = {"--older-than": "older_than", "--before-version": "version", "--retain-last": "retain_last"}
    limits_given = [option for option, limit in limits.items() if wish[limit] is not None]
    if len(limits_given) > 1:
        raise click.UsageError(f"{' and '.join(limits_given)} exclude each other: give one of them")
    catalog = place.catalog_for(name)
    with Progress() as progress:
        logs = catalog.expire(**chosen(catalog, name), **wish, progress=progress)
    if place.as_json:
        answer.in_json({"dry_run": wish["dry_run"], "logs": answer.facts(logs)})
    else:
        _report_expired(logs, limit=limits_given[0] if limits_given else None, dry_run=wish["dry_run"])
    _end(logs)


_NOTHING_TO_EXPIRE = (
    f"No version is old enough: none was replaced more than {EXPIRE_DEFAULT_AGE.days} days ago, or than the property "
    "lakelog.maintenance.keep-for says. To expire others, give --older-than, --before-version or --retain-last."
)


def _report_expired(found: Sequence[Expired], *, limit: str | None, dry_run: bool) -> None:
    """Show the expired versions. `limit` is the option that says which, None for the policy."""
    answer.rows(
        ("log", ">versions", ">kept from", ">metadata", ">data files", ">size", ""),
        [
            (
                answer.respelled(log.name),
                answer.count(log.versions),
                str(log.first),
                answer.size(log.size_bytes),
                answer.count(log.files),
                answer.size(log.file_bytes),
                "kept for saved cuts" if log.kept_for_cuts else "",
            )
            for log in found
            if log.commits or log.kept_for_cuts
        ],
        empty=_NOTHING_TO_EXPIRE if limit is None else f"No version is old enough by {limit}.",
    )
    versions, logs = sum(log.versions for log in found), sum(1 for log in found if log.commits)
    if logs:
        answer.say(
            f"{'Would expire' if dry_run else 'Expired'} {counted(versions, 'version')} of {counted(logs, 'log')}, "
            f"{answer.size(sum(log.size_bytes for log in found))} of metadata; "
            f"{counted(sum(log.files for log in found), 'data file')} of "
            f"{answer.size(sum(log.file_bytes for log in found))} can then be vacuumed."
        )
    if logs and dry_run:
        say_nothing_changed()


@command_of(VACUUM, click.option("--keys", is_flag=True, help="Name every object."))
def vacuum(place: Place, name: str, keys: bool, **wish: Any) -> None:
    catalog = place.catalog_for(name)
    with Progress() as progress:
        places = catalog.vacuum(**chosen(catalog, name), **wish, keys=keys, progress=progress)
    if place.as_json:
        answer.in_json({"dry_run": wish["dry_run"], "places": answer.facts(places)})
    else:
        write_age = wish["older_than"] or VACUUM_DEFAULT_AGE
        _report_vacuumed(places, write_age, dry_run=wish["dry_run"], with_keys=keys)
    _end(places)


def _report_vacuumed(
    found: Sequence[Vacuumed], write_age: dt.timedelta, *, dry_run: bool, with_keys: bool
) -> None:
    noted_places = [place for place in found if _is_worth_showing(place)]
    answer.rows(
        ("what", "name", ">data files", ">size", ">other objects", ">size", ""),
        [
            (
                place.kind.replace("-", " "),
                answer.respelled(place.name),
                answer.count(place.files),
                answer.size(place.size_bytes),
                answer.count(place.objects),
                answer.size(place.object_bytes),
                _remarks(place, write_age),
            )
            for place in noted_places
        ],
        empty="There is nothing unreachable.",
    )
    if with_keys:
        for key in (key for place in noted_places for key in place.keys):
            answer.say(key)
    files, objects = sum(place.files for place in found), sum(place.objects for place in found)
    if files or objects:
        size_bytes = sum(place.size_bytes + place.object_bytes for place in found)
        answer.say(
            f"{'Would delete' if dry_run else 'Deleted'} {counted(files, 'data file')} and "
            f"{counted(objects, 'other object')}, {answer.size(size_bytes)}."
        )
    purges = any(place.kind.startswith(("dropped", "unlinked")) and not place.waiting for place in found)
    if (files or objects or purges) and dry_run:
        say_nothing_changed()


def _is_worth_showing(each: Vacuumed) -> bool:
    return bool(each.files or each.objects or each.waiting) or each.kind not in ("table", "namespace")


def _remarks(each: Vacuumed, write_age: dt.timedelta) -> str:
    remarks = []
    if each.kept_for_cuts:
        remarks.append("kept for saved cuts")
    if each.kept_for_clones:
        remarks.append(f"kept for the clones {', '.join(each.kept_for_clones)}")
    if each.waiting:
        remarks.append(
            f"{counted(each.waiting, 'file')} of writes that may be under way stay: these began less than "
            f"{age_text(write_age)} ago (--older-than)"
        )
    if each.foreign:
        remarks.append(f"{counted(each.foreign, 'foreign file')} stay")
    return ", ".join(remarks)


COMMANDS = (compact, expire, vacuum)


def _end(found: Sequence[Expired] | Sequence[Vacuumed]) -> None:
    """Print each failure on stderr, and set the exit code."""
    failures = [failure for failure in found if failure.error is not None]
    for failure in failures:
        answer.complain(f"{failure.name} was skipped: {failure.error}", "skipped", 1)
    if failures:
        raise click.exceptions.Exit(1)
