"""Writers that never stop get similar shares of a log, in virtual time, and no writer waits for long."""

from __future__ import annotations

import pytest
from tests.sim.timed import FOLDER_US, S3_US, run

LONGEST_BY_MEDIAN = 10


@pytest.mark.parametrize("processes", [2, 8])
def test_on_a_folder_no_writer_starves(processes: int) -> None:
    measures = run(1, processes, 1, FOLDER_US, seconds=0.5)
    assert not measures.failures
    assert measures.least_share > 0.5
    assert measures.longest_by_median < LONGEST_BY_MEDIAN


def test_on_s3_writers_get_the_same_though_one_may_win_for_a_while() -> None:
    """Who has won needs no read before the next put, and the others do: some wait for much longer than the median."""
    measures = run(1, 8, 1, S3_US, seconds=60)
    assert not measures.failures
    assert measures.least_share > 0.5
    assert measures.a_second > 16


def test_writers_that_pause_on_s3_wait_for_no_long() -> None:
    measures = run(1, 4, 1, S3_US, seconds=60, pause_s=0.3)
    assert not measures.failures
    assert measures.least_share > 0.5
    assert measures.longest_by_median < LONGEST_BY_MEDIAN


def test_threads_make_as_many_versions_as_one_and_share_them() -> None:
    alone, shared_measures = run(1, 1, 1, S3_US, seconds=6), run(1, 1, 20, S3_US, seconds=6)
    assert not alone.failures and not shared_measures.failures
    assert shared_measures.versions == pytest.approx(alone.versions, rel=0.1)
    assert shared_measures.a_second > 8 * alone.a_second
    assert shared_measures.requests < shared_measures.changes  # half of these are of the loads at the start
    assert shared_measures.longest_by_median < 2.5


@pytest.mark.parametrize("processes", [2, 4, 8])
@pytest.mark.parametrize("files", [False, True])
def test_with_proposals_none_that_never_stops_waits_for_long_on_s3(processes: int, files: bool) -> None:
    """From the first moment on, in a log that knows nothing of proposals yet."""
    measures = run(
        1, processes, 1, S3_US, seconds={2: 12, 4: 6, 8: 3}[processes], proposals=True, files=files
    )
    assert not measures.failures
    assert measures.least_share > 0.5
    assert measures.longest_by_median < LONGEST_BY_MEDIAN
