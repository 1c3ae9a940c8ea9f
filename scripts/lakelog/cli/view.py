"""The command that draws a table, a namespace or a warehouse as a single HTML file, or as a folder of linked files."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Collection
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakelog.catalog.choices import CHANGES_MAX
from lakelog.cli import answer
from lakelog.cli.options import REFERENCE, Place, changes_option, is_location, takes_place
from lakelog.cli.progress import Progress

if TYPE_CHECKING:
    from lakelog.catalog.looking.pictures import Picture, Sheet


@click.command()
@click.argument("name", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write it there. [default: NAME.html]",
)
@click.option(
    "--folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Write this page and a page of each table into a folder, with links between them.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in this computer's browser.")
@changes_option(CHANGES_MAX)
@takes_place
def view(place: Place, name: str, output: str | None, folder: str | None, opens: bool, versions: int) -> None:
    """Draw TABLE or NAMESPACE as a single HTML file.

    Without either, it draws the whole warehouse. A table's page has a time line of branches, tags, transactions and
    rebases, and shows who wrote when and how much. It compares the columns and properties of any two versions. It shows
    how files lie, and the table's health with the commands that mend it. A warehouse's page has the sizes of all
    tables, the busiest tables, and dropped objects. With --folder, each table gets a page too: open index.html there.

    The file needs nothing else and makes no request. It has names, comments, statements without their literals, and the
    bounds of values by which rows are clustered, but no rows. Apparent secrets are masked. --json prints the same
    facts. The exit code is 4 if the log is damaged. The page then has the readable part.
    """
    if folder is not None and (output is not None or place.as_json):
        raise click.UsageError("--folder excludes --output and --json")
    sheet = picture(place, name, versions)
    if folder is not None:
        if sheet.facts.kind == "table":
            raise click.UsageError(f"{name} is a table, which has a single page: give --output")
        path, is_damaged = _write_folder(place, sheet.facts, Path(folder), versions)
    else:
        is_damaged = _is_damaged(sheet.facts)
        if place.as_json:
            answer.in_json(sheet.to_dict())
        else:
            path = _output(output, name, opens)
            _write(path, sheet.to_html())
    if opens and not place.as_json and not webbrowser.open(path.absolute().as_uri()):
        raise click.ClickException(f"there is no browser to open {path} with: open it by hand")
    if is_damaged:
        raise click.exceptions.Exit(4)


COMMANDS = (view,)


def picture(place: Place, name: str, versions: int) -> Sheet:
    """Return the picture of the object that a command names."""
    catalog = place.catalog_for(name)
    target: dict[str, Any] = {"location": name} if is_location(name) else {"name": name or None}
    with Progress() as progress:
        return catalog.picture(**target, versions=versions, progress=progress)


def _write_folder(place: Place, whole: Picture, folder: Path, versions: int) -> tuple[Path, bool]:
    """Write a page for each table of a namespace, then the namespace's page.

    Return the path of the namespace's page, and whether there is damage.
    """
    from lakelog.catalog import NoSuchTable
    from lakelog.catalog.looking.pictures import PageContext, page_of

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot make {folder} ({error.strerror}): choose another place") from None
    index = folder / "index.html"
    back = PageContext(above=((whole.name, index.name),))
    pages: dict[str, str] = {}
    is_damaged = _is_damaged(whole)
    for log in whole.logs:
        if log.kind != "table" or log.dropped:
            continue
        try:
            table = picture(place, log.location if is_location(log.name) else log.name, versions).facts
        except NoSuchTable:
            continue  # The table was dropped or renamed since.
        pages[log.name] = _file_name(log.name, {index.name, *pages.values()})
        is_damaged |= _is_damaged(table)
        _write(folder / pages[log.name], page_of(table, back))
    _write(index, page_of(whole, PageContext(pages=pages)))
    return index, is_damaged


def _is_damaged(facts: Picture) -> bool:
    return any(advice.level == "damage" for advice in facts.health)


def _output(output: str | None, name: str, opens: bool) -> Path:
    if output is not None:
        return Path(output)
    if opens:
        return Path(tempfile.mkdtemp(prefix="lakelog-view-")) / "view.html"
    return Path(_file_name(name.strip("/")))


def _file_name(name: str, taken: Collection[str] = ()) -> str:
    """Return the name of a file for a page. It differs from the `taken` names on any file system."""
    letters = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name)
    stem = letters.lstrip(".").encode()[-200:].decode(errors="ignore") or "warehouse"
    lower = {taken_name.lower() for taken_name in taken}
    stems = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(f"{candidate}.html" for candidate in stems if f"{candidate}.html".lower() not in lower)


def _write(path: Path, page: str) -> None:
    """Write a page, and print its path and size."""
    from lakelog.catalog.keeping.upkeep import size_text

    data = page.encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"cannot write {path} ({error.strerror}): choose another place") from None
    answer.say(f"{path} ({size_text(len(data))})")
