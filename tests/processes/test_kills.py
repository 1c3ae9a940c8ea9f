"""Writers in processes of their own, killed at any moment: on a folder, and on an S3 server behind a faulty proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import cloud_servers
from tests.processes.driver import S3, Report, Settings, run
from tests.processes.mutations import MUTATIONS

from lakelog.testing.versitygw import INSTALL, find_versitygw

SECONDS = 10.0
SPARK_SECONDS = 20.0  # a Spark writer that was killed needs a third of it to start again


def hold(settings: Settings, folder: Path) -> Report:
    """Run, report what happened, and fail on whatever was found."""
    print(f"seed {settings.seed}")
    report = run(settings, folder / "run")
    print("\n".join(report.lines()))
    assert not report.wrong, report.wrong[:5]
    assert report.figures["writers killed"] > 0
    assert report.figures["requests done"] > report.figures["writers killed"]
    return report


def test_killed_writers_and_cleaners_lose_and_double_nothing_in_a_folder(tmp_path: Path) -> None:
    report = hold(Settings(seed=1, seconds=SECONDS, cleaning=True), tmp_path)
    assert report.figures["commits expired"] > 0


def test_killed_proposers_and_combiners_lose_and_double_nothing(tmp_path: Path) -> None:
    hold(Settings(seed=1, seconds=SECONDS, cleaning=True, proposals=True), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_killed_proposers_and_combiners_lose_and_double_nothing_for_minutes(
    tmp_path: Path, seed: int
) -> None:
    hold(Settings(seed=seed, seconds=180.0, cleaning=True, proposals=True, python_writers=5), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("cleaning", [False, True])
@pytest.mark.parametrize("seed", range(2, 5))
def test_killed_writers_lose_and_double_nothing_in_a_folder_for_minutes(
    tmp_path: Path, seed: int, cleaning: bool
) -> None:
    hold(Settings(seed=seed, seconds=180.0, cleaning=cleaning), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_a_protection_that_is_removed_is_missed(tmp_path: Path, mutation: str) -> None:
    for seed in range(5):
        settings = Settings(seed=seed, seconds=60.0, requests=2_500, mutation=mutation)
        if run(settings, tmp_path / f"run-{seed}").wrong:
            return
    pytest.fail(f"no check noticed {mutation}")


def needs_versitygw() -> None:
    if find_versitygw() is None:
        pytest.skip(
            f"no versitygw on this machine, so no writer was killed on a real S3 server; install it: {INSTALL}"
        )


@pytest.mark.s3
@pytest.mark.parametrize("cloud", cloud_servers.NAMES)
def test_killed_writers_and_spoilt_answers_lose_and_double_nothing_on_other_clouds(
    tmp_path: Path, cloud: str
) -> None:
    hold(Settings(seed=1, seconds=SECONDS / 2, store=cloud), tmp_path)


@pytest.mark.s3
def test_killed_writers_and_spoilt_answers_lose_and_double_nothing_on_s3(tmp_path: Path) -> None:
    needs_versitygw()
    hold(Settings(seed=1, seconds=SECONDS, store=S3), tmp_path)


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 5))
def test_killed_writers_and_spoilt_answers_lose_and_double_nothing_on_s3_for_minutes(
    tmp_path: Path, seed: int
) -> None:
    needs_versitygw()
    hold(Settings(seed=seed, seconds=180.0, store=S3, intensity=2.0, cleaning=True), tmp_path)


@pytest.mark.adapter
def test_killed_spark_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    report = hold(Settings(seed=1, seconds=SPARK_SECONDS, writers="both", python_writers=2), tmp_path)
    assert report.figures["Python sides of Spark killed"] + report.figures["Spark writers killed"] > 0


@pytest.mark.adapter
@pytest.mark.s3
@pytest.mark.slow
def test_killed_spark_writers_lose_and_double_nothing_on_s3(tmp_path: Path) -> None:
    needs_versitygw()
    hold(Settings(seed=1, seconds=180.0, store=S3, writers="both"), tmp_path)
