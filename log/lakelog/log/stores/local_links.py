"""Links in a folder that is a store, and which of them writes and deletions follow.

A client that may write a folder of the warehouse can make a link there, such as from its `data` to another
table's. A vacuum of its own table with full rights would then delete the other table's files. So a link below
the root is followed only if its owner is this user, root, or the owner of the root. Objects behind other
links are not listed, and are refused to writes and deletions. Reading a single object follows all links.
"""

import os
import stat
from collections.abc import Collection


class ForeignLink(OSError):
    """The folder of a write or deletion is behind another user's link."""


def open_folder(root: str, folder: str) -> int:
    """Return a descriptor of a folder below `root`; "" is the root itself. Raises ForeignLink or OSError."""
    fd = os.open(root or "/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        trusted_uids = trusted_users(fd)
        for part in folder.split("/") if folder else ():
            link_stat = os.stat(part, dir_fd=fd, follow_symlinks=False)
            is_link = stat.S_ISLNK(link_stat.st_mode)
            if is_link and link_stat.st_uid not in trusted_uids:
                raise ForeignLink(f"{part} is a link of the user {link_stat.st_uid}")
            follow = 0 if is_link else os.O_NOFOLLOW
            child_fd = os.open(part, os.O_RDONLY | os.O_DIRECTORY | follow, dir_fd=fd)
            os.close(fd)
            fd = child_fd
    except BaseException:
        os.close(fd)
        raise
    return fd


def trusted_users(root: str | int) -> set[int]:
    """Return the ids of users whose links are followed."""
    return {0, os.getuid(), os.stat(root or "/").st_uid}


def is_folder(entry: "os.DirEntry[str]", trusted: Collection[int]) -> bool:
    """Return whether a folder's entry is a folder, or a link to a folder that is followed."""
    return entry.is_dir() and (not entry.is_symlink() or entry.stat(follow_symlinks=False).st_uid in trusted)


def check_folder(root: str, folder: str) -> None:
    """Raise ForeignLink for a folder behind another user's link. A missing folder is fine."""
    try:
        os.close(open_folder(root, folder))
    except ForeignLink:
        raise
    except OSError:
        return  # the request itself reports the problem


def open_object(path: str) -> int:
    """Return a descriptor of a file for reading.

    Raises FileNotFoundError if it is not a regular file: a pipe has no end, and a device any content.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(path)
    return fd
