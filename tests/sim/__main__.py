"""Run seeds of the simulation: python -m tests.sim --seed N | --seeds A-B [--world NAME] [--mutation NAME]."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from tests.sim.features import simulate_features
from tests.sim.ledger_mutations import LEDGER_MUTATIONS
from tests.sim.ledger_simulation import simulate_ledgers
from tests.sim.mutations import MUTATIONS
from tests.sim.proposal_mutations import PROPOSAL_MUTATIONS
from tests.sim.proposing import simulate_proposals
from tests.sim.simulation import Outcome, simulate

WORLDS: dict[str, Callable[[int], Outcome]] = {
    "log": simulate,
    "ledgers": simulate_ledgers,
    "proposals": simulate_proposals,
    "features": simulate_features,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/sim",
        description="Simulate one log, and transactions between several, under faults, from seeds.",
        epilog="scripts/sim --catalog simulates whole catalogs; scripts/sim --hours N runs all worlds in turns, and "
        "writes a page. Each has a --help of its own.",
    )
    mutually_exclusive_group = parser.add_mutually_exclusive_group(required=True)
    mutually_exclusive_group.add_argument(
        "--seed", type=int, metavar="N", help="run one seed and show what happened in it"
    )
    mutually_exclusive_group.add_argument("--seeds", metavar="A-B", help="run the seeds from A to B")
    parser.add_argument("--world", choices=sorted(WORLDS), help="only this one: one log, or several ledgers")
    parser.add_argument(
        "--mutation",
        choices=sorted({*MUTATIONS, *LEDGER_MUTATIONS, *PROPOSAL_MUTATIONS}),
        help="with one protection removed",
    )
    arguments = parser.parse_args()
    if arguments.seed is not None:
        seeds = range(arguments.seed, arguments.seed + 1)
    else:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last) + 1)
    worlds = [arguments.world] if arguments.world else list(WORLDS)
    mutation = (MUTATIONS | LEDGER_MUTATIONS | PROPOSAL_MUTATIONS).get(arguments.mutation, nullcontext)
    with mutation():
        failed_numbers = [run(world, seeds) for world in worlds]
    return 1 if any(failed_numbers) else 0


def run(world: str, seeds: Sequence[int]) -> int:
    """Run the seeds of one world, report on them, and return how many fail."""
    failed_number, versions, steps, start_time = 0, 0, 0, time.perf_counter()
    totals: dict[str, int] = {}
    for seed in seeds:
        outcome = WORLDS[world](seed)
        versions += outcome.versions
        steps += outcome.steps
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
        if outcome.failures:
            failed_number += 1
            print(f"seed {seed} fails; replay it with: scripts/sim --world {world} --seed {seed}")
            for failure in outcome.failures[:5]:
                print(f"    {failure}")
    took = time.perf_counter() - start_time
    print(
        f"{world}: {len(seeds)} seeds, {versions} versions, {steps} steps, {took:.1f} s: {failed_number} fail"
    )
    for label, count in sorted(totals.items()):
        print(f"    {count:8} {label}")
    return failed_number


if __name__ == "__main__":
    sys.exit(main())
