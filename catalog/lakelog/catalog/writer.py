"""Who makes a commit: the few facts that each one carries, so that an audit can tell who changed what, and with what.

They stay for ever, so they are few and short, and what is not known is left out.
"""

from __future__ import annotations

import getpass
import importlib.metadata
import os
import platform
import socket
import sys
from collections.abc import Mapping
from functools import cache

from lakelog.catalog.statement_text import NORMALIZED, full, kept
from lakelog.log import Commit, Json

USER, ENGINE, CLIENT, APPLICATION, HOST = "user", "engine", "client", "application", "host"
"""Of a session. The user is whom the engine says it acts for; nothing here has been authenticated by lakelog."""

QUERY, STATEMENT = "query", "statement"
"""Of one statement: the engine's id of it, and its text (see `statement_text`)."""

FACT_LIMIT_BYTES = 256


def writer_facts(
    *,
    engine: str | None = None,
    user: str | None = None,
    application: str | None = None,
    host: str | None = None,
) -> dict[str, Json]:
    """Return the facts of a session, ours where none are given. `engine` is a name and a version: "spark 4.3.0"."""
    return _facts(
        {
            USER: _user() if user is None else user,
            ENGINE: f"python {platform.python_version()}" if engine is None else engine,
            CLIENT: _client(),
            APPLICATION: _application() if application is None else application,
            HOST: _host() if host is None else host,
        }
    )


def with_statement(
    writer: Mapping[str, Json], *, query: str | None = None, text: str | None = None, keep: str = NORMALIZED
) -> dict[str, Json]:
    """Return the facts of a session and of a statement in it; `keep` says what of its text (see `kept`)."""
    statement = kept(text, keep) if text else None
    return {**writer, **_facts({QUERY: query}), **({STATEMENT: statement} if statement else {})}


def _facts(facts: Mapping[str, str | None]) -> dict[str, Json]:
    return {name: full(value, FACT_LIMIT_BYTES) for name, value in facts.items() if value}


@cache
def _client() -> str:
    try:
        return f"lakelog {importlib.metadata.version('lakelog')}"
    except importlib.metadata.PackageNotFoundError:
        return "lakelog"


@cache
def _host() -> str:
    return socket.gethostname()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _application() -> str | None:
    """Return the name of the script, or of the module that `python -m` runs; None in an interactive session."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name).removesuffix(".__main__")
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    return name if name not in ("", "-c") else None


def author_of(commit: Commit | None) -> str:
    """Return who made a commit, in words: all that it says of its writer, empty where nothing is known."""
    return "" if commit is None else " ".join(f"{key}={value}" for key, value in commit.writer.items())
