"""Run seeds of the simulation of the catalog: scripts/sim --catalog --seed N | --seeds A-B."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext

from tests.sim_catalog.late import ABOUT, MUTATIONS
from tests.sim_catalog.simulation import APART, KINDS, simulate_catalog


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/sim --catalog",
        description="Simulate clients of a whole catalog under faults, crashes and broken clocks, from seeds.",
    )
    mutually_exclusive_group = parser.add_mutually_exclusive_group(required=True)
    mutually_exclusive_group.add_argument(
        "--seed", type=int, metavar="N", help="run one seed and show what happened in it"
    )
    mutually_exclusive_group.add_argument("--seeds", metavar="A-B", help="run the seeds from A to B")
    parser.add_argument(
        "--about", choices=sorted({*KINDS, *APART}), help="what they are about, whatever the seed says"
    )
    parser.add_argument(
        "--mutation", choices=sorted(MUTATIONS), help="with one protection removed, and what it is about"
    )
    parser.add_argument("--proposals", action="store_true", help="clients propose changes to each other")
    arguments = parser.parse_args()
    seeds: Sequence[int] = (arguments.seed,)
    if arguments.seeds is not None:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
    with MUTATIONS.get(arguments.mutation, nullcontext)():
        about = ABOUT.get(arguments.mutation, frozenset())
        return 1 if run(seeds, arguments.about, about, proposals=arguments.proposals) else 0


def run(seeds: Sequence[int], kind: str | None, about: frozenset[str], *, proposals: bool) -> int:
    """Run seeds, report on them, and return how many fail."""
    failed_number, versions, steps, start_time = 0, 0, 0, time.perf_counter()
    totals: dict[str, int] = {}
    for seed in seeds:
        outcome = simulate_catalog(seed, kind, about, proposals=proposals)
        versions += outcome.versions
        steps += outcome.steps
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
        if outcome.failures:
            failed_number += 1
            of = (f" --about {kind}" if kind else "") + (" --proposals" if proposals else "")
            print(f"seed {seed} fails; replay it with: scripts/sim --catalog --seed {seed}{of}")
            for failure in outcome.failures[:5]:
                print(f"    {failure}", flush=True)
    took = time.perf_counter() - start_time
    print(
        f"catalog: {len(seeds)} seeds, {versions} versions, {steps} steps, {took:.1f} s: {failed_number} fail"
    )
    for label, count in sorted(totals.items()):
        print(f"    {count:8} {label}")
    return failed_number


if __name__ == "__main__":
    sys.exit(main())
