"""The commands that help people: help, explain, completion; and the first steps, for a call without a command."""

from __future__ import annotations

from difflib import get_close_matches

import click
from click.shell_completion import get_completion_class

from lakelog.cli import answer
from lakelog.cli.commands import MODULES, PROGRAM, VARIABLE, command_named, hint_for_command
from lakelog.cli.explanations import EXPLANATIONS
from lakelog.cli.options import Place, takes_place

FIRST_STEPS = (
    (f"{PROGRAM} ls --warehouse URL", "List what a warehouse has."),
    (f"{PROGRAM} show shop.orders", "Show the columns, size and properties of a table."),
    (f"{PROGRAM} head shop.orders", "Show some rows."),
    (f"{PROGRAM} history shop.orders", "Show who changed the table, when and how."),
    (f"{PROGRAM} health", "Say which tables need something, and the command for it."),
)


def first_steps(formatter: click.HelpFormatter) -> str:
    """Return the text that is shown if no command is given."""
    formatter.write_text(f"{PROGRAM} looks after the tables of a warehouse. Five things to do first:")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_dl(FIRST_STEPS, col_max=formatter.width // 2)
    formatter.write_paragraph()
    formatter.write_text(
        "The URL is a folder, s3://bucket/folder, gs://bucket/folder or abfss://container@account…/folder. The "
        "variable LAKELOG_WAREHOUSE can have it, too. "
        f"`{PROGRAM} help` lists all {len(MODULES)} commands, and `{PROGRAM} help COMMAND` explains one."
    )
    return formatter.getvalue()


@click.command("help")
@click.argument("name", metavar="[COMMAND]", required=False)
@click.pass_context
def help_command(context: click.Context, name: str | None) -> None:
    """Show the help of lakelog, or of one command."""
    root = context.find_root()
    if name is None:
        click.echo(root.get_help())
        return
    command = command_named(name)
    if command is None:
        raise click.UsageError(f"No such command '{name}'. {hint_for_command(name)}".strip(), root)
    click.echo(command.get_help(click.Context(command, info_name=name, parent=root)))


def _kind_of_class(name: str) -> str | None:
    """Return the kind of errors of a class, which may be named with its module."""
    import lakelog.catalog.errors  # noqa: F401, PLC0415  it takes long, and has the classes that are looked for
    from lakelog.log.errors import LakelogError

    classes = [LakelogError]
    for error_class in classes:
        classes += error_class.__subclasses__()
    name = name.rpartition(".")[2].lower()
    return next((each.kind for each in classes if each.__name__.lower() == name), None)


@click.command()
@click.argument("kind", required=False)
@takes_place
def explain(place: Place, kind: str | None) -> None:
    """Say what to do about a kind of error.

    The KIND is printed behind the text of many errors, and with --json for all of them. It may be the name of an
    error's class in Python, such as CommitConflict. Without a KIND, all kinds are listed. The page of errors on the
    site says the same, with all messages of each kind.
    """
    if kind is not None and kind not in EXPLANATIONS:
        kind = _kind_of_class(kind) or kind
    if kind is not None and kind not in EXPLANATIONS:
        near = get_close_matches(kind, EXPLANATIONS, n=1)
        hint = f"; the nearest is {near[0]}" if near else ""
        raise click.UsageError(f"There is no kind of error '{kind}'{hint}: `lakelog explain` lists all")
    kinds = sorted(EXPLANATIONS) if kind is None else [kind]
    if place.as_json:
        answer.list_in_json({"kind": name, "text": EXPLANATIONS[name].strip()} for name in kinds)
    elif kind is None:
        for name in kinds:
            answer.say(name)
    else:
        answer.say(f"{kind}: {EXPLANATIONS[kind].strip()}")


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in your shell.

    It completes names of commands, options and tables.

    \b
      bash   eval "$(lakelog completion bash)"       in ~/.bashrc
      zsh    eval "$(lakelog completion zsh)"        in ~/.zshrc, after compinit
      fish   lakelog completion fish | source        in ~/.config/fish/config.fish

    Names of tables come from the warehouse in LAKELOG_WAREHOUSE, or from --warehouse if it was typed before. Bash gets
    no names that need quotes.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    root = context.find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())


COMMANDS = (explain, completion, help_command)
