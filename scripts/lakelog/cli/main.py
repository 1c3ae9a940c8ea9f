"""The command's entry point: options before a command's name, and how errors are printed.

An error is one line on stderr that begins with `lakelog:`, or a JSON object with `--json`. The exit code is 1, or 2 if
the command line itself is wrong.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from lakelog.cli import answer
from lakelog.cli.commands import (
    GROUPS,
    MODULES,
    PROGRAM,
    command_named,
    hint_for_command,
    hint_for_option,
    summary_of,
)
from lakelog.cli.help import first_steps
from lakelog.cli.options import COMMAND_LINE, with_shared_options
from lakelog.log.errors import LakelogError

_EXTRA = re.compile(r"Got unexpected extra arguments? \((\S+)\)")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_named(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(first_steps(ctx.make_formatter()), nl=False, err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        ctx.meta[COMMAND_LINE] = args
        if args[0] not in MODULES and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command '{args[0]}'. {hint_for_command(args[0])}".strip(), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print each group of commands, with all summaries in the same column."""
        width = max(map(len, MODULES))
        for title, names in GROUPS.items():
            commands = [(name, command_named(name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), summary_of(command)) for name, command in commands if command]
                )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@with_shared_options
@click.version_option(package_name="lakelog")
def cli(**shared: Any) -> None:
    """Look after the tables of a warehouse: see, query, restore, maintain and copy them.

    A TABLE or NAMESPACE is a name in the warehouse, as a.b.t, with backticks around a part that has a dot or a slash.
    Its folder or URL may be given instead, which needs no warehouse.

    The options below go before or after the command's name.
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    with answer.errors_in_json("--json" in _options(arguments)):
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        result = cli.main(
            args=list(arguments),
            prog_name=PROGRAM,
            standalone_mode=False,
            obj=tuple(arguments),
            terminal_width=_help_width(),
        )
        return result if isinstance(result, int) else 0
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _fail(f"{_usage_message(error)}{hint}", "usage", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), "failed", 1)
    except LakelogError as error:
        return _fail(str(error), error.kind, 1, error.pointer)
    except OSError as error:
        # Python would raise once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 1  # the reader of our output closed it
        return _fail(str(error), "failed", 1)
    except (KeyboardInterrupt, click.Abort):
        return 130


def _help_width() -> int:
    """Return the width of help texts. By itself click takes 50 columns at least."""
    return max(min(shutil.get_terminal_size().columns, 80) - 2, 24)


def _options(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments before `--`, after which nothing is an option."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _usage_message(error: click.UsageError) -> str:
    extra = _EXTRA.match(error.format_message())
    if extra is not None and error.ctx is not None and error.ctx.command.name == "audit":
        return f"{error.format_message().rstrip('.')}: write --table {extra[1]}, or --namespace {extra[1]}"
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    options = [
        option
        for part in error.ctx.command.get_params(error.ctx)
        for option in (*part.opts, *part.secondary_opts)
    ]
    hint = hint_for_option(error.option_name, [option for option in options if option.startswith("--")])
    return f"{error.message} {hint}".strip()


def _fail(message: str, kind: str, exit_code: int, pointer: str = "") -> int:
    answer.complain(message, kind, exit_code, pointer)
    return exit_code


def main() -> None:
    sys.exit(run(sys.argv[1:]))
