"""Archives of a release: the conformance kit, and the site. The same files make the same bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

_KIT_PROGRAMS = ("README.md", "run.py", "rehash.py")


def write_kit(repository: Path, target: Path) -> Path:
    """Write the conformance kit in a repository, its cases, races and runner, as the archive `target`."""
    kit = repository / "tests" / "conformance"
    files = {name: kit / name for name in _KIT_PROGRAMS}
    return write_archive("lakelog-conformance", files | _files_of(kit / "kit"), target)


def write_site(site: Path, target: Path) -> Path:
    """Write the folder of a built site as the archive `target`."""
    return write_archive("lakelog-site", _files_of(site), target)


def write_archive(folder: str, files: Mapping[str, Path], target: Path) -> Path:
    """Write files, by their names in the archive's folder, as a tar file compressed by gzip. Returns its path."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            data = files[name].read_bytes()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    target.write_bytes(gzip.compress(content.getvalue(), compresslevel=6, mtime=0))
    return target


def _files_of(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
