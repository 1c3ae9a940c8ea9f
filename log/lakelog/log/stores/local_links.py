"""Links in a folder that is a store: which of them are followed where something is written or deleted.

A client that may write a folder of the warehouse can make a link there, say of its `data` to that of another table, and
a vacuum of its own table with the rights of all would delete the other's files. So a link below the root is followed
only where it belongs to this user, to root, or to the owner of the root. What is behind another one is not listed, and
is refused to writes and deletions. Reading of one object follows all links.
"""

import os
import stat
from collections.abc import Collection


class ForeignLink(OSError):
    """A folder that is written to, or deleted in, is behind a link of another user."""


def open_folder(root: str, folder: str) -> int:
    """Return a descriptor of a folder below `root`, "" for that itself. ForeignLink, OSError."""
    fd = os.open(root or "/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        trusted = trusted_users(fd)
        for part in folder.split("/") if folder else ():
            found = os.stat(part, dir_fd=fd, follow_symlinks=False)
            is_link = stat.S_ISLNK(found.st_mode)
            if is_link and found.st_uid not in trusted:
                raise ForeignLink(f"{part} is a link of the user {found.st_uid}")
            follow = 0 if is_link else os.O_NOFOLLOW
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | follow, dir_fd=fd)
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        raise
    return fd


def trusted_users(root: str | int) -> set[int]:
    """Return the users whose links are followed."""
    return {0, os.getuid(), os.stat(root or "/").st_uid}


def is_folder(entry: "os.DirEntry[str]", trusted: Collection[int]) -> bool:
    """Return whether what was found in a folder is one, or a link to one that is followed."""
    return entry.is_dir() and (not entry.is_symlink() or entry.stat(follow_symlinks=False).st_uid in trusted)


def check_folder(root: str, folder: str) -> None:
    """Raise ForeignLink for a folder behind a link of another user; one that does not exist yet is none."""
    try:
        os.close(open_folder(root, folder))
    except ForeignLink:
        raise
    except OSError:
        return  # the request itself says what is wrong


def open_object(path: str) -> int:
    """Return a descriptor of a file to be read. FileNotFoundError for what is none: a pipe has no end, a device any
    content."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(path)
    return fd
