"""How long tests take: kept as files, one for each suite of `scripts/test`, and held against a budget for each test.

A test over its budget is reported and does not fail, since machines differ. Only its own part is counted: what it
shares with others, as the start of a Spark, is not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

BUDGETS_S = {
    "tests/conformance": 4,
    "tests/format": 5,
    "tests/integration": 15,
    "tests/model": 15,
    "tests/processes": 40,
    "tests/property": 20,
    "tests/sim": 15,
    "tests/sim_catalog": 30,
    "tests/spark": 20,
    "tests/unit": 5,
}
"""What one test of a folder may take on two cores, in seconds. Full forms have none."""

KEPT_FROM_S = 0.5
"""Shorter ones are left out of the files, which would else change with every test."""


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--keep-durations",
        metavar="FILE",
        help=f"write the tests that took {KEPT_FROM_S:g} s and more into FILE, the longest first",
    )


class Durations:
    """Listens to a run of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self._file = config.getoption("--keep-durations")
        self._full = config.getoption("--full")
        self._took_s: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._took_s[report.nodeid.split(" <- ")[0]] = report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        longest = sorted(self._took_s.items(), key=lambda test: -test[1])
        if self._file:
            lines = [f"{took:6.1f} {test}\n" for test, took in longest if took >= KEPT_FROM_S]
            Path(self._file).parent.mkdir(parents=True, exist_ok=True)
            Path(self._file).write_text("".join(lines), encoding="utf-8")
        over = [] if self._full else [(test, took) for test, took in longest if took > budget_s(test)]
        if over:
            terminalreporter.section(
                "THESE TESTS TOOK LONGER THAN THEIR BUDGET", sep="!", yellow=True, bold=True
            )
            for test, took in over:
                terminalreporter.write_line(f"{took:6.1f} s of {budget_s(test)} s  {test}", yellow=True)
            terminalreporter.write_line("tests/README.md says what to do about them", yellow=True)


def budget_s(test: str) -> int:
    """Return the budget of a test by its id; a folder without one is a mistake."""
    return BUDGETS_S["/".join(test.split("/")[:2])]
