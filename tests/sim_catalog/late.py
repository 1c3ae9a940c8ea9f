"""What makes a removed protection show in few seeds: the ways that a run is about, or a seed that was seen to fail.

If clients do only what a protection is about, they do it to each other soon (`CatalogWorld.chosen`). That holds
whatever the schedules are. Seeds that were seen to fail save a search as long as schedules stay:
`python -m tests.sim_catalog.late` looks for them again, and names those that have to be changed here. A test that has
an old one still holds, after a search of seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.sim.late import changed_seeds, first_failing
from tests.sim_catalog.clone_mutations import CLONE_MUTATIONS
from tests.sim_catalog.line_mutations import LINE_MUTATIONS
from tests.sim_catalog.mutations import CATALOG_MUTATIONS
from tests.sim_catalog.row_mutations import ROW_MUTATIONS
from tests.sim_catalog.simulation import CLONES, LINES, ROWS, seeds_of, simulate_catalog

MUTATIONS = CATALOG_MUTATIONS | ROW_MUTATIONS | LINE_MUTATIONS | CLONE_MUTATIONS

_ABOUT: dict[str, tuple[str, ...]] = {
    # names
    "a-drop-seals-and-unlinks-by-itself": ("look", "table"),
    "a-name-is-dropped-by-what-was-read-of-its-table": ("table", "restless table"),
    "a-namespace-takes-the-place-of-its-name-from-another-one": ("space", "restless namespace"),
    "a-link-does-not-look-at-the-name-again": ("stage", "restless table"),
    "a-name-is-unlinked-by-what-was-read-of-its-table": ("table", "restless table"),
    "a-restore-does-not-look-at-the-name-again": ("table", "restless table"),
    "a-view-does-not-look-at-the-name-again": ("definition", "restless view"),
    "a-write-by-name-does-not-look-at-the-name-again": ("look", "table", "rename", "restless view"),
    # rows
    "a-compaction-does-not-look-again": ("transfer", "compact", "by positions", "any files"),
    "a-file-is-rewritten-whatever-was-deleted-in-it": ("transfer", "move one", "by positions", "by files"),
    "a-file-that-is-gone-need-not-be-changed": ("transfer", "compact", "by positions", "any files"),
    "a-transaction-may-delete-what-others-have-deleted": ("move one", "by positions"),
    "overwrites-look-at-no-files": ("transfer", "move one", "move all", "by overwriting"),
    "the-files-that-are-changed-are-not-looked-at": ("transfer", "move one", "by positions", "by files"),
    "the-same-row-may-be-changed-twice": ("move one", "by positions"),
    "whole-files-are-removed-whatever-was-deleted-in-them": ("move one", "move all"),
    # lines
    "a-branch-is-not-shown-its-own-changes": ("make", "mark", "rewrite"),
    "any-change-is-a-move": ("make", "fast-forward", "mark"),
    "main-does-not-count-its-changes": ("make", "fast-forward", "mark"),
    "maintenance-looks-at-main-alone": ("make", "rewrite", "expire", "vacuum"),
    "moved-files-stay-whatever-the-other-line-did": ("make", "fast-forward", "transfer", "compact"),
    # clones
    "a-purge-ignores-clones": ("clone", "drop", "vacuum"),
    "vacuum-ignores-what-is-promised": ("clone", "rewrite", "expire", "vacuum"),
}
ABOUT = {mutation: frozenset(ways) for mutation, ways in _ABOUT.items()}

LATE = {
    "a-batch-of-a-stream-is-not-looked-for": 13,
    "a-batch-that-a-transaction-finds-committed-is-left-out": 27,
    "a-branch-is-any-of-its-name": 2,
    "a-branch-is-not-shown-its-own-changes": 3,
    "a-branch-takes-no-row-ids": 5,
    "a-cascade-does-not-see-what-was-linked-meanwhile": 525,
    "a-cut-is-not-checked-again": 43,
    "a-drop-seals-and-unlinks-by-itself": 79,
    "a-file-is-rewritten-whatever-was-deleted-in-it": 3,
    "a-line-becomes-another-whatever-is-lost": 3,
    "a-link-does-not-look-at-the-name-again": 2,
    "a-name-is-dropped-by-what-was-read-of-its-table": 198,
    "a-name-is-unlinked-by-what-was-read-of-its-table": 16,
    "a-namespace-takes-the-place-of-its-name-from-another-one": 105,
    "a-purge-ignores-clones": 5,
    "a-replace-forgets-the-batches-of-streams": 573,
    "a-restore-does-not-look-at-the-name-again": 30,
    "a-rollback-takes-back-which-values-are-taken": 22,
    "a-transaction-may-begin-before-what-its-client-has-seen": 1372,
    "a-view-does-not-look-at-the-name-again": 16,
    "a-view-takes-a-name-that-is-taken": 7,
    "a-write-by-name-does-not-look-at-the-name-again": 51,
    "ages-are-judged-by-the-hosts-clock": 79,
    "an-undrop-ignores-the-id": 651,
    "any-change-is-a-move": 8,
    "clocks-do-not-follow-what-was-read": 66,
    "main-does-not-count-its-changes": 8,
    "maintenance-looks-at-main-alone": 2,
    "overwrites-look-at-no-files": 9,
    "retried-from-a-fresh-base": 91,
    "rows-that-came-meanwhile-are-not-looked-at": 557,
    "the-files-that-are-changed-are-not-looked-at": 2,
    "vacuum-ignores-what-is-promised": 3,
    "what-was-created-for-nothing-is-left-open": 40,
    "what-was-only-read-is-not-validated": 11,
    "what-was-read-is-not-validated": 103,
}
"""Two of them are late whatever the schedules are: of a cascade, and of what a client has seen."""

CAUGHT_BY = {
    "clocks-do-not-follow-what-was-read": "chain",
    "a-cut-is-not-checked-again": "bank",
    "what-was-read-is-not-validated": "ring",
    "what-was-only-read-is-not-validated": "duty",
    "the-steps-of-a-transaction-are-decided-once": "bank",
    "what-was-created-for-nothing-is-left-open": "ring",
    "a-batch-of-a-stream-is-not-looked-for": "sink",
    "a-batch-that-a-transaction-finds-committed-is-left-out": "sink",
    "a-replace-forgets-the-batches-of-streams": "sink",
    "values-that-others-took-are-committed": "numbers",
    "other-values-are-not-reserved": "numbers",
    "a-rollback-takes-back-which-values-are-taken": "numbers",
}
"""What the seeds of catalogs are about that show it soonest; those about names for all others."""


def noticing(mutation: str) -> int | None:
    """Return a seed that fails without a protection, of a thousand."""
    kind = kind_of(mutation)
    seeds: Iterable[int] = (
        range(1, 1001) if kind is not None else seeds_of(CAUGHT_BY.get(mutation, "names"), 1000)
    )
    about = ABOUT.get(mutation, frozenset())
    return first_failing(
        MUTATIONS[mutation],
        lambda seed: simulate_catalog(seed, kind, about),
        (LATE.get(mutation, 1), *seeds),
    )


def kind_of(mutation: str) -> str | None:
    of = {ROWS: ROW_MUTATIONS, LINES: LINE_MUTATIONS, CLONES: CLONE_MUTATIONS}
    return next((kind for kind, mutations in of.items() if mutation in mutations), None)


if __name__ == "__main__":
    for line in changed_seeds(MUTATIONS, noticing, LATE):
        print(f"    {line}", flush=True)
