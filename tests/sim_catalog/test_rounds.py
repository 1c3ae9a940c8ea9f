"""Rounds of all worlds: what goes wrong in them is on the page, with the command that repeats it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.sim.simulation import Outcome
from tests.sim.stores import CRASHES, FAULTS_BY_KIND, LOST
from tests.sim_catalog.rounds import Rounds, SimulatedWorld, all_worlds, main, page


def well(seed: int) -> Outcome:
    return Outcome(seed, (), 10, 1, {}, {CRASHES: 2, LOST: seed})


def wrong(seed: int) -> Outcome:
    return Outcome(seed, ("row 7\nis lost",) if seed == 2 else (), 10, 1, {}, {})


def dead(seed: int) -> Outcome:
    os._exit(3 if seed == 3 else 0)


def interrupted(rounds: Rounds) -> None:
    if rounds.rounds:
        raise KeyboardInterrupt


def rounds_of(*runs: Callable[[int], Outcome], seeds: int = 3) -> Rounds:
    worlds = {run.__name__: SimulatedWorld(run, f"scripts/{run.__name__}") for run in runs}
    return Rounds(worlds, 1, lambda seed: seed <= seeds)


def test_totals_and_failures_of_each_world_are_on_the_page() -> None:
    rounds = rounds_of(well, wrong)
    rounds.run(2, lambda: None)
    text = page(rounds, 61.0, 2)
    assert "6 seeds, from 1 to about 3 in each of 2 worlds, on 2 cores in 0:01:01" in text
    cells = {line.split(" | ")[0]: line.strip(" |").split(" | ") for line in text.splitlines() if "|" in line}
    counts = dict(zip(cells["| world"], cells["| well"], strict=True))
    assert counts == {"world": "well", "seeds": "3", "versions": "30", "failures": "0"} | dict.fromkeys(
        FAULTS_BY_KIND, "0"
    ) | {CRASHES: "6", LOST: "6"}
    assert cells["| wrong"][-1] == "1"
    assert "`scripts/wrong --seed 2`\n\n    row 7\n    is lost\n" in text


def test_a_process_that_ends_within_a_seed_is_a_failure_and_the_next_round_begins() -> None:
    rounds = rounds_of(dead, seeds=4)
    rounds.run(2, lambda: None)
    assert rounds.rounds == 4
    assert dict(rounds.failures) == {
        f"scripts/dead --seed {seed}": f"its process ended with {3 if seed == 3 else 0}"
        for seed in range(1, 5)
    }


def test_an_interrupt_ends_rounds_that_would_go_on_for_ever_and_leaves_their_totals() -> None:
    rounds = rounds_of(well, seeds=10**9)
    with pytest.raises(KeyboardInterrupt):
        rounds.run(2, partial(interrupted, rounds))
    assert rounds.totals["well"].seeds >= 1
    assert "well" in page(rounds, 1.0, 2)


def test_seeds_that_are_given_are_run_in_the_worlds_that_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "deep/page.md"
    chosen_texts = ["--world", "ledgers", "--world", "crowd, proposals"]
    assert main(["--rounds", "2", "--from", "7", "--page", str(where), *chosen_texts]) == 0
    text = where.read_text(encoding="utf-8")
    assert "4 seeds, from 7 to about 8 in each of 2 worlds" in text and "## Failures" not in text
    assert "2 rounds, 4 seeds, 0 failures" in capsys.readouterr().err


def test_every_world_has_the_command_that_repeats_its_seed() -> None:
    worlds = all_worlds()
    assert {"log", "ledgers", "proposals", "names", "rows, proposals"} <= worlds.keys()
    assert worlds["rows, proposals"].command == "scripts/sim --catalog --about rows --proposals"
    run = worlds["rows, proposals"].run
    assert isinstance(run, partial) and run.keywords == {"kind": "rows", "proposals": True}
