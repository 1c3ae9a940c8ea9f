"""The health of tables: what is read for it. The newest commits, the entries of the live files, and no data file."""

from __future__ import annotations

from itertools import islice

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.choices import COMMITS_MAX, VACUUM
from lakelog.catalog.core.files import joined
from lakelog.catalog.core.logs import NameTree, Progress, Scope, TableHead, Target
from lakelog.catalog.core.policies import policy_for
from lakelog.catalog.core.schema import (
    DELETED_RATIO,
    KEEP_FOR,
    MAINTENANCE,
    NEVER,
    TARGET_FILE_SIZE,
    VACUUM_AGE,
    Policy,
    value_of,
)
from lakelog.catalog.core.state import TableState, entries_of
from lakelog.catalog.keeping.maintenance import vacuum_logs, vacuum_wish
from lakelog.catalog.keeping.upkeep.facts import (
    SMALL,
    Done,
    Subject,
    advice_for,
    deleted_rows,
    done_of,
    last_day,
    size_classes,
    vacuum_advice,
)
from lakelog.catalog.keeping.upkeep.model import Health
from lakelog.catalog.keeping.upkeep.spans import depths_of, keys_of
from lakelog.catalog.names import Identifier
from lakelog.catalog.times import age_text
from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.log.secrets import masked, masked_urls


def health_of_table(
    tree: NameTree, head: TableHead, *, commits: int = COMMITS_MAX, listing: bool = False
) -> Health:
    """Return how a table is. Costs a GET for each of the newest `commits` (at most), one for each namespace above, and
    its manifests. With `listing`, also what a vacuum would delete: its LISTs, and a GET for each version since the
    oldest write of which a file is met."""
    if commits < 1:
        raise InvalidInput(f"{commits} commits cannot be read: give at least 1")
    target = Target(
        head.name, None if head.found_by is None else head.found_by.identifier, head.tracked, head.view
    )
    found = _health(tree, target, commits)
    return _counted(tree, target, found) if listing else found


def health_in(
    tree: NameTree, scope: Scope, *, commits: int, listing: bool, progress: Progress
) -> list[Health]:
    """Return how each table of `scope` is; one that cannot be read hides no other."""
    if commits < 1:
        raise InvalidInput(f"{commits} commits cannot be read: give at least 1")
    found = [
        Health(name=each.name, location=masked_urls(each.location), problem=masked(each.error))
        for each in scope.unreadable
        if each.kind == "table"
    ]
    for number, target in enumerate(scope.tables, start=1):
        progress(f"{number:,} of {len(scope.tables):,}: {target.name}")
        try:
            each = _health(tree, target, commits)
            found.append(_counted(tree, target, each) if listing else each)
        except LakelogError as error:
            if scope.is_one_table:
                raise
            where = masked_urls(target.tracked.log.location)
            found.append(Health(name=target.name, location=where, problem=masked(str(error))))
    return found


def files_of(head: TableHead) -> pa.Table:
    """Return the live files, with the bounds of the columns that rows are clustered or sorted by."""
    return joined(head.chunks(keys_of(head.metadata)))


def subject_of(
    head: TableHead, path: Identifier | None, done: list[Done], policy: Policy | None, now_us: int
) -> Subject:
    """Return the table that advice is for; without a `policy`, by its own properties and the defaults."""
    return Subject(
        path=path,
        location=head.url,
        metadata=head.metadata,
        estimates=head.state.estimates,
        oldest=max(1, head.state.expired),
        done=done,
        now_us=now_us,
        deleted_ratio=None if policy is None else policy.deleted_ratio,
        keep_for=None if policy is None else policy.keep_for,
        keeps_all=policy is not None and policy.keeps_all,
    )


def _health(tree: NameTree, target: Target[TableState], commits: int) -> Health:
    logs = tree.logs
    head = TableHead(logs, target.tracked, target.view, target.name)
    policy, problem = _policy(tree, target)
    done = [done_of(entry) for entry in islice(entries_of(head.commits(newest_first=True)), commits)]
    files, now_us = files_of(head), logs.clocks.likely_us(target.tracked.location)
    oldest = max(1, head.state.expired)
    stored = head.state.files.stored_in()
    target_bytes = int(value_of(head.metadata.properties, TARGET_FILE_SIZE))
    return Health(
        name=target.name,
        location=masked_urls(head.url),
        version=head.version,
        files=files.num_rows,
        rows=head.state.files.row_count,
        size_bytes=head.state.files.size_bytes,
        deleted_rows=deleted_rows(files),
        target_bytes=target_bytes,
        small_files=int(pc.sum(pc.less(files["size"], int(target_bytes * SMALL))).as_py() or 0),
        sizes=size_classes(files),
        keys=depths_of(files, head.metadata),
        old_versions=head.version - oldest,
        past_files=sum(each.removed_files for each in done if each.version > oldest),
        past_bytes=sum(each.removed_bytes for each in done if each.version > oldest),
        read_from=min((each.version for each in done), default=head.version),
        manifests=len(stored.manifests.entries) + len(stored.manifests.removed),
        since_manifests=stored.added_since + stored.removed_since,
        last_day=last_day(done, now_us),
        policy=_said(policy),
        advice=advice_for(subject_of(head, target.path, done, policy, now_us), files),
        problem=problem,
    )


def _policy(tree: NameTree, target: Target[TableState]) -> tuple[Policy | None, str | None]:
    """Return the policy, or why it cannot be followed."""
    try:
        return policy_for(tree.logs, target.view, target.name), None
    except LakelogError as error:
        return None, masked(str(error))


def _said(policy: Policy | None) -> dict[str, str]:
    """Return a policy as its properties say it."""
    if policy is None:
        return {}
    ages = {KEEP_FOR: policy.keep_for, VACUUM_AGE: policy.vacuum_age}
    return {
        MAINTENANCE.name: policy.mode,
        DELETED_RATIO.name: f"{policy.deleted_ratio:g}",
        **{known.name: NEVER if age is None else age_text(age) for known, age in ages.items()},
    }


def _counted(tree: NameTree, target: Target[TableState], found: Health) -> Health:
    """Return `found` with what a vacuum would delete now, and its advice by that."""
    asked = vacuum_wish(dry_run=True, keys=False)
    (table, *others) = vacuum_logs(tree, Scope(tables=[target]), asked)
    files = sum(each.files + each.objects for each in (table, *others))
    size_bytes = sum(each.size_bytes + each.object_bytes for each in (table, *others))
    advice = tuple(each for each in found.advice if each.action != VACUUM)
    if files:
        advice = (*advice, vacuum_advice(target.path, found.location, files, size_bytes))
    return msgspec.structs.replace(
        found, unreachable_files=files, unreachable_bytes=size_bytes, advice=advice
    )
