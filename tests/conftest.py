"""What all suites share: the short and the full form of slow suites, and a loud word about tests that could not run or
took too long."""

from __future__ import annotations

import os
from importlib import metadata

import pytest
from hypothesis import HealthCheck, settings
from tests import durations, jvm

# Speed says nothing about correctness, and a machine that is busy is no reason to fail. The short form draws the same
# examples every time, so that it fails for a change of the code only; the full form looks for new ones.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("short", parent=_PATIENT, derandomize=True, database=None)
settings.register_profile("full", parent=_PATIENT, max_examples=500)


def pytest_configure(config: pytest.Config) -> None:
    os.environ.update(jvm.environment())
    settings.load_profile("full" if config.getoption("--full") else "short")
    config.pluginmanager.register(durations.Durations(config))
    # Python's side of these Sparks leaves the socket of each result to the garbage collector.
    if tuple(int(number) for number in metadata.version("pyspark").split(".")[:2]) < (4, 2):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the slow suites in their full form too")
    durations.add_option(parser)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    config.stash[_LEFT_OUT] = len(slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] = reasons.get(reason.removeprefix("Skipped: "), 0) + 1
    if reasons:
        terminalreporter.section("THESE TESTS COULD NOT RUN HERE", sep="!", red=True, bold=True)
        for reason, count in sorted(reasons.items()):
            terminalreporter.write_line(f"{count:5}  {reason}", red=True)
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} slow tests left out: scripts/test --full PART runs them")


_LEFT_OUT = pytest.StashKey[int]()
