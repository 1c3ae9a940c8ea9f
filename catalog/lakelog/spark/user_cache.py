"""The user's cache: files that are made or fetched once, and run later.

Rule: code that is run from there belongs to the user, or to root. Any client that may write to the folder
could put anything there, under the right name. So a folder or file is refused by name if it belongs to
another user, or if others may write to it. It must not know the files' contents.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lakelog.log.errors import InvalidInput

_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user_cache() -> Path:
    """Return the folder of lakelog's cache, which need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakelog"


def made(folder: Path) -> Path:
    """Return a folder of the cache.

    Makes it for the user alone if it is missing. Raises InvalidInput as `own`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return own(folder)


def own(path: Path) -> Path:
    """Return a file or folder of the cache.

    Raises InvalidInput if it or its folder belongs to another user, or if others may write there.
    """
    for checked_path in (path, path.parent):
        if not checked_path.exists() or not hasattr(os, "getuid"):
            continue
        status = checked_path.stat()
        if status.st_uid not in (0, os.getuid()):
            raise InvalidInput(
                f"{checked_path} belongs to the user {_name_of(status.st_uid)}, and lakelog would run what that "
                "user put there: set XDG_CACHE_HOME to a folder of your own"
            )
        if status.st_mode & _FOR_OTHERS and not status.st_mode & stat.S_ISVTX:
            raise InvalidInput(
                f"other users may write to {checked_path} (its mode is {stat.S_IMODE(status.st_mode):o}), and lakelog "
                f"would run what they put there: look at what it holds, then run chmod go-w {checked_path}"
            )
    return path


def _name_of(user: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):
        return str(user)
