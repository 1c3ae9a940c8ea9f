"""The wheel holds every room, and the adapter's Scala sources where the package looks for them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_texts(folder: str) -> set[str]:
    """Return the files below `folder`, relative to it, without what Python leaves behind."""
    relatives = (path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path) for path in relatives if "__pycache__" not in path.parts and path.suffix != ".jar"}


def test_the_wheel_holds_the_rooms_and_the_scala_sources(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held_names = {
            name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith(".jar")
        }
    expected = {
        f"lakelog/{name}"
        for room in ("log", "catalog", "scripts")
        for name in tracked_texts(f"{room}/lakelog")
    }
    assert held_names == expected | {f"lakelog/spark/scala/{name}" for name in tracked_texts("catalog/spark")}
    assert {
        f"lakelog/{room}/py.typed" for room in ("log", "catalog", "spark", "testing", "cli")
    } <= held_names
    assert "lakelog/__init__.py" not in held_names, "a namespace has no module of its own"
