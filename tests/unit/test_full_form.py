"""The full form of `scripts/test` leaves out no slow test."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = ": pytest "
MARK = "mark." + "slow"


def parts() -> dict[str, list[str]]:
    """Return the arguments of pytest of each part, as `scripts/test --full` lists them."""
    listed = subprocess.run(
        [ROOT / "scripts/test", "--full"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(LINE) for line in listed.splitlines() if LINE in line]
    return {head.split()[0]: shlex.split(arguments) for head, arguments in lines}


def runs(arguments: list[str], file: str) -> bool:
    """Say whether pytest, with these arguments, collects a file of tests."""
    ignored = [word.removeprefix("--ignore=") for word in arguments if word.startswith("--ignore=")]
    return _is_below(file, arguments) and not _is_below(file, ignored)


def _is_below(file: str, folders: list[str]) -> bool:
    return any(file == folder or file.startswith(f"{folder}/") for folder in folders)


def test_each_file_with_slow_tests_is_in_a_part() -> None:
    slow = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("test_*.py")
        if MARK in file.read_text(encoding="utf-8")
    ]
    full = [words for words in parts().values() if "--full" in words and "not slow" not in " ".join(words)]
    assert len(slow) > 40 and full
    assert [file for file in slow if not any(runs(arguments, file) for arguments in full)] == []


def test_a_file_outside_of_all_parts_is_noticed() -> None:
    arguments = parts()["corruptions"]
    assert runs(arguments, "tests/integration/fsck/test_corruption.py")
    assert not runs(arguments, "tests/integration/iceberg/test_lives.py")
    assert not runs(arguments, "tests/integrations.py")
