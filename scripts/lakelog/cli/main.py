"""The command's entry point: its subcommands, and how errors are printed.

An error is one line on stderr that begins with `lakelog:`; exit code 1, or 2 when the command line itself is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from lakelog.cli import answer, completion
from lakelog.log.errors import LakelogError

_COMMANDS = {
    "inspection": ("ls", "show", "history", "cat", "files", "inspect"),
    "contents": ("head", "diff", "restore"),
    "sql": ("sql",),
    "view": ("view",),
    "health": ("health",),
    "audit": ("audit",),
    "refs": ("refs", "tag", "branch"),
    "clones": ("clone", "materialize", "release-clone"),
    "backups": (
        "backup",
        "backups",
        "verify-backup",
        "delete-backup",
        "restore-backup",
        "copy",
        "finish-copy",
    ),
    "dropped": ("dropped", "undrop"),
    "maintenance": ("compact", "expire", "vacuum"),
    "maintain": ("maintain",),
    "forget": ("forget",),
    "cluster": ("cluster",),
    "doctor": ("doctor",),
    "fsck": ("fsck",),
    "iceberg": ("export", "publish", "serve", "import", "adopt"),
    "spark": ("spark-conf",),
    "completion": ("completion",),
    "explain": ("explain",),
}
"""The commands of each module. It is loaded when one of them is asked for: others need much that it does not."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for names in _COMMANDS.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for module, names in _COMMANDS.items():
            if cmd_name in names:
                commands: tuple[click.Command, ...] = import_module(f"lakelog.cli.{module}").COMMANDS
                return next(each for each in commands if each.name == cmd_name)
        return None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lakelog")
def cli() -> None:
    """Inspect a lakelog warehouse: what it holds and what happened to it, from its logs alone.

    A TABLE or NAMESPACE is a name in the warehouse (`a.b.t`, with backticks around a part that holds a dot or a
    slash), or the folder or URL where it lies, which needs no warehouse.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        result = cli.main(args=list(arguments), prog_name=completion.PROGRAM, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _fail(f"{error.format_message()}{hint}", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), 1)
    except LakelogError as error:
        return _fail(f"{error} {error.pointer}", 1)
    except BrokenPipeError:
        # The reader of our output closed it; Python would raise once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, click.Abort):
        return 130


def _fail(message: str, code: int) -> int:
    answer.say("lakelog: " + " ".join(message.split()), err=True)
    return code


def main() -> None:
    sys.exit(run(sys.argv[1:]))
