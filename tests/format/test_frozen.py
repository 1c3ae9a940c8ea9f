"""What a release has written keeps its bytes: the golden files and the warehouses of the conformance kit.

`python -m tests.format.test_frozen VERSION` lists the data of a release once, in `frozen/VERSION.json`: a
SHA-256 of each folder. Folders that are new belong to the next release.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).parent / "frozen"


def folders() -> list[Path]:
    """Return the folders with data: golden logs, golden tables, and the kit's cases with their answers."""
    golden = [
        path for path in (ROOT / "tests/format/catalog").iterdir() if path.is_dir() and path.name[0] != "_"
    ]
    kit = [path for path in (ROOT / "tests/conformance/kit/cases").iterdir() if path.is_dir()]
    return sorted([ROOT / "tests/format/log-1", *golden, *kit])


def hash_of(folder: Path) -> str:
    """Return a hash of the names and bytes of all files below a folder."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()


def listed(version: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FROZEN / f"{version}.json").read_text(encoding="utf-8"))
    return found


VERSIONS = sorted(path.stem for path in FROZEN.glob("*.json"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_data_of_a_release_stays_as_it_was_written(version: str) -> None:
    changed = [name for name, hash in listed(version).items() if hash_of(ROOT / name) != hash]
    assert not changed, f"{version} has written these otherwise, and they are its own: restore them"


def test_there_is_a_list_for_each_release_and_it_is_not_empty() -> None:
    page = (ROOT / "docs/releases.md").read_text(encoding="utf-8")
    released = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| 0.")]
    assert released and sorted(released) == VERSIONS
    assert all(len(listed(version)) > 30 for version in VERSIONS)


def main() -> None:
    FROZEN.mkdir(exist_ok=True)
    hashes = {path.relative_to(ROOT).as_posix(): hash_of(path) for path in folders()}
    (FROZEN / f"{sys.argv[1]}.json").write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
