"""The command that serves the pages, and opens the browser."""

from __future__ import annotations

import secrets
import threading
import webbrowser

import click

from lakelog.cli import answer
from lakelog.cli.options import Place, changes_option, takes_place
from lakelog.cli.server.log import ServerLog
from lakelog.cli.ui.answers import PageAnswers
from lakelog.rest import serve
from lakelog.rest.serving import LOOPBACK

CHANGES_SHOWN = 300


@click.command()
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    metavar="P",
    help="Listen at this port. [default: any that is free]",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@changes_option(CHANGES_SHOWN)
@takes_place
def ui(place: Place, port: int, no_browser: bool, versions: int) -> None:
    """Look at the warehouse in a browser, until Ctrl-C.

    The pages of `lakelog view`, which follow new versions by themselves. Each table has its first rows too, and every
    page a box for queries in DuckDB's SQL, as `lakelog sql` answers them.

    Nothing is written, and the server has no other state than the warehouse. It listens on this computer alone, and
    answers only at the address that it prints. A user of this computer who has that address can read every table.
    """
    catalog = place.catalog()
    token = secrets.token_urlsafe(24)
    answers = PageAnswers(catalog, token, versions)

    def began(url: str, server: object) -> None:
        address = f"{url}/{token}/"
        if place.as_json:
            answer.in_json({"url": address})
        else:
            answer.say(address)
            answer.say("This address lets users of this computer read every table. Ctrl-C ends it.", err=True)
        if not no_browser:
            # A browser of the terminal would keep the server from answering it.
            once = url + answers.opening()
            threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()

    try:
        with ServerLog(as_json=place.as_json, quiet=True).kept():
            is_interrupted = serve(answers, LOOPBACK, port, began=began).is_interrupted
    except OSError as error:
        raise click.ClickException(
            f"cannot listen at {LOOPBACK}:{port} ({error.strerror}): choose another --port"
        ) from None
    except KeyboardInterrupt:  # before the server has begun
        is_interrupted = True
    finally:
        answers.close()
    if is_interrupted:
        answer.say("Ended.", err=True)


COMMANDS = (ui,)
