"""Seeds seen to fail, of removed protections that few seeds notice: they save a search as long as schedules stay.

`python -m tests.sim_catalog.late` looks for them again, and names those that have to be changed here. A test that
has an old one still holds, after a search of seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

LATE_IN_CATALOGS = {
    "a-batch-of-a-stream-is-not-looked-for": 13,
    "a-cascade-does-not-see-what-was-linked-meanwhile": 289,
    "a-cut-is-not-checked-again": 43,
    "a-drop-seals-and-unlinks-by-itself": 84,
    "a-link-does-not-look-at-the-name-again": 70,
    "a-name-is-unlinked-by-what-was-read-of-its-table": 1862,
    "a-replace-forgets-the-batches-of-streams": 76,
    "a-restore-does-not-look-at-the-name-again": 646,
    "a-transaction-may-begin-before-what-its-client-has-seen": 1465,
    "a-view-does-not-look-at-the-name-again": 492,
    "a-write-by-name-does-not-look-at-the-name-again": 1862,
    "ages-are-judged-by-the-hosts-clock": 527,
    "an-undrop-ignores-the-id": 56,
    "clocks-do-not-follow-what-was-read": 38,
    "retried-from-a-fresh-base": 212,
    "what-was-created-for-nothing-is-left-open": 40,
    "what-was-read-is-not-validated": 40,
}
LATE_IN_ROWS = {
    "a-compaction-does-not-look-again": 29,
    "a-file-is-rewritten-whatever-was-deleted-in-it": 9,
    "a-file-that-is-gone-need-not-be-changed": 23,
    "a-transaction-may-delete-what-others-have-deleted": 43,
    "overwrites-look-at-no-files": 1186,
    "rows-that-came-meanwhile-are-not-looked-at": 3,
    "the-files-that-are-changed-are-not-looked-at": 43,
    "the-same-row-may-be-changed-twice": 30,
    "vacuum-does-not-know-vectors": 9,
    "whole-files-are-removed-whatever-was-deleted-in-them": 78,
}
LATE_IN_LINES = {
    "a-branch-is-any-of-its-name": 7,
    "a-branch-is-not-shown-its-own-changes": 286,
    "a-line-becomes-another-whatever-is-lost": 9,
    "any-change-is-a-move": 39,
    "main-does-not-count-its-changes": 312,
    "maintenance-looks-at-main-alone": 209,
    "moved-files-stay-whatever-the-other-line-did": 493,
}


LATE_IN_CLONES = {
    "a-clone-comes-without-a-promise": 1,
    "a-clone-of-a-clone-has-the-promise-of-that-alone": 3,
    "a-purge-ignores-clones": 48,
    "vacuum-ignores-what-is-promised": 200,
}


def noticed_by(
    removed: Callable[[], AbstractContextManager[None]],
    fails: Callable[[int], object],
    seeds: Iterable[int],
) -> int | None:
    """Return the first seed that fails without a protection."""
    with removed():
        return next((seed for seed in seeds if fails(seed)), None)


def _changed() -> Iterator[str]:
    from tests.sim_catalog import test_simulated_catalog, test_simulated_lines, test_simulated_rows

    tests: list[tuple[Mapping[str, int], Iterable[str], Callable[[str], int | None]]] = [
        (LATE_IN_CATALOGS, test_simulated_catalog.CATALOG_MUTATIONS, test_simulated_catalog.noticing),
        (LATE_IN_ROWS, test_simulated_rows.ROW_MUTATIONS, test_simulated_rows.noticing),
        (LATE_IN_LINES, test_simulated_lines.LINE_MUTATIONS, test_simulated_lines.noticing),
    ]
    for late, mutations, noticing in tests:
        for mutation in sorted(mutations):
            begun = time.monotonic()
            seed = noticing(mutation)
            if (mutation in late and late[mutation] != seed) or time.monotonic() - begun > 1:
                yield f'    "{mutation}": {seed},'


if __name__ == "__main__":
    for line in _changed():
        print(line, flush=True)
