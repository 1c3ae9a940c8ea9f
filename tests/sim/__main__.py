"""Run seeds of the simulation: python -m tests.sim --seed N | --seeds A-B [--mutation NAME]."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext

from tests.sim.mutations import MUTATIONS
from tests.sim.simulation import simulate


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/sim", description="Simulate the log under faults, from seeds."
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, metavar="N", help="run one seed and show what happened in it")
    which.add_argument("--seeds", metavar="A-B", help="run the seeds from A to B")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="with one protection removed")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        seeds = range(arguments.seed, arguments.seed + 1)
    else:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last) + 1)
    failed, versions, steps, begun = [], 0, 0, time.perf_counter()
    totals: dict[str, int] = {}
    with MUTATIONS[arguments.mutation]() if arguments.mutation else nullcontext():
        for seed in seeds:
            outcome = simulate(seed)
            versions += outcome.versions
            steps += outcome.steps
            for what, count in outcome.counters.items():
                totals[what] = totals.get(what, 0) + count
            if outcome.failures:
                failed.append(seed)
                print(f"seed {seed} fails; replay it with: scripts/sim --seed {seed}")
                for failure in outcome.failures[:5]:
                    print(f"    {failure}")
    took = time.perf_counter() - begun
    print(f"{len(seeds)} seeds, {versions} versions, {steps} steps, {took:.1f} s: {len(failed)} fail")
    for what, count in sorted(totals.items()):
        print(f"    {count:8} {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
