"""Writers in processes of their own, killed at any moment: on a folder, and on a real S3 server behind a faulty proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.processes.driver import Settings, run

SECONDS = 20.0


def hold(settings: Settings, folder: Path) -> None:
    """Run, tell what happened, and fail on whatever was found."""
    print(f"seed {settings.seed}")
    report = run(settings, folder / "run")
    print("\n".join(report.lines()))
    assert not report.wrong, report.wrong[:5]
    assert report.figures["writers killed"] > 0
    assert report.figures["requests done"] > 10 * report.figures["writers killed"]


def test_killed_writers_lose_and_double_nothing_in_a_folder(tmp_path: Path) -> None:
    hold(Settings(seed=1, seconds=SECONDS), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_killed_writers_lose_and_double_nothing_in_a_folder_for_minutes(tmp_path: Path, seed: int) -> None:
    hold(Settings(seed=seed, seconds=180.0), tmp_path)
