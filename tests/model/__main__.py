"""Explore all scenarios in full, then the model without each rule. Names of scenarios or rules choose some of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.model.explore import clean, published_badly, removed
from tests.model.published import PUBLISHED
from tests.model.removals import REMOVALS
from tests.model.scenarios import SCENARIOS
from tests.model.search import Result


def main(chosen: list[str]) -> int:
    tasks: list[tuple[str, Callable[..., Result], object, bool]] = []
    for n, make in enumerate(SCENARIOS):
        if not chosen or make.__name__ in chosen:
            tasks.append((make.__name__, clean, n, False))
    for rule in REMOVALS:
        if not chosen or rule.name in chosen:
            tasks.append((f"without {rule.name}", removed, rule, True))
    for n, bad in enumerate(PUBLISHED):
        if not chosen or bad.scenario.__name__ in chosen:
            tasks.append((f"published: {bad.what}", published_badly, n, True))
    wrong = 0
    with ProcessPoolExecutor(2) as pool:
        futures = [
            pool.submit(run, what, True) if run is clean else pool.submit(run, what)
            for _, run, what, _ in tasks
        ]
        for (name, _, _, is_bad), future in zip(tasks, futures, strict=True):
            result = future.result()
            wrong += is_bad != (result.violation is not None) or not (is_bad or result.finished)
            report(name, result, bool(chosen) or not is_bad)
    print(f"{len(tasks)} searches, {wrong} wrong")
    return 1 if wrong else 0


def report(name: str, result: Result, with_trace: bool) -> None:
    outcome = "clean" if result.violation is None else f"found: {result.violation.sentence}"
    print(
        f"{name:42} {result.worlds:>9,} worlds {result.steps:>10,} steps  depth {result.depth:>3}"
        f" {result.seconds:7.1f} s  {outcome}",
        flush=True,
    )
    if result.violation is not None and with_trace:
        print("\n".join(["", *result.trace, result.violation.detail, ""]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
