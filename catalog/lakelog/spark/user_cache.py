"""The user's cache: files that are made or fetched once, and run later.

Rule: what is run from there is the user's own, or root's. A client that may write to the folder could have put anything
there, under the right name: so a folder or file of another user's, or one that others may write to, is refused by name.
It must not know what the files are.
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
    """Return a folder of the cache, made for the user alone where it is missing. InvalidInput as for `own`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return own(folder)


def own(path: Path) -> Path:
    """Return a file or folder of the cache. InvalidInput where it or its folder is another user's, or others may write
    there."""
    for each in (path, path.parent):
        if not each.exists() or not hasattr(os, "getuid"):
            continue
        found = each.stat()
        if found.st_uid not in (0, os.getuid()):
            raise InvalidInput(
                f"{each} belongs to the user {_name_of(found.st_uid)}, and lakelog would run what that user put there: "
                "set XDG_CACHE_HOME to a folder of your own"
            )
        if found.st_mode & _FOR_OTHERS and not found.st_mode & stat.S_ISVTX:
            raise InvalidInput(
                f"other users may write to {each} (its mode is {stat.S_IMODE(found.st_mode):o}), and lakelog would run "
                f"what they put there: look at what it holds, then run chmod go-w {each}"
            )
    return path


def _name_of(user: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):
        return str(user)
