"""Packages that are there only where a user installed them."""

from __future__ import annotations

import importlib
from typing import Any

from lakelog.log.errors import Unsupported


def package(name: str, what: str, install: str) -> Any:
    """Return the module `name`. Unsupported, naming the package and what installs it, where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        raise Unsupported(
            f"{what} needs the package {name.split('.')[0]}, which is not installed: pip install '{install}'"
        ) from None
