"""The command that draws a table, a namespace or a warehouse as one HTML file, and the graph of a history."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakelog.catalog.choices import CHANGES_MAX
from lakelog.cli import answer
from lakelog.cli.options import REFERENCE, Count, Place, is_location, takes_place
from lakelog.cli.progress import Progress

if TYPE_CHECKING:
    from lakelog.catalog.looking.pictures import Sheet


@click.command()
@click.argument("name", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write it there. [default: NAME.html]",
)
@click.option("--open", "opens", is_flag=True, help="Open it in this computer's browser.")
@click.option(
    "--versions",
    type=Count(),
    default=CHANGES_MAX,
    show_default=True,
    metavar="N",
    help="Read the newest N changes.",
)
@takes_place
def view(place: Place, name: str, output: str | None, opens: bool, versions: int) -> None:
    """Draw TABLE or NAMESPACE as one HTML file, to look at.

    Without either, the whole warehouse. A table's page has the time line with branches, tags, transactions and rebases,
    who wrote when and how much, what changed of columns and properties between any two versions, how its files lie, and
    its health with the commands that mend it; a warehouse's has the sizes of all tables, the busiest, and what was
    dropped.

    The file needs nothing else and makes no request. It has names, comments, statements without their literals, and the
    bounds of values by which rows are clustered, but no rows; what looks like a secret is masked. With --json, the same
    facts. Exit code 4 where the log is damaged: the page then has what can be read.
    """
    from lakelog.catalog.keeping.upkeep import size_text

    sheet = picture(place, name, versions)
    if place.as_json:
        answer.in_json(sheet.to_dict())
    else:
        page = sheet.to_html().encode()
        path = _written(page, output, name, opens)
        answer.say(f"{path} ({size_text(len(page))})")
        if opens and not webbrowser.open(path.absolute().as_uri()):
            raise click.ClickException(f"there is no browser to open {path} with: open it by hand")
    if any(advice.level == "damage" for advice in sheet.facts.health):
        raise click.exceptions.Exit(4)


COMMANDS = (view,)


def picture(place: Place, name: str, versions: int) -> Sheet:
    """Return the picture of what a command names."""
    catalog = place.catalog_for(name)
    what: dict[str, Any] = {"location": name} if is_location(name) else {"name": name or None}
    with Progress() as progress:
        return catalog.picture(**what, versions=versions, progress=progress)


def _written(page: bytes, output: str | None, name: str, opens: bool) -> Path:
    if output is not None:
        path = Path(output)
    elif opens:
        path = Path(tempfile.mkdtemp(prefix="lakelog-view-")) / "view.html"
    else:
        kept = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name.strip("/"))
        path = Path(f"{kept.lstrip('.')[-100:] or 'warehouse'}.html")
    try:
        path.write_bytes(page)
    except OSError as error:
        raise click.ClickException(
            f"cannot write {path} ({error.strerror}): give another file by -o"
        ) from None
    return path
