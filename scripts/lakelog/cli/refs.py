"""The commands about tags and branches of a table: refs, tag, branch."""

from __future__ import annotations

import click

from lakelog.catalog import Table
from lakelog.catalog.engine import BRANCH, MAIN, TAG
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import TABLE, Place, takes_place, version_option


@click.command()
@click.argument("table", type=TABLE)
@takes_place
def refs(place: Place, table: str) -> None:
    """List the tags and branches of a table.

    Each has the version that it began with, its rows, files and size. The branch main is the table itself, with its
    newest version.
    """
    loaded_table = load(place, table, None)
    lines = [loaded_table.at(ref=name) for name in (MAIN, *sorted(loaded_table.refs))]
    if place.as_json:
        answer.list_in_json(map(_in_json, lines))
    else:
        answer.rows(
            ("kind", "name", ">version", ">rows", ">files", ">size"),
            [
                (
                    _kind(line),
                    line.ref,
                    str(_version(line)),
                    answer.count(line.row_count),
                    answer.count(line.file_count),
                    answer.size(line.size_bytes),
                )
                for line in lines
            ],
            empty="",
        )


def _command(kind: str) -> click.Command:
    @click.command(name=kind)
    @click.argument("table", type=TABLE)
    @click.argument("name")
    @version_option("As it was at that version. [default: the newest]")
    @click.option("--replace", is_flag=True, help=f"Replace the {kind} NAME, if there is one.")
    @click.option("--drop", is_flag=True, help=f"Drop the {kind} instead.")
    @takes_place
    def command(place: Place, table: str, name: str, version: int | None, replace: bool, drop: bool) -> None:
        if drop and (replace or version is not None):
            raise click.UsageError("--drop cannot be combined with --version or --replace")
        loaded_table = load(place, table, None)
        if drop:
            (loaded_table.drop_tag if kind == TAG else loaded_table.drop_branch)(name)
        else:
            create = loaded_table.create_tag if kind == TAG else loaded_table.create_branch
            line = create(name, version, replace=replace).at(ref=name)
        if place.as_json:
            answer.in_json({"kind": kind, "name": name, "dropped": True} if drop else _in_json(line))
        else:
            did = (
                f"Dropped the {kind} {name}"
                if drop
                else f"Made the {kind} {name} of version {_version(line)}"
            )
            answer.say(f"{did}.")

    purpose = "keeps a version until it is dropped" if kind == TAG else "takes writes beside the table itself"
    summary = f"Make a {kind} of a table, or drop it."
    command.help = f"{summary}\n\nA {kind} {purpose}. Expire and vacuum keep the files that it needs."
    return command


COMMANDS = (refs, _command(TAG), _command(BRANCH))


def _kind(line: Table) -> str:
    return BRANCH if line.ref == MAIN else line.refs[line.ref].kind


def _version(line: Table) -> int:
    return line.version if line.ref == MAIN else line.refs[line.ref].version


def _in_json(line: Table) -> dict[str, str | int]:
    return {
        "kind": _kind(line),
        "name": line.ref,
        "version": _version(line),
        "rows": line.row_count,
        "files": line.file_count,
        "size_bytes": line.size_bytes,
    }
