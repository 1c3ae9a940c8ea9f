"""Whatever is forged, all readers, writers and commands end, at a bounded cost, and the rest is checked: see `fuzz`.

The fuzzer is a process of its own: what it looks for takes all memory, or ends the process.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

SHORT_EVERY, SHORT_RANDOM = 14, 60
FULL_RANDOM = 600


def test_some_forgeries_end_by_an_answer_or_one_line() -> None:
    assert cases(f"--every={SHORT_EVERY}", f"--cases={SHORT_RANDOM}") > 15


@pytest.mark.slow
def test_every_forgery_ends_by_an_answer_or_one_line() -> None:
    assert cases("--cases=0") > 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_random_forgeries_end_by_an_answer_or_one_line(seed: int) -> None:
    assert cases(f"--seed={seed}", f"--cases={FULL_RANDOM}", "--only=.") > FULL_RANDOM // 2


def cases(*arguments: str) -> int:
    """Return how many cases the fuzzer has tried, all of which have held."""
    program = [sys.executable, "-m", "tests.integration.forging.fuzz", *arguments]
    process = subprocess.run(program, capture_output=True, text=True, timeout=3_000, check=False)
    text = process.stdout[-20_000:]
    assert process.returncode == 0, f"{text}{process.stderr[-2_000:]}"
    match = re.search(r"^(\d+) cases, 0 failed", text, re.MULTILINE)
    assert match is not None, text
    return int(match[1])
