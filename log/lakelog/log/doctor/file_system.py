"""Which kind of file system a folder is on: what is tried from one host says nothing of others."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lakelog.log.doctor.report import Check, Verdict, unknown

SHARED = (
    *("nfs", "cifs", "smb", "9p", "virtiofs", "vboxsf", "fuse", "ceph", "lustre", "gluster"),
    *("gpfs", "afs", "ocfs2", "gfs2", "beegfs", "wekafs"),
)
"""How the types of file systems begin that hosts share, or that a program makes up."""
IN_MEMORY = ("tmpfs", "ramfs")
MOUNTS = Path("/proc/self/mounts")


def file_system(path: str, mounts: Path = MOUNTS) -> Check:
    """Return the check of a folder, which need not exist. `mounts` has a line for each mount, as Linux shows them."""
    name, path, found = "file system", os.path.realpath(path), ("", "")
    try:
        text = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return unknown(name, "this system does not say which it is")
    for line in text.splitlines():
        _, where, kind, *_ = line.split(" ")
        where = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), where).rstrip("/")
        # Of two mounts at one place, the later one hides the other.
        if f"{path}/".startswith(f"{where}/") and len(where) >= len(found[0]):
            found = where, kind
    kind = found[1]
    if not kind:
        return unknown(name, "this system does not say which it is")
    if kind.startswith(SHARED):
        return unknown(
            name,
            f"{kind}: all was tried from this host only",
            "use it from several hosts only where hard links are exclusive for all of them, as NFS has it",
        )
    if kind in IN_MEMORY:
        return Check(
            name=name,
            verdict=Verdict.NOTE,
            what=f"{kind}: all is gone once this machine is off",
            todo="use a disk for what is to be kept",
        )
    return Check(name=name, verdict=Verdict.GOOD, what=kind)
