"""`lakelog explain`: what a kind of error means and what to do, without a network."""

from __future__ import annotations

from difflib import get_close_matches

import click

from lakelog.cli import answer
from lakelog.cli.explanations import EXPLANATIONS


@click.command()
@click.argument("kind", required=False)
def explain(kind: str | None) -> None:
    """Say what to do about a KIND of error, as it stands behind an error's text; without one, list all.

    The page of errors on the site has the same, with all messages of the kind.
    """
    if kind is None:
        for each in sorted(EXPLANATIONS):
            answer.say(each)
        return
    if kind not in EXPLANATIONS:
        near = get_close_matches(kind, EXPLANATIONS, n=1)
        meant = f"; the nearest is {near[0]}" if near else ""
        raise click.UsageError(f"There is no kind of error '{kind}'{meant}: `lakelog explain` lists all")
    answer.say(f"{kind}: {EXPLANATIONS[kind].strip()}")


COMMANDS = (explain,)
