"""Packages that exist only if a user installed them."""

from __future__ import annotations

import importlib
from typing import Any

from lakelog.log.errors import Unsupported, install_command


def package(name: str, what: str, library: str, extra: str | None = None) -> Any:
    """Return the module `name` of a library. Raises Unsupported, with the install command, if it is
    missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        raise Unsupported(
            f"{what} needs the package {name.split('.')[0]}, which is not installed: {install_command(library, extra)}"
        ) from None
