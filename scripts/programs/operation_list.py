"""The site's page of the operations that are a command and a procedure. It is made from their declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from lakelog.catalog.operations.declare import DeclaredOperation, OperationEffect
from lakelog.catalog.operations.every import EVERY
from lakelog.cli.main import cli

HEAD = """\
# Commands and procedures

What can be done on a command line and in Spark has the same parameters in both. This page is made from their
declarations. All else is on the pages of [the command](command.md) and of [procedures](sql/procedures.md).

**What deletes reports first.** It acts with `--apply`, in Spark with `dry_run => false`. All else acts at once. What
rewrites or brings in many files can report first, by `--dry-run`, in Spark by `dry_run => true`. Each answer says which
of the two it is: in words, by `dry_run` of `--json`, and by the column `dry_run` of a CALL.
"""


def page() -> str:
    """Return the page, with operations grouped by their effect on data."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for effect in OperationEffect:
        yield f"{effect.value[:-1]}:\n"
        for operation in (candidate for candidate in EVERY if candidate.effect is effect):
            yield f"- [{operation.command_name}](#{operation.command_name})"
        yield ""
    for operation in sorted(EVERY, key=lambda candidate: candidate.command_name):
        yield from _about(operation)


def _about(operation: DeclaredOperation) -> Iterator[str]:
    command = cli.get_command(click.Context(cli), operation.command_name)
    assert command is not None, "each operation is a command"
    usage = " ".join(command.collect_usage_pieces(click.Context(command)))
    parameters = ", ".join(parameter.name for parameter in operation.parameters)
    yield f"\n## {operation.command_name}\n\n{operation.summary} {operation.effect.value}\n"
    yield f"    lakelog {operation.command_name} {usage}\n    CALL lake.system.{operation.name}({parameters})\n"
    options = {option.name: "/".join((*option.opts, *option.secondary_opts)) for option in command.params}
    yield from _table(
        ("parameter", "option", "type", "default", "what"),
        (
            (
                f"`{parameter.name}`",
                f"`{options[parameter.name]}`" if options.get(parameter.name, "").startswith("--") else "",
                f"`{parameter.type}`",
                "" if parameter.default is None else f"`{parameter.default}`",
                parameter.text,
            )
            for parameter in operation.parameters
        ),
    )
    yield from _table(
        ("column of the answer", "type", "what"),
        ((f"`{column.name}`", f"`{column.type}`", column.comment) for column in operation.columns),
    )


def _table(names: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |\n|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
