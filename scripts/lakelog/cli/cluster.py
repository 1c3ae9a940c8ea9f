"""The command that puts a table's rows in the order of its clustering."""

from __future__ import annotations

from typing import Any

from lakelog.catalog.keeping.upkeep import ExpectedClustering
from lakelog.catalog.operations.maintaining import CLUSTER
from lakelog.cli import answer
from lakelog.cli.inspection import details_of, load
from lakelog.cli.operations import command_of, counted, say_nothing_changed
from lakelog.cli.options import Place
from lakelog.cli.progress import Progress
from lakelog.log import noting_commits


@command_of(CLUSTER)
def cluster(place: Place, table: str, dry_run: bool, **how: Any) -> None:
    old_table = load(place, table, None)
    if dry_run:
        _report(old_table.expected_of_clustering(how.pop("where"), **how), place.as_json)
        return
    with Progress() as progress, noting_commits() as noted_commits:
        new_table = old_table.cluster(how.pop("where"), **how, progress=progress)
    own = details_of(noted_commits, old_table, new_table)
    added_files, removed_files, size_bytes = (
        sum(int(details.get(name, 0)) for details in own)
        for name in ("added_files", "removed_files", "added_bytes")
    )
    if place.as_json:
        facts = {
            "dry_run": False,
            "version": new_table.version,
            "added_files": added_files,
            "removed_files": removed_files,
            "added_bytes": size_bytes,
        }
        answer.in_json(facts)
    elif not own:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(
            f"{counted(removed_files, 'file')} became {counted(added_files, 'file')}, in version {new_table.version}."
        )


COMMANDS = (cluster,)


def _report(found: ExpectedClustering, as_json: bool) -> None:
    if as_json:
        answer.in_json({"dry_run": True, **answer.facts(found)})
        return
    if not found.read_files:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(
            f"Of {counted(found.files, 'file')} ({answer.size(found.size_bytes)}), {answer.count(len(found.paths))} "
            f"would be rewritten, in about {counted(found.commits, 'commit')}: {answer.size(found.read_bytes)} read, "
            f"about {answer.size(found.written_bytes)} written to {counted(found.written_files, 'file')}."
        )
    if found.new_boundaries:
        answer.say(
            f"First, {', '.join(found.columns)} of some files would be read, for new boundaries of the curve."
        )
    lines = [(key.column, key.before, key.after) for key in found.keys]
    if len(lines) > 1:
        lines.append(("all of them", found.overlap_before, found.overlap_after))
    answer.rows(
        ("a value of", ">files read now", ">then"),
        [(name, f"{files_now:.1f}", f"{files_then:.1f}") for name, files_now, files_then in lines],
        empty="",
    )
    if found.is_left:
        answer.say("More would be left then: the limit comes before the end.")
    if found.read_files:
        say_nothing_changed()
