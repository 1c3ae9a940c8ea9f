"""The kind of a folder's file system, because tests on a single host show nothing about other hosts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lakelog.log.doctor.report import CheckVerdict, StoreCheck, unknown

SHARED = (
    *("nfs", "cifs", "smb", "9p", "virtiofs", "vboxsf", "fuse", "ceph", "lustre", "gluster"),
    *("gpfs", "afs", "ocfs2", "gfs2", "beegfs", "wekafs"),
)
"""Prefixes of the types of file systems that hosts share, or that a program provides."""
IN_MEMORY = ("tmpfs", "ramfs")
MOUNTS = Path("/proc/self/mounts")


def file_system(path: str, mounts: Path = MOUNTS) -> StoreCheck:
    """Return the check of a folder, which need not exist. `mounts` has a line for each mount, in Linux's format."""
    name, path, longest_mount = "file system", os.path.realpath(path), ("", "")
    try:
        text = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return unknown(name, "this system does not say which it is")
    for line in text.splitlines():
        _, mount_path, kind, *_ = line.split(" ")
        mount_path = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), mount_path).rstrip("/")
        # Of two mounts at the same place, the later hides the other.
        if f"{path}/".startswith(f"{mount_path}/") and len(mount_path) >= len(longest_mount[0]):
            longest_mount = mount_path, kind
    kind = longest_mount[1]
    if not kind:
        return unknown(name, "this system does not say which it is")
    if kind.startswith(SHARED):
        return unknown(
            name,
            f"{kind}: all was tried from this host only",
            "use it from several hosts only where hard links are exclusive for all of them, as NFS has it",
        )
    if kind in IN_MEMORY:
        return StoreCheck(
            name=name,
            verdict=CheckVerdict.NOTE,
            what=f"{kind}: all is gone once this machine is off",
            todo="use a disk for what is to be kept",
        )
    return StoreCheck(name=name, verdict=CheckVerdict.GOOD, what=kind)
