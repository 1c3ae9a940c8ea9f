"""The program that checks histories: porcupine, in Go, built once for its sources."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent / "check"
PROGRAM = Path(__file__).parents[2] / "build/linearizability/check"
AT_ONCE = 100


@dataclass(frozen=True)
class Judgement:
    path: Path
    result: str  # Ok, Illegal, or Unknown if the search took too long
    operations: int
    open: int
    moved_back: bool
    seconds: float


def has_go() -> bool:
    return shutil.which("go") is not None


@cache
def _built() -> Path:
    """Build the program. Go fetches porcupine, in the version of go.mod."""
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(PROGRAM), "."], cwd=SOURCES, check=True)
    return PROGRAM


def check(paths: Sequence[Path], *, pictures: Path | None = None) -> Iterator[Judgement]:
    """Judge histories; each that does not fit is drawn in a folder."""
    options = [] if pictures is None else ["-pictures", str(pictures)]
    for first in range(0, len(paths), AT_ONCE):
        some_texts = [str(path) for path in paths[first : first + AT_ONCE]]
        process = subprocess.run(
            [str(_built()), *options, *some_texts], check=True, capture_output=True, text=True
        )
        for line in process.stdout.splitlines():
            judged = json.loads(line)
            yield Judgement(Path(judged.pop("file")), **judged)
