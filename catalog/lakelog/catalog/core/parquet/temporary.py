"""Folders for rows that do not fit into memory, and what processes that were killed have left in theirs.

Rule: a folder goes only if its process is dead. Each has a file that its process keeps locked, and the system releases
the locks of a dead process. Folders are made, and taken for left over, under one more lock: so none is met half made.
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
    """Folders of processes that were `killed`, with their sizes in bytes; those `in_use`; and those of which neither is
    known, `unclear`."""

    killed: dict[str, int] = field(default_factory=dict)
    in_use: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """Yield a new folder `lakelog-<what>-…` for rows, which goes at the end of the block. Those that killed processes
    of this user have left go first."""
    with _alone() as place:
        for left in _found(place).killed:
            shutil.rmtree(left, ignore_errors=True)
        folder = tempfile.mkdtemp(prefix=f"lakelog-{what}-")
        held = _locked(f"{folder}/{_IN_USE}")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


def left_folders(*, delete: bool = False) -> LeftFolders:
    """Return what there is of such folders of this user, on this machine; `delete` those of killed processes."""
    with _alone() as place:
        found = _found(place)
        for path in found.killed if delete else ():
            shutil.rmtree(path, ignore_errors=True)
            if os.path.exists(path):
                found.unclear.append(path)
        return found


@contextmanager
def _alone() -> Iterator[str]:
    """Yield the place of such folders, in which no other process of this user makes or deletes one meanwhile."""
    place = tempfile.gettempdir()
    held = _locked(f"{place}/.lakelog-{_user()}.lock", wait=True)
    try:
        yield place
    finally:
        if held is not None:
            os.close(held)


def _user() -> int:
    return os.getuid()


def _locked(path: str, *, wait: bool = False) -> int | None:
    """Return the descriptor that holds the lock of a file, None where there are no locks, or another has it."""
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
    found = LeftFolders()
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return found
    for entry in entries:
        if _FOLDER.fullmatch(entry.name) and _is_own(entry):
            _judge(entry.path, found)
    return found


def _is_own(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False  # it went meanwhile
    return stat.S_ISDIR(status.st_mode) and status.st_uid == _user()


def _judge(path: str, found: LeftFolders) -> None:
    if not os.path.exists(f"{path}/{_IN_USE}"):
        if os.path.isdir(path):
            found.unclear.append(path)
        return
    held = _locked(f"{path}/{_IN_USE}")
    if held is None:
        found.in_use.append(path)
        return
    os.close(held)
    found.killed[path] = sum(each.stat().st_size for each in Path(path).rglob("*") if each.is_file())
