"""Folders for rows that do not fit into memory, and the folders that killed processes have left.

Rule: a folder is deleted only if its process is dead. Each has a file that its process keeps locked, and the
system releases the locks of a dead process. Another lock is held while folders are made, or checked for left
folders. So no process sees a half-made folder.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_IN_USE = ".in-use"
_FOLDER = re.compile(r"lakelog-(rows|cluster|sql)-\w+")


@dataclass(slots=True)
class LeftFolders:
    """Folders of `killed` processes, with their sizes in bytes; folders `in_use`; and `unclear` folders."""

    killed: dict[str, int] = field(default_factory=dict)
    in_use: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """Yield a new folder `lakelog-<what>-…` for rows, which is deleted at the end of the block.

    Folders that killed processes of this user have left are deleted first.
    """
    with _alone() as place:
        for left_path in _found(place).killed:
            shutil.rmtree(left_path, ignore_errors=True)
        folder = tempfile.mkdtemp(prefix=f"lakelog-{what}-")
        lock = _locked(f"{folder}/{_IN_USE}")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def left_folders(*, delete: bool = False) -> LeftFolders:
    """Return such folders of this user on this machine; `delete` those of killed processes."""
    with _alone() as place:
        folders = _found(place)
        for path in folders.killed if delete else ():
            shutil.rmtree(path, ignore_errors=True)
            if os.path.exists(path):
                folders.unclear.append(path)
        return folders


@contextmanager
def _alone() -> Iterator[str]:
    """Yield the place of such folders.

    No other process of this user makes or deletes such a folder there until the end.
    """
    place = tempfile.gettempdir()
    lock = _locked(f"{place}/.lakelog-{_user()}.lock", wait=True)
    try:
        yield place
    finally:
        if lock is not None:
            os.close(lock)


def _user() -> int:
    return os.getuid()


def _locked(path: str, *, wait: bool = False) -> int | None:
    """Return the descriptor that holds the lock of a file.

    None if there are no locks, or another process has it.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(fd)
        return None
    return fd


def _found(place: str) -> LeftFolders:
    folders = LeftFolders()
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return folders
    for entry in entries:
        if _FOLDER.fullmatch(entry.name) and _is_own(entry):
            _judge(entry.path, folders)
    return folders


def _is_own(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False  # it went in the meantime
    return stat.S_ISDIR(status.st_mode) and status.st_uid == _user()


def _judge(path: str, folders: LeftFolders) -> None:
    if not os.path.exists(f"{path}/{_IN_USE}"):
        if os.path.isdir(path):
            folders.unclear.append(path)
        return
    lock = _locked(f"{path}/{_IN_USE}")
    if lock is None:
        folders.in_use.append(path)
        return
    os.close(lock)
    folders.killed[path] = sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
