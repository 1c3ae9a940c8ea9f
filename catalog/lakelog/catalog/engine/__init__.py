"""The engine's door: the part of the catalog that lakelog's own adapters use, and `lakelog.catalog` does not
export.

from lakelog.catalog import engine

    write = engine.begin_write(table)
    table = engine.commit_write(table, write, "append", files)

Rule: these are functions over a table or a catalog of the users' door, and the types that they take and
return. An adapter (Spark, the REST catalog, the command) imports nothing else of the core. `backups`,
`exports` and `upkeep` load more than the core, so their users import these modules themselves. It must not
know Spark.
"""

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.ddl import StagedTable
from lakelog.catalog.core.files import (
    ColumnEstimates,
    DataFile,
    DeletedPositions,
    TableEstimates,
    joined,
)
from lakelog.catalog.core.logs import (
    RUN_COMMAND,
    RUN_STATEMENT,
    SEND_REQUEST,
    FoundName,
    LogCache,
    NameTree,
    TableHead,
    Token,
    WarehouseStores,
    advising,
    check_not_own,
    writer_facts,
    writing_as,
)
from lakelog.catalog.core.planning import Bound, TopRows, partition_values, terms, typed
from lakelog.catalog.core.schema import (
    BLOOM_FPP,
    BLOOM_NDV,
    COMPRESSION_CODEC,
    FUNCTION,
    TARGET_FILE_SIZE,
    VIEW,
    WRITE_MODES,
    CheckConstraint,
    ForeignKey,
    StatedConstraint,
    StatedField,
    ValuesTaken,
    Written,
    apply_changes,
    bloom_columns,
    bounds_now,
    is_of,
    schema_from_arrow,
    schema_from_spark,
    schema_to_spark,
    shown_names,
    transform_to_json,
    type_from_spark,
)
from lakelog.catalog.core.state import (
    BRANCH,
    MAIN,
    TAG,
    USER,
    ClusteringTarget,
    CompactionTarget,
    FileGroup,
    SqlToken,
    bounded_facts,
    clustering_goal,
    form_of,
    goal_of,
    sql_tokens,
    with_statement,
)
from lakelog.catalog.core.tools import answer_of, package, visible
from lakelog.catalog.core.writes import RewrittenFiles, check_takes
from lakelog.catalog.engine.definitions import (
    author_of_definition,
    author_of_text,
    create_function,
    create_view,
    replace_view,
)
from lakelog.catalog.engine.last_commits import CommitOfTable, newest_commits
from lakelog.catalog.engine.log_versions import log_versions
from lakelog.catalog.engine.names import (
    commit_stage,
    drop_table_at,
    list_relations,
    load_relation,
    relation_names,
    stage,
    table_names,
)
from lakelog.catalog.engine.one_moment import read_together
from lakelog.catalog.engine.plans import (
    can_delete,
    can_overwrite,
    clustering_overlap,
    estimates,
    identity_values,
    left_out_by_partition,
    places,
    plan,
    plan_clustering,
    plan_compaction,
    plan_partial,
    ranked,
)
from lakelog.catalog.engine.single_partitions import (
    add_partitions,
    drop_partitions,
    partitions,
    plan_rename,
    rename_partition,
    truncate_partitions,
)
from lakelog.catalog.engine.tokens import (
    commit_token,
    has_happened,
    token_at,
    token_of_write,
    was_committed,
)
from lakelog.catalog.engine.writes import (
    add_found_files,
    begin_write,
    commit_compaction,
    commit_rows,
    commit_statistics,
    commit_write,
    replace_branch,
    replace_tag,
)
from lakelog.catalog.name_hints import without_suggestions
from lakelog.log import WriteRef
