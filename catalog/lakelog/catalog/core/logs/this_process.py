"""The facts of this process as a writer of commits: user, host, program and versions.

The only module of the catalog that asks the system for them; the facts themselves belong to `state.writer`.
"""

from __future__ import annotations

import getpass
import os
import platform
import socket
import sys
from functools import cache

from lakelog.catalog.core.state.writer import APPLICATION, CLIENT, ENGINE, HOST, USER, bounded_facts
from lakelog.log import Json


def writer_facts(
    *,
    engine: str | None = None,
    user: str | None = None,
    application: str | None = None,
    host: str | None = None,
) -> dict[str, Json]:
    """Return the facts of a session, by default this process's.

    `engine` is a name and a version: "spark 4.3.0".
    """
    return bounded_facts(
        {
            USER: _user() if user is None else user,
            ENGINE: f"python {platform.python_version()}" if engine is None else engine,
            CLIENT: _client(),
            APPLICATION: _application() if application is None else application,
            HOST: _host() if host is None else host,
        }
    )


@cache
def _client() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"lakelog {version('lakelog')}"
    except PackageNotFoundError:
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
    """Return the name of the script, or of the module that `python -m` runs; None if interactive."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name).removesuffix(".__main__")
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    return name if name not in ("", "-c") else None
