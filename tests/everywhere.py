"""Replacing a function wherever the catalog has imported it: modules take names of rooms when they are loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch


@contextmanager
def replaced(room: ModuleType, name: str, new: Callable[..., Any]) -> Iterator[None]:
    """Inside, `name` of a room is `new`, for all modules of the catalog that have it from there."""
    real = getattr(room, name)
    users = [
        module
        for path, module in list(sys.modules.items())
        if path.startswith("lakelog.") and vars(module).get(name) is real
    ]
    assert room in users and len(users) > 1, f"only {users} have {name}"
    with ExitStack() as patches:
        for user in users:
            patches.enter_context(patch.object(user, name, new))
        yield
