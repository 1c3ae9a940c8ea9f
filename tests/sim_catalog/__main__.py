"""Run seeds of the simulation of the catalog: scripts/sim --catalog --seed N | --seeds A-B | --minutes M."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext

from tests.sim_catalog.late import ABOUT, MUTATIONS
from tests.sim_catalog.simulation import APART, KINDS, simulate_catalog


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/sim --catalog",
        description="Simulate clients of a whole catalog under faults, crashes and broken clocks, from seeds.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, metavar="N", help="run one seed and show what happened in it")
    which.add_argument("--seeds", metavar="A-B", help="run the seeds from A to B")
    which.add_argument("--minutes", type=float, metavar="M", help="run seeds for so long, from --from on")
    parser.add_argument("--from", type=int, default=1, metavar="N", dest="first")
    parser.add_argument(
        "--about", choices=sorted({*KINDS, *APART}), help="only the seeds that are about this"
    )
    parser.add_argument(
        "--mutation", choices=sorted(MUTATIONS), help="with one protection removed, and what it is about"
    )
    parser.add_argument("--proposals", action="store_true", help="clients propose changes to each other")
    arguments = parser.parse_args()
    seeds: Iterable[int] = itertools.count(arguments.first)
    if arguments.seed is not None:
        seeds = (arguments.seed,)
    elif arguments.seeds is not None:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
    kind = arguments.about if arguments.about in APART else None
    if arguments.about is not None and kind is None:
        seeds = (seed for seed in seeds if KINDS[seed % len(KINDS)] == arguments.about)
    with MUTATIONS.get(arguments.mutation, nullcontext)():
        about = ABOUT.get(arguments.mutation, frozenset())
        return 1 if run(seeds, arguments.minutes, kind, about, proposals=arguments.proposals) else 0


def run(
    seeds: Iterable[int], minutes: float | None, kind: str | None, about: frozenset[str], *, proposals: bool
) -> int:
    """Run seeds, report on them, and return how many fail."""
    number, failed, versions, steps, begun = 0, 0, 0, 0, time.perf_counter()
    totals: dict[str, int] = {}
    for seed in seeds:
        if minutes is not None and time.perf_counter() - begun > 60 * minutes:
            break
        outcome = simulate_catalog(seed, kind, about, proposals=proposals)
        number += 1
        versions += outcome.versions
        steps += outcome.steps
        for what, count in outcome.counters.items():
            totals[what] = totals.get(what, 0) + count
        if outcome.failures:
            failed += 1
            of = (f" --about {kind}" if kind else "") + (" --proposals" if proposals else "")
            print(f"seed {seed} fails; replay it with: scripts/sim --catalog --seed {seed}{of}")
            for failure in outcome.failures[:5]:
                print(f"    {failure}", flush=True)
    took = time.perf_counter() - begun
    print(f"catalog: {number} seeds, {versions} versions, {steps} steps, {took:.1f} s: {failed} fail")
    for what, count in sorted(totals.items()):
        print(f"    {count:8} {what}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
