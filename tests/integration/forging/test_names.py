"""No stored name leads a read, a write or a delete out of the folder that it may name: see `attacks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.forging.attacks import ATTACKS, held, takes_bad_keys, token_that_leads_elsewhere


@pytest.mark.parametrize("name", ATTACKS)
def test_a_name_that_leads_elsewhere_is_never_followed(name: str) -> None:
    assert held(name) == []


def test_no_store_takes_a_key_that_leads_out_of_it(tmp_path: Path) -> None:
    assert takes_bad_keys(str(tmp_path)) + takes_bad_keys("memory://bad-keys") == []
    assert takes_bad_keys("s3://no-such-bucket/prefix") == []  # nothing is asked of the network


def test_ids_of_a_caller_lead_nowhere() -> None:
    assert token_that_leads_elsewhere() == []


def test_nothing_rests_on_asserts() -> None:
    assert_without_asserts(every=3)


@pytest.mark.slow
def test_no_attack_is_held_off_by_asserts_alone() -> None:
    assert_without_asserts(every=1)


def assert_without_asserts(every: int) -> None:
    """With -O there are none, neither in lakelog nor in a test: so the attacks are a program that says what it saw."""
    program = [sys.executable, "-O", "-m", "tests.integration.forging.attacks", str(every)]
    process = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "0 not held off, without asserts" in process.stdout
