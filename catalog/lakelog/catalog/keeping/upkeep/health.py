"""The health of tables, read from the newest commits and the live files' entries, but from no data file."""

from __future__ import annotations

from itertools import islice

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.choices import COMMITS_MAX, VACUUM
from lakelog.catalog.core.files import joined
from lakelog.catalog.core.logs import LogScope, LogTarget, NameTree, Progress, TableHead, naming
from lakelog.catalog.core.policies import policy_for
from lakelog.catalog.core.schema import (
    DELETED_RATIO,
    KEEP_FOR,
    MAINTENANCE,
    NEVER,
    TARGET_FILE_SIZE,
    VACUUM_AGE,
    MaintenancePolicy,
)
from lakelog.catalog.core.state import TableState, entries_of
from lakelog.catalog.keeping.maintenance.vacuum import vacuum_logs, vacuum_wish
from lakelog.catalog.keeping.upkeep.facts import (
    SMALL,
    AdviceSubject,
    CommitFacts,
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
    """Return the health of a table.

    Makes a GET request for each of the newest `commits` (at most) and for each namespace above, and reads its
    manifests. With `listing`, also counts the objects that a vacuum would delete. That makes the vacuum's
    LIST requests. It also makes a GET request for each version since the oldest write of which it meets a
    file.
    """
    if commits < 1:
        raise InvalidInput(f"{commits} commits cannot be read: give at least 1")
    target = LogTarget(
        head.name, None if head.found_by is None else head.found_by.identifier, head.tracked, head.view
    )
    health = _health(tree, target, commits)
    return _counted(tree, target, health) if listing else health


def health_in(
    tree: NameTree, scope: LogScope, *, commits: int, listing: bool, progress: Progress
) -> list[Health]:
    """Return the health of each table of `scope`. An unreadable table hides no other."""
    if commits < 1:
        raise InvalidInput(f"{commits} commits cannot be read: give at least 1")
    results = [
        Health(name=table.name, location=masked_urls(table.location), problem=masked(table.error))
        for table in scope.unreadable
        if table.kind == "table"
    ]
    for number, target in enumerate(scope.tables, start=1):
        progress(f"{number:,} of {len(scope.tables):,}: {target.name}")
        try:
            table = _health(tree, target, commits)
            results.append(_counted(tree, target, table) if listing else table)
        except LakelogError as error:
            if scope.is_one_table:
                raise
            where = masked_urls(target.tracked.log.location)
            results.append(Health(name=target.name, location=where, problem=masked(str(error))))
    return results


def files_of(head: TableHead) -> pa.Table:
    """Return the live files, with the bounds of the columns by which rows are clustered or sorted."""
    return joined(head.chunks(keys_of(head.metadata)))


def subject_of(
    head: TableHead,
    path: Identifier | None,
    commit_facts: list[CommitFacts],
    policy: MaintenancePolicy | None,
    now_us: int,
) -> AdviceSubject:
    """Return the table that advice is for. Without a `policy`, its own properties and the defaults count."""
    return AdviceSubject(
        path=path,
        location=head.url,
        metadata=head.metadata,
        estimates=head.state.estimates,
        oldest=max(1, head.state.expired),
        newest=head.version,
        done=commit_facts,
        now_us=now_us,
        deleted_ratio=None if policy is None else policy.deleted_ratio,
        keep_for=None if policy is None else policy.keep_for,
        keeps_all=policy is not None and policy.keeps_all,
    )


def _health(tree: NameTree, target: LogTarget[TableState], commits: int) -> Health:
    with naming(target.tracked.log.location):
        return _measured(tree, target, commits)


def _measured(tree: NameTree, target: LogTarget[TableState], commits: int) -> Health:
    logs = tree.logs
    head = TableHead(logs, target.tracked, target.view, target.name)
    policy, problem = _policy(tree, target)
    commit_facts = [done_of(entry) for entry in islice(entries_of(head.commits(newest_first=True)), commits)]
    files, now_us = files_of(head), logs.clocks.likely_us(target.tracked.location)
    oldest = max(1, head.state.expired)
    file_lists = head.state.files.stored_in()
    target_bytes = TARGET_FILE_SIZE.of(head.metadata.properties)
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
        past_files=sum(commit.removed_files for commit in commit_facts if commit.version > oldest),
        past_bytes=sum(commit.removed_bytes for commit in commit_facts if commit.version > oldest),
        read_from=min((commit.version for commit in commit_facts), default=head.version),
        manifests=len(file_lists.manifests.entries) + len(file_lists.manifests.removed),
        since_manifests=file_lists.added_since + file_lists.removed_since,
        last_day=last_day(commit_facts, now_us),
        policy=_said(policy),
        advice=advice_for(subject_of(head, target.path, commit_facts, policy, now_us), files),
        problem=problem,
    )


def _policy(tree: NameTree, target: LogTarget[TableState]) -> tuple[MaintenancePolicy | None, str | None]:
    """Return the policy, or the reason that it cannot be followed."""
    try:
        return policy_for(tree.logs, target.view, target.name), None
    except LakelogError as error:
        return None, masked(str(error))


def _said(policy: MaintenancePolicy | None) -> dict[str, str]:
    """Return a policy as properties."""
    if policy is None:
        return {}
    ages = {KEEP_FOR: policy.keep_for, VACUUM_AGE: policy.vacuum_age}
    return {
        MAINTENANCE.name: policy.mode,
        DELETED_RATIO.name: f"{policy.deleted_ratio:g}",
        **{property.name: NEVER if age is None else age_text(age) for property, age in ages.items()},
    }


def _counted(tree: NameTree, target: LogTarget[TableState], health: Health) -> Health:
    """Return `health` with the count of objects that a vacuum would delete now, and with advice by that count."""
    wish = vacuum_wish(dry_run=True, keys=False)
    (table, *other_results) = vacuum_logs(tree, LogScope(tables=[target]), wish)
    files = sum(result.files + result.objects for result in (table, *other_results))
    size_bytes = sum(result.size_bytes + result.object_bytes for result in (table, *other_results))
    advice = tuple(result for result in health.advice if result.action != VACUUM)
    if files:
        advice = (*advice, vacuum_advice(target.path, health.location, files, size_bytes))
    return msgspec.structs.replace(
        health, unreachable_files=files, unreachable_bytes=size_bytes, advice=advice
    )
