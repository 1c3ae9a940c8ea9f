"""The seeds that show removed protections: the search for each begins with one that was seen to show it.

`python -m tests.sim.late` looks for them again, and names those that have to be changed here. A test that has an old
one still holds, after a longer search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tests.sim.ledger_mutations import LEDGER_MUTATIONS
from tests.sim.ledger_simulation import simulate_ledgers
from tests.sim.mutations import MUTATIONS
from tests.sim.proposal_mutations import PROPOSAL_MUTATIONS
from tests.sim.proposing import simulate_proposals
from tests.sim.simulation import simulate

SEEDS = 500
"""So many seeds are tried from 1 on, and as many from the one that is known."""


def first_failing(
    mutation: Callable[[], AbstractContextManager[Any]], simulate: Callable[[int], Any], seeds: Iterable[int]
) -> int | None:
    """Return the first seed whose run fails without a protection. None if no run does."""
    with mutation():
        return next((seed for seed in seeds if simulate(seed).failures), None)


def changed_seeds(
    mutations: Iterable[str], noticing: Callable[[str], int | None], late: Mapping[str, int]
) -> Iterator[str]:
    """Yield lines for the table `late`: seeds that are others now, and those that take long to find."""
    for mutation in sorted(mutations):
        start_time = time.process_time()
        seed = noticing(mutation)
        if late.get(mutation, seed) != seed or time.process_time() - start_time > 0.5:
            yield f'"{mutation}": {seed},'


@dataclass(frozen=True)
class RemovedProtections:
    """The mutations of a world, its simulation of a seed, and the seeds that are known to fail."""

    mutations: Mapping[str, Callable[[], AbstractContextManager[Any]]]
    simulate: Callable[[int], Any]
    late: Mapping[str, int]

    def noticing(self, mutation: str) -> int | None:
        """Return a seed that fails without a protection."""
        late = self.late.get(mutation, 1)
        seeds = (*range(late, late + SEEDS), *range(1, min(late, SEEDS + 1)))
        return first_failing(self.mutations[mutation], self.simulate, seeds)


WORLDS = {
    "log": RemovedProtections(
        MUTATIONS,
        simulate,
        {
            "a-failed-retry-is-taken-for-a-first-try": 47,
            "a-refusal-is-final-before-what-it-was-judged-on-is-put": 410,
            "absence-proves-failure": 270,
            "bases-use-what-was-given-up": 36,
            "changes-of-a-version-do-not-see-one-another": 45,
            "lost-answer-is-failure": 20,
            "snapshots-of-older-bases-are-read": 28,
        },
    ),
    "ledgers": RemovedProtections(
        LEDGER_MUTATIONS,
        simulate_ledgers,
        {"attempts-share-their-sidecars": 89, "readers-who-have-to-wait-do-not": 412},
    ),
    "proposals": RemovedProtections(
        PROPOSAL_MUTATIONS,
        simulate_proposals,
        {
            "a-combiner-forgets-what-was-refused": 87,
            "a-combiner-keeps-the-file-of-other-rows": 28,
            "a-combiner-removes-a-file-that-a-version-may-have": 818,
            "a-failure-does-not-know-of-the-proposal": 21,
            "a-fence-is-not-for-proposals": 74,
            "a-fence-is-not-for-the-file-of-a-combiner": 66,
        },
    ),
}


if __name__ == "__main__":
    for name, world in WORLDS.items():
        for line in changed_seeds(world.mutations, world.noticing, world.late):
            print(f"{name}: {line}", flush=True)
