"""Clustering: rows of a table are put in the order of its curve, a run of files at a time (see `state.clustering`).

The boundaries of ranks are computed from a sample of the key columns, and committed with the definition of the table;
the rows move as a compaction moves them, by the same commits. What others have written since a clustering began waits
for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import Progress, TableHead, Written, check_conflicts, no_files
from lakelog.catalog.core.parquet import (
    along_curve,
    leftovers,
    live_rows,
    read_files,
    transformed,
    written_rows,
)
from lakelog.catalog.core.schema import (
    BITS,
    COLUMNS_MAX,
    IDENTITY,
    AtomicType,
    Filter,
    Metadata,
    Ranks,
    bounds_from,
    curve_of,
    dotted,
)
from lakelog.catalog.core.state import (
    MAIN,
    ClusteringChanged,
    ClusteringGoal,
    Group,
    Operation,
    TableState,
    curve_to_plan_by,
    encode,
    is_skewed,
    plan_clustering,
)
from lakelog.catalog.core.writes import Rewritten, compaction_commit
from lakelog.catalog.errors import CommitConflict, DoneInPart
from lakelog.catalog.keeping.upkeep.compacting import committed
from lakelog.catalog.keeping.upkeep.expected import ExpectedClustering, expected
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import InvalidInput, StorageError

TRIES_MAX = compaction_commit.TRIES_MAX

SAMPLE_FILES = 32
SAMPLE_ROWS = 256 * 1024
"""Boundaries are computed from about so many rows of so many files, of which the key columns are read."""


class Clustered(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and written in place of it. `lost` groups were changed by others first: what was written for them
    is deleted again."""

    read_files: int = 0
    read_bytes: int = 0
    written_files: int = 0
    written_bytes: int = 0
    deleted_rows: int = 0
    lost: int = 0

    def and_(self, other: Clustered) -> Clustered:
        names = self.__struct_fields__
        return Clustered(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @classmethod
    def of(cls, groups: Sequence[Group], done: Sequence[Rewritten], lost: Collection[int]) -> Clustered:
        stay = [at for at in range(len(groups)) if at not in lost]
        written = [file for at in stay for file in done[at].files]
        return cls(
            read_files=sum(groups[at].files for at in stay),
            read_bytes=sum(groups[at].size_bytes for at in stay),
            written_files=len(written),
            written_bytes=sum(file.size_bytes for file in written),
            deleted_rows=sum(groups[at].deleted for at in stay),
            lost=len(lost),
        )


def check_clustered(head: TableHead) -> None:
    """InvalidInput where the table has no key to be clustered by."""
    if not head.metadata.clustering:
        raise InvalidInput(
            f"{head.name} has no columns to be clustered by: name some first, by ALTER TABLE {head.name} CLUSTER BY "
            "(…) or Table.alter"
        )


def ranked(head: TableHead) -> TableHead:
    """Return the newest version with boundaries that divide the rows of its files: new ones where those do not.

    Costs, for new ones, a read of the key columns of some files, and a commit. The version has none where the table has
    no rows.
    """
    files, metadata = head.all_files(), head.metadata
    if not _lacks_boundaries(head, files):
        return head
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    ids = metadata.clustering[:COLUMNS_MAX]
    columns = tuple(
        bounds_from(values, id, _type_of(metadata, id), BITS[len(ids)])
        for id, values in zip(ids, sample(head, files), strict=True)
    )
    if metadata.ranks is not None and curve is not None and columns == metadata.ranks.columns:
        return head  # more of the same values: other boundaries would not divide them either
    written = Written(head.version, head.schema, no_files)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        check_conflicts(Operation.ALTER, view, passed, written, head.name)
        now = view.state.current
        if now.clustering != metadata.clustering:
            raise CommitConflict(
                f"the columns by which {head.name} is clustered were changed meanwhile. Nothing was changed: cluster "
                "it again",
                version=view.version,
            )
        if view.state.erased > head.version:
            raise CommitConflict(
                f"rows of {head.name} were erased meanwhile, and the boundaries that were found may be their values. "
                "Nothing was changed: cluster it again",
                version=view.version,
            )
        known = curve_of(now.ranks, now.clustering, now.schema)
        # A clone has the ranks, and files, of another log, whose versions may be higher.
        generation = max(view.version, 0 if now.ranks is None else now.ranks.generation) + 1
        first = generation if known is None else known.ranks.first
        ranks = Ranks(generation=generation, first=first, columns=columns)
        return Draft(events=encode([ClusteringChanged(columns=now.clustering, ranks=ranks)]))

    return head.commit_or_refresh(decide, None)


def _lacks_boundaries(head: TableHead, files: pa.Table) -> bool:
    """Whether it has none that divide its rows, and may get others. InvalidInput for a table without a key, and for a
    branch whose table has none."""
    check_clustered(head)
    metadata = head.metadata
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    if curve is not None and not is_skewed(files, metadata, curve):
        return False
    if not any(files["rows"].to_pylist()):
        return False
    if head.ref == MAIN:
        return True
    if curve is not None:
        return False
    raise InvalidInput(
        f"{head.name} is clustered by boundaries that the table itself has not got yet: cluster the table first"
    )


def sample(head: TableHead, files: pa.Table) -> list[pa.Array]:
    """Return values of the key columns, of rows that are spread over the files."""
    metadata = head.metadata
    ids = metadata.clustering[:COLUMNS_MAX]
    files = files.filter(pc.greater(files["rows"], 0)).sort_by("path")
    some = min(SAMPLE_FILES, files.num_rows)
    files = files.take(pa.array([number * files.num_rows // some for number in range(some)], pa.int64()))
    every = max(1, sum(files["rows"].to_pylist()) // SAMPLE_ROWS)
    tracked, schema = head.tracked, metadata.schema
    names = list(dict.fromkeys(schema.path_of(id)[0] for id in ids))
    _, batches = read_files(
        tracked.store,
        tracked.prefix,
        files,
        schema,
        metadata.specs,
        columns=names,
        open_url=tracked.log.replay.open_url,
    )
    found: list[list[pa.Array]] = [[] for _ in ids]
    next_row = 0
    for batch in batches:
        places = range(next_row, batch.num_rows, every)
        next_row = (places[-1] + every if places else next_row) - batch.num_rows
        if not places:
            continue
        rows = pa.Table.from_batches([batch]).take(pa.array(places, pa.int64()))
        for values, id in zip(found, ids, strict=True):
            values.append(transformed(rows, schema, id, IDENTITY))
    return [pa.concat_arrays(values) for values in found]


def _type_of(metadata: Metadata, id: int) -> AtomicType:
    type = metadata.schema.field_by_id(id).type
    assert isinstance(type, AtomicType), f"{dotted(metadata.schema.path_of(id))} has an order"
    return type


def plan_next(
    head: TableHead, goal: ClusteringGoal, filter: Filter | None = None, *, until: int, key: Sequence[int]
) -> tuple[pa.Table, list[Group]]:
    """Return the files to be rewritten next, of those that may have rows which match, and their groups (see
    `plan_clustering`). DoneInPart where the table is not clustered by the columns `key` any more."""
    metadata = head.metadata
    if tuple(metadata.clustering) != tuple(key):
        raise DoneInPart(
            f"the columns by which {head.name} is clustered were changed meanwhile. What was committed by the earlier "
            "ones stays, and lost nothing. Cluster it again"
        )
    check_clustered(head)
    files = compaction_commit.files_like(head, filter, "clustered")
    return plan_clustering(files, metadata, curve_to_plan_by(metadata), goal, until=until)


def expected_of(
    head: TableHead, goal: ClusteringGoal, limit_bytes: int | None, filter: Filter | None = None
) -> ExpectedClustering:
    """Return what `cluster` would do, from metadata alone. InvalidInput for a table without a key."""
    files = head.all_files()
    renews = _lacks_boundaries(head, files)
    chosen = compaction_commit.files_like(head, filter, "clustered")
    return expected(files, chosen, head.metadata, goal, limit_bytes, renews=renews)


def rewritten(
    head: TableHead,
    files: pa.Table,
    groups: Sequence[Group],
    goal: ClusteringGoal,
    check: Callable[[], None],
    *,
    unless_branched: bool = False,
) -> tuple[TableHead, Clustered]:
    """Rewrite the files of groups in one commit; return the newest version, and what came of it. `unless_branched`: all
    are lost where the table has branches by then."""
    metadata = head.metadata
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    assert curve is not None, "it was planned by its curve"
    write = head.begin_write()
    done: list[Rewritten] = []
    copied: list[DataFile] = []
    first = 0
    try:
        for group in groups:
            own = files.slice(first, group.files)
            first += group.files
            made = written_rows(
                head.tracked,
                metadata,
                write,
                along_curve(live_rows(head, own, check), curve, metadata.schema),
                row_ids=True,
                target_size_bytes=goal.target_size_bytes,
                cut=group.cut,
                first_number=len(copied),
            )
            copied += made
            done.append(Rewritten(own["path"].to_pylist(), made))
    except BaseException:
        leftovers.delete(head.tracked, [file.path for file in copied])
        raise
    head, lost = committed(head, done, write, check, unless_branched=unless_branched)
    return head, Clustered.of(groups, done, lost)


def cluster(
    head: TableHead,
    goal: ClusteringGoal,
    limit_bytes: int | None,
    progress: Progress,
    filter: Filter | None = None,
) -> tuple[TableHead, Clustered]:
    """Rewrite what is due, some groups a commit, until nothing is, or about `limit_bytes` were read; return the newest
    version.

    InvalidInput for a table without a key, CommitConflict where other writers keep changing the same files; DoneInPart
    where some were rewritten before the store failed.
    """
    head = ranked(head)
    key, until, tries_left, done, commits = (
        head.metadata.clustering,
        head.version,
        TRIES_MAX,
        Clustered(),
        0,
    )
    while limit_bytes is None or done.read_bytes < limit_bytes:
        left = (
            goal.limit_bytes if limit_bytes is None else min(goal.limit_bytes, limit_bytes - done.read_bytes)
        )
        files, groups = plan_next(head, replace(goal, limit_bytes=max(1, left)), filter, until=until, key=key)
        if not groups:
            break
        total = sum(group.size_bytes for group in groups)
        progress(f"clustering {files.num_rows:,} files of {head.name}, {total:,} bytes")
        base = head.version
        try:
            head, came = rewritten(head, files, groups, goal, lambda: None)
        except StorageError as error:
            if not commits:
                raise
            raise DoneInPart(
                f"of the clustering of {head.name}, {commits} commits have happened: {error}. Cluster the rest again"
            ) from error
        done = done.and_(came)
        if came.lost < len(groups):
            commits += 1
            # Its own files count, as long as all others are known to be older.
            until = head.version if head.version == base + 1 and until == base else until
        if not came.lost:
            continue
        tries_left -= 1
        if not tries_left:
            raise CommitConflict(
                f"the clustering of {head.name} conflicted with other writers, which changed its files, {TRIES_MAX} "
                "times. What it had committed stays. Cluster the rest when fewer rows are changed",
                version=head.version,
            )
    return head, done
