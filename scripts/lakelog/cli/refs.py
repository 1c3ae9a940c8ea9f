"""The commands about tags and branches of a table: refs, tag, branch."""

from __future__ import annotations

import click

from lakelog.catalog import Table
from lakelog.catalog.core.state import BRANCH, MAIN, TAG
from lakelog.cli import answer
from lakelog.cli.inspection import load
from lakelog.cli.options import TABLE, Place, takes_place


@click.command()
@click.argument("table", type=TABLE)
@takes_place
def refs(place: Place, table: str) -> None:
    """List the tags and branches of TABLE.

    With the version that each began with (of main, which is the table itself, the newest), and what it has.
    """
    loaded = load(place, table, None)
    lines = [loaded.at(ref=name) for name in (MAIN, *sorted(loaded.refs))]
    if place.as_json:
        answer.in_json([_in_json(line) for line in lines])
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
    @click.command(name=kind, short_help=f"Make a {kind} of TABLE, or drop one.")
    @click.argument("table", type=TABLE)
    @click.argument("name")
    @click.option("--version", type=int, metavar="N", help="Of that version. [default: the newest]")
    @click.option("--replace", is_flag=True, help=f"In place of the {kind} NAME, if there is one.")
    @click.option("--drop", is_flag=True, help="Drop it instead.")
    @takes_place
    def command(place: Place, table: str, name: str, version: int | None, replace: bool, drop: bool) -> None:
        if drop and (replace or version is not None):
            raise click.UsageError("--drop cannot be combined with --version or --replace")
        loaded = load(place, table, None)
        if drop:
            (loaded.drop_tag if kind == TAG else loaded.drop_branch)(name)
        else:
            create = loaded.create_tag if kind == TAG else loaded.create_branch
            made = create(name, version, replace=replace).at(ref=name)
        if place.as_json:
            answer.in_json({"kind": kind, "name": name, "dropped": True} if drop else _in_json(made))
        else:
            did = (
                f"Dropped the {kind} {name}"
                if drop
                else f"Made the {kind} {name} of version {_version(made)}"
            )
            answer.say(f"{did}.")

    kept = (
        "keeps a version for as long as it is there"
        if kind == TAG
        else "is written to beside the table itself"
    )
    command.help = (
        f"Make a {kind} of TABLE, or drop one.\n\nA {kind} {kept}, and expiry and vacuum keep what it needs."
    )
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
