"""The command that prints what a shell needs to complete lakelog's commands, options and names of tables."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "lakelog"
VARIABLE = "_LAKELOG_COMPLETE"
"""Set by the shell when it wants completions: click looks for a variable of this name."""


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script by which SHELL completes commands, options and tables.

    \b
      bash   eval "$(lakelog completion bash)"       in ~/.bashrc
      zsh    eval "$(lakelog completion zsh)"        in ~/.zshrc, after compinit
      fish   lakelog completion fish | source        in ~/.config/fish/config.fish

    Names of tables come from the warehouse in LAKELOG_WAREHOUSE, or of --warehouse where that stands before. Bash is
    offered no names that need quotes.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    root = context.find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())


COMMANDS = (completion,)
