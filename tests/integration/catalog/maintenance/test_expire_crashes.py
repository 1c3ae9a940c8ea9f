"""A cleaner that dies among the tombstones of a batch leaves commits between them: checks and audits know that these
have expired."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.catalog.errors import DoneInPart
from lakelog.log import StorageError
from lakelog.log.checks.findings import Severity


@pytest.mark.parametrize("seed", range(5))
def test_commits_that_are_left_among_tombstones_count_as_expired(warehouse: str, seed: int) -> None:
    chance = random.Random(seed)
    catalog = Catalog(warehouse)
    catalog.create_namespace("a")
    catalog.create_namespace("b")
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.rename_table("a.t", "b.t")
    table = catalog.load_table("b.t")
    for number in range(2, 6):
        table = table.overwrite(rows(number))
    tracked_log = table.table_head.tracked
    done = 0

    def some(works: Sequence[Callable[[], None]]) -> None:
        nonlocal done
        for work in chance.sample(works, len(works)):
            if done == 3:
                raise StorageError("the machine went down", location=warehouse)
            work()
            done += 1

    options = tracked_log.log.options
    tracked_log.log.options = replace(options, in_parallel=some)
    with pytest.raises(DoneInPart, match="machine went down"):
        catalog.expire("b.t", version=7, dry_run=False)
    tracked_log.log.options = options
    newest = check(warehouse, [7, 8])
    assert newest < 7, "some are left"
    [answer] = catalog.expire("b.t", version=7, dry_run=False)
    assert answer.error is None
    catalog.vacuum("b.t", dry_run=False)
    assert check(warehouse, [8]) == 7


def check(warehouse: str, least: list[int]) -> int:
    """Return the newest version that an audit says has expired."""
    fresh = Catalog(warehouse)
    location = fresh.load_table("b.t").location
    for all_versions in (False, True):
        findings = fresh.fsck(all_versions=all_versions)
        assert findings.worst in (None, Severity.NOTE), [str(finding) for finding in findings.found]
    newest_first, oldest_first = (
        [facts(entry) for entry in fresh.audit(location=location, newest_first=order)]
        for order in (True, False)
    )
    assert newest_first == oldest_first[::-1]
    [first, *other_pairs] = oldest_first
    assert first[0] == "expired" and {label for label, _ in other_pairs} == {"commit"}
    versions = [version for _, version in other_pairs]
    assert versions == list(range(first[1] + 1, versions[-1] + 1)) and set(least) <= set(versions)
    assert [entry.version for entry in fresh.load_table("b.t").history()] == versions[::-1]
    return first[1]


def facts(entry: Any) -> tuple[str, int]:
    return entry.what, entry.version
