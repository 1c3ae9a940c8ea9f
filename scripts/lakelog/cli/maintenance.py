"""The commands of upkeep: compact (small files), expire (old versions), vacuum (unreachable files).

Those that delete only report what they would do without --apply.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import click
import msgspec

from lakelog.catalog import Catalog
from lakelog.catalog.keeping.maintenance import (
    EXPIRE_DEFAULT_AGE,
    VACUUM_DEFAULT_AGE,
    VACUUM_DEFAULT_DROPPED_AGE,
    Expired,
    Vacuumed,
)
from lakelog.catalog.names import identifier
from lakelog.catalog.times import age_of, age_text
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import REFERENCE, TABLE, Place, is_location, takes_place
from lakelog.cli.progress import Progress


def age(context: click.Context, parameter: click.Parameter, value: str | None) -> dt.timedelta | None:
    """Read an age as people write it: 90s, 30m, 12h, 7d, 2w."""
    if value is None:
        return None
    found = age_of(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not an age: write 90s, 30m, 12h, 7d or 2w")
    return found


def _days(age: dt.timedelta) -> str:
    return f"{age.days}d"


_apply = click.option("--apply", is_flag=True, help="Do it. Without this, nothing is changed, only reported.")
_trust_clock = click.option(
    "--trust-clock",
    is_flag=True,
    help="This host's clock is right, though in a folder nothing was committed for more than a day.",
)


@click.command()
@click.argument("table", type=TABLE)
@click.option("--where", metavar="CONDITION", help="Only files that may have rows for which it is true.")
@click.option(
    "--deleted-ratio",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Rewrite any file of whose rows this share is deleted. [default: the table's property, or 0.3]",
)
@takes_place
def compact(place: Place, table: str, where: str | None, deleted_ratio: float | None) -> None:
    """Rewrite small files of TABLE as larger ones, without deleted rows.

    No row changes, and older versions keep their files until they expire and are vacuumed. Large tables take several
    commits; files that others change meanwhile are left for the next time. Rows are read and written here: for very
    large tables, CALL lake.system.compact in Spark does the same by its executors.
    """
    before = load(place, table, None)
    with Progress() as progress:
        after = before.compact(where, deleted_ratio=deleted_ratio, progress=progress)
    changed = takewhile(lambda entry: entry.version > before.version, after.history())
    own = [entry.details for entry in changed if entry.operation == "compact"]
    files, fewer = (sum(int(each.get(f"{which}_files", 0)) for each in own) for which in ("added", "removed"))
    if place.as_json:
        answer.in_json({"version": after.version, "added_files": files, "removed_files": fewer})
    elif not own:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(f"{counted(fewer, 'file')} became {counted(files, 'file')}, in version {after.version}.")


@click.command()
@click.argument("what", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)
@click.option(
    "--older-than",
    callback=age,
    metavar="AGE",
    help="Versions that were replaced longer ago than that. [default: the property lakelog.maintenance.keep-for, or "
    f"{_days(EXPIRE_DEFAULT_AGE)}]",
)
@click.option(
    "--before-version", type=click.IntRange(min=1), metavar="N", help="Versions of TABLE before that one."
)
@click.option(
    "--retain-last", type=click.IntRange(min=1), metavar="N", help="All but the last N versions of each log."
)
@_apply
@_trust_clock
@takes_place
def expire(
    place: Place,
    what: str,
    older_than: dt.timedelta | None,
    before_version: int | None,
    retain_last: int | None,
    apply: bool,
    trust_clock: bool,
) -> None:
    """Expire old versions of TABLE or of NAMESPACE with all that is in it.

    Without either, of everything in the warehouse. --older-than, --before-version or --retain-last says which; AGE is a
    number and s, m, h, d or w. Without one of these, each table is kept for as long as its property
    lakelog.maintenance.keep-for says, or that of a namespace above it, and for 7 days where none does.

    Only the log shrinks: lakelog vacuum deletes the data files that no version has any more. The current version
    always stays, and so does what saved cuts need. Each log that is expired gets a commit that says so.

    In a folder, no clock but this host's says how old things are. Where it is more than a day past the newest commit,
    and only that makes something old enough, --apply refuses without --trust-clock.
    """
    limits = {"--older-than": older_than, "--before-version": before_version, "--retain-last": retain_last}
    given = [option for option, value in limits.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other: give one of them")
    catalog = place.catalog_for(what)
    with Progress() as progress:
        found = catalog.expire(
            **_chosen(catalog, what),
            older_than=older_than,
            version=before_version,
            retain_last=retain_last,
            dry_run=not apply,
            trust_clock=trust_clock,
            progress=progress,
        )
    if place.as_json:
        answer.in_json({"applied": apply, "logs": msgspec.to_builtins(found)})
    else:
        _report_expired(found, apply)
    _end(found)


def _report_expired(found: Sequence[Expired], applied: bool) -> None:
    answer.rows(
        ("log", ">versions", ">kept from", ">metadata", ">data files", ">size", ""),
        [
            (
                each.name,
                answer.count(each.versions),
                str(each.first),
                answer.size(each.size_bytes),
                answer.count(each.files),
                answer.size(each.file_bytes),
                "kept for saved cuts" if each.kept_for_cuts else "",
            )
            for each in found
            if each.commits or each.kept_for_cuts
        ],
        empty="No version is old enough.",
    )
    versions, logs = sum(each.versions for each in found), sum(1 for each in found if each.commits)
    if logs:
        answer.say(
            f"{'Expired' if applied else 'Would expire'} {counted(versions, 'version')} of {counted(logs, 'log')}, "
            f"{answer.size(sum(each.size_bytes for each in found))} of metadata; "
            f"{counted(sum(each.files for each in found), 'data file')} of "
            f"{answer.size(sum(each.file_bytes for each in found))} can then be vacuumed."
        )
    _report_dry_run(bool(logs), applied)


@click.command()
@click.argument("what", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)
@click.option(
    "--older-than",
    callback=age,
    metavar="AGE",
    help=f"Writes that began longer ago fail from then on, and leave nothing. [default: {_days(VACUUM_DEFAULT_AGE)}]",
)
@click.option(
    "--dropped-older-than",
    callback=age,
    metavar="AGE",
    help=f"What was dropped longer ago is purged for good. [default: {_days(VACUUM_DEFAULT_DROPPED_AGE)}]",
)
@click.option("--keys", is_flag=True, help="Name every object.")
@_apply
@_trust_clock
@takes_place
def vacuum(
    place: Place,
    what: str,
    older_than: dt.timedelta | None,
    dropped_older_than: dt.timedelta | None,
    keys: bool,
    apply: bool,
    trust_clock: bool,
) -> None:
    """Delete the unreachable files of TABLE or of NAMESPACE with all that is in it.

    Without either, of everything in the warehouse. AGE is a number and s, m, h, d or w.

    \b
    Deleted are:
      data files of no readable version and of no write under way
      of a namespace, what was dropped in it longer ago than --dropped-older-than
      of a namespace, leftovers of unfinished creations
      leftovers of writers that died

    Time travel keeps what it needs: lakelog expire decides which versions stay. Files that are not lakelog's are never
    touched. Writes older than the limit fail with a clear error; the limit must be longer than your longest write.

    In a folder, no clock but this host's says how old things are. Where it is more than a day past the newest commit,
    and only that makes something old enough, --apply refuses without --trust-clock.
    """
    catalog = place.catalog_for(what)
    with Progress() as progress:
        found = catalog.vacuum(
            **_chosen(catalog, what),
            older_than=older_than,
            dropped_older_than=dropped_older_than,
            dry_run=not apply,
            trust_clock=trust_clock,
            keys=keys,
            progress=progress,
        )
    if place.as_json:
        answer.in_json({"applied": apply, "places": msgspec.to_builtins(found)})
    else:
        _report_vacuumed(found, older_than or VACUUM_DEFAULT_AGE, applied=apply, with_keys=keys)
    _end(found)


def _report_vacuumed(
    found: Sequence[Vacuumed], write_age: dt.timedelta, *, applied: bool, with_keys: bool
) -> None:
    shown = [each for each in found if _is_worth_showing(each)]
    answer.rows(
        ("what", "name", ">data files", ">size", ">other objects", ">size", ""),
        [
            (
                each.kind.replace("-", " "),
                each.name,
                answer.count(each.files),
                answer.size(each.size_bytes),
                answer.count(each.objects),
                answer.size(each.object_bytes),
                _remarks(each, write_age),
            )
            for each in shown
        ],
        empty="There is nothing unreachable.",
    )
    if with_keys:
        for key in (key for each in shown for key in each.keys):
            answer.say(key)
    files, objects = sum(each.files for each in found), sum(each.objects for each in found)
    if files or objects:
        size_bytes = sum(each.size_bytes + each.object_bytes for each in found)
        answer.say(
            f"{'Deleted' if applied else 'Would delete'} {counted(files, 'data file')} and "
            f"{counted(objects, 'other object')}, {answer.size(size_bytes)}."
        )
    purges = any(each.kind.startswith(("dropped", "unlinked")) and not each.waiting for each in found)
    _report_dry_run(bool(files or objects or purges), applied)


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


def _chosen(catalog: Catalog, what: str) -> dict[str, Any]:
    """Return what a reference means: a place, a table, else a namespace."""
    if is_location(what):
        return {"location": what}
    path = identifier(what)
    if path and catalog.table_exists(path):
        return {"table": path}
    return {"namespace": path}


def _report_dry_run(anything: bool, applied: bool) -> None:
    if anything and not applied:
        answer.say("Nothing was changed. Add --apply to do it.")


def _end(found: Sequence[Expired] | Sequence[Vacuumed]) -> None:
    """Print what could not be done on stderr, and set the exit code."""
    failed = [each for each in found if each.error is not None]
    for each in failed:
        message = " ".join(str(each.error).split())
        answer.say(f"lakelog: {each.name} was skipped: {message}", err=True)
    if failed:
        raise click.exceptions.Exit(1)


def counted(number: int, what: str) -> str:
    return f"{answer.count(number)} {what}{'' if number == 1 else 's'}"
