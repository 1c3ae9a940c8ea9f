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


def _report(clustering: ExpectedClustering, as_json: bool) -> None:
    if as_json:
        answer.in_json({"dry_run": True, **answer.facts(clustering)})
        return
    if not clustering.read_files:
        answer.say("No file needs to be rewritten.")
    else:
        answer.say(
            f"Of {counted(clustering.files, 'file')} ({answer.size(clustering.size_bytes)}), "
            f"{answer.count(len(clustering.paths))} "
            f"would be rewritten, in about {counted(clustering.commits, 'commit')}: "
            f"{answer.size(clustering.read_bytes)} read, "
            f"about {answer.size(clustering.written_bytes)} written to {counted(clustering.written_files, 'file')}."
        )
    if clustering.new_boundaries:
        answer.say(
            f"First, {', '.join(clustering.columns)} of some files would be read, for new boundaries of the curve."
        )
    lines = [(key.column, key.before, key.after) for key in clustering.keys]
    if len(lines) > 1:
        lines.append(("all of them", clustering.overlap_before, clustering.overlap_after))
    answer.rows(
        ("a value of", ">files read now", ">then"),
        [(name, f"{files_now:.1f}", f"{files_then:.1f}") for name, files_now, files_then in lines],
        empty="",
    )
    if clustering.is_left:
        answer.say("More would be left then: the limit comes before the end.")
    if clustering.read_files:
        say_nothing_changed()
