"""Clustering: rows of a table are put in the order of its curve, a run of files at a time.

See `state.clustering`. The boundaries of ranks are computed from a sample of the key columns, and committed
with the definition of the table. The rows move as in a compaction, by the same commits. Rows that other
writers add during a clustering wait for the next clustering.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import OperationFacts, Progress, TableHead, check_conflicts, no_files
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
    ClusteringTarget,
    FileGroup,
    OperationKind,
    TableState,
    curve_to_plan_by,
    encode,
    is_skewed,
    plan_clustering,
)
from lakelog.catalog.core.writes import RewrittenFiles, compaction_commit
from lakelog.catalog.errors import CommitConflict, DoneInPart
from lakelog.catalog.keeping.upkeep.compacting import Compacted, committed
from lakelog.catalog.keeping.upkeep.expected import ExpectedClustering, expected
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import InvalidInput, StorageError

TRIES_MAX = compaction_commit.TRIES_MAX

SAMPLE_FILES = 32
SAMPLE_ROWS = 256 * 1024
"""Boundaries are computed from about so many rows of so many files, of which the key columns are read."""


def _came_of(
    groups: Sequence[FileGroup], files: Sequence[RewrittenFiles], lost: Collection[int]
) -> Compacted:
    """Return the totals read and written for the groups, without the `lost` groups."""
    stay = [at for at in range(len(groups)) if at not in lost]
    new_files = [file for at in stay for file in files[at].files]
    return Compacted(
        read_files=sum(groups[at].files for at in stay),
        read_bytes=sum(groups[at].size_bytes for at in stay),
        written_files=len(new_files),
        written_bytes=sum(file.size_bytes for file in new_files),
        deleted_rows=sum(groups[at].deleted for at in stay),
        lost=len(lost),
    )


def check_clustered(head: TableHead) -> None:
    """Raise InvalidInput if the table has no key to be clustered by."""
    if not head.metadata.clustering:
        raise InvalidInput(
            f"{head.name} has no columns to be clustered by: name some first, by ALTER TABLE {head.name} CLUSTER BY "
            "(…) or Table.alter"
        )


def ranked(head: TableHead) -> TableHead:
    """Return the newest version with boundaries that divide the rows of its files.

    Computes new boundaries if needed.

    New boundaries cost a read of the key columns of some files, and a commit. If the table has no rows, the
    version has no boundaries.
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
    own_write = OperationFacts(head.version, head.schema, no_files)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        check_conflicts(OperationKind.ALTER, view, passed_commits, own_write, head.name)
        current_metadata = view.state.current
        if current_metadata.clustering != metadata.clustering:
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
        present_curve = curve_of(current_metadata.ranks, current_metadata.clustering, current_metadata.schema)
        # A clone has the ranks, and files, of another log, whose versions may be higher.
        generation = (
            max(view.version, 0 if current_metadata.ranks is None else current_metadata.ranks.generation) + 1
        )
        first = generation if present_curve is None else present_curve.ranks.first
        ranks = Ranks(generation=generation, first=first, columns=columns)
        return Draft(events=encode([ClusteringChanged(columns=current_metadata.clustering, ranks=ranks)]))

    return head.commit_or_refresh(decide, None)


def _lacks_boundaries(head: TableHead, files: pa.Table) -> bool:
    """Return whether the table has no boundaries that divide its rows, and may get new boundaries.

    Raises InvalidInput for a table without a key, and for a branch whose table has no boundaries.
    """
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
    file_count = min(SAMPLE_FILES, files.num_rows)
    files = files.take(
        pa.array([number * files.num_rows // file_count for number in range(file_count)], pa.int64())
    )
    every = max(1, sum(files["rows"].to_pylist()) // SAMPLE_ROWS)
    table_log, schema = head.tracked, metadata.schema
    names = list(dict.fromkeys(schema.path_of(id)[0] for id in ids))
    _, batches = read_files(
        table_log.store,
        table_log.prefix,
        files,
        schema,
        metadata.specs,
        columns=names,
        open_url=table_log.log.replay.open_url,
    )
    samples: list[list[pa.Array]] = [[] for _ in ids]
    next_row = 0
    for batch in batches:
        places = range(next_row, batch.num_rows, every)
        next_row = (places[-1] + every if places else next_row) - batch.num_rows
        if not places:
            continue
        rows = pa.Table.from_batches([batch]).take(pa.array(places, pa.int64()))
        for values, id in zip(samples, ids, strict=True):
            values.append(transformed(rows, schema, id, IDENTITY))
    return [pa.concat_arrays(values) for values in samples]


def _type_of(metadata: Metadata, id: int) -> AtomicType:
    type = metadata.schema.field_by_id(id).type
    assert isinstance(type, AtomicType), f"{dotted(metadata.schema.path_of(id))} has an order"
    return type


def plan_next(
    head: TableHead, goal: ClusteringTarget, filter: Filter | None = None, *, until: int, key: Sequence[int]
) -> tuple[pa.Table, list[FileGroup]]:
    """Return the files to rewrite next, of the files that may have matching rows, and their groups.

    See `plan_clustering`. Raises DoneInPart if the table is not clustered by the columns `key` any more.
    """
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
    head: TableHead, goal: ClusteringTarget, limit_bytes: int | None, filter: Filter | None = None
) -> ExpectedClustering:
    """Return the effect of `cluster`, from metadata alone. Raises InvalidInput for a table without a key."""
    files = head.all_files()
    renews = _lacks_boundaries(head, files)
    matching_files = compaction_commit.files_like(head, filter, "clustered")
    return expected(files, matching_files, head.metadata, goal, limit_bytes, renews=renews)


def rewritten(
    head: TableHead,
    files: pa.Table,
    groups: Sequence[FileGroup],
    goal: ClusteringTarget,
    check: Callable[[], None],
    *,
    unless_branched: bool = False,
) -> tuple[TableHead, Compacted]:
    """Rewrite the files of groups in a single commit. Return the newest version, and the result.

    With `unless_branched`, all groups are lost if the table has branches by then.
    """
    metadata = head.metadata
    curve = curve_of(metadata.ranks, metadata.clustering, metadata.schema)
    assert curve is not None, "it was planned by its curve"
    write = head.begin_write()
    rewrites: list[RewrittenFiles] = []
    copies: list[DataFile] = []
    first = 0
    try:
        for group in groups:
            own = files.slice(first, group.files)
            first += group.files
            group_copies = written_rows(
                head.tracked,
                metadata,
                write,
                along_curve(live_rows(head, own, check), curve, metadata.schema),
                row_ids=True,
                target_size_bytes=goal.target_size_bytes,
                cut=group.cut,
                first_number=len(copies),
            )
            copies += group_copies
            rewrites.append(RewrittenFiles(own["path"].to_pylist(), group_copies))
    except BaseException:
        leftovers.delete(head.tracked, [file.path for file in copies])
        raise
    head, lost_groups = committed(head, rewrites, write, check, unless_branched=unless_branched)
    return head, _came_of(groups, rewrites, lost_groups)


def cluster(
    head: TableHead,
    goal: ClusteringTarget,
    limit_bytes: int | None,
    progress: Progress,
    filter: Filter | None = None,
) -> tuple[TableHead, Compacted]:
    """Rewrite due files, some groups a commit, until none are due, or about `limit_bytes` were read.

    Returns the newest version. Raises InvalidInput for a table without a key. Raises CommitConflict if other
    writers keep changing the same files, and DoneInPart if some were rewritten before the store failed.
    """
    head = ranked(head)
    key, until, tries_left, total_result, commits = (
        head.metadata.clustering,
        head.version,
        TRIES_MAX,
        Compacted(),
        0,
    )
    while limit_bytes is None or total_result.read_bytes < limit_bytes:
        remaining_bytes = (
            goal.limit_bytes
            if limit_bytes is None
            else min(goal.limit_bytes, limit_bytes - total_result.read_bytes)
        )
        files, groups = plan_next(
            head, replace(goal, limit_bytes=max(1, remaining_bytes)), filter, until=until, key=key
        )
        if not groups:
            break
        group_bytes = sum(group.size_bytes for group in groups)
        progress(f"clustering {files.num_rows:,} files of {head.name}, {group_bytes:,} bytes")
        base = head.version
        try:
            head, came = rewritten(head, files, groups, goal, lambda: None)
        except StorageError as error:
            if not commits:
                raise
            raise DoneInPart(
                f"of the clustering of {head.name}, {commits} commits have happened: {error}. Cluster the rest again"
            ) from error
        total_result = total_result.and_(came)
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
    return head, total_result
