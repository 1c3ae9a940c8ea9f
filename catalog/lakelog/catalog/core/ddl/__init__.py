"""Namespaces, tables, views, functions: created, staged, registered, renamed, dropped, restored; saved cuts of them.

Rule: a name leads to a log by a link in its namespace; a change of several logs is one transaction.
It must not know rows: contents of a staged table come as finished entries of files.
"""

from lakelog.catalog.core.ddl.definitions import (
    define,
    drop_definition,
    find_definition,
    load_definition,
    rename_definition,
    undrop_definition,
)
from lakelog.catalog.core.ddl.drop import (
    drop_namespace,
    drop_table,
    drop_table_at,
)
from lakelog.catalog.core.ddl.dropped import (
    DroppedEntry,
    list_dropped,
)
from lakelog.catalog.core.ddl.kept_for_cuts import (
    NeededVersions,
    holders_of,
)
from lakelog.catalog.core.ddl.namespaces import (
    alter_namespace,
    create_namespace,
)
from lakelog.catalog.core.ddl.register import (
    register_table,
)
from lakelog.catalog.core.ddl.restore import (
    undrop_namespace,
    undrop_table,
)
from lakelog.catalog.core.ddl.saved_cuts import (
    all_cuts,
    collect,
    cut_of,
    decode_cut,
    drop_cut,
    folder_of_cuts,
    save_cut,
    versions_of,
)
from lakelog.catalog.core.ddl.staging import (
    CREATE,
    Stage,
    commit_stage,
    create_from,
    created_event,
)
from lakelog.catalog.core.ddl.table_places import (
    LOCATION,
    table_folders,
)
from lakelog.catalog.core.ddl.tables import (
    StageRequest,
    rename_table,
    stage_table,
)

__all__ = [
    "LOCATION",
    "CREATE",
    "decode_cut",
    "DroppedEntry",
    "NeededVersions",
    "Stage",
    "StageRequest",
    "all_cuts",
    "alter_namespace",
    "collect",
    "commit_stage",
    "create_from",
    "create_namespace",
    "created_event",
    "cut_of",
    "define",
    "drop_cut",
    "drop_definition",
    "drop_namespace",
    "drop_table",
    "drop_table_at",
    "find_definition",
    "holders_of",
    "folder_of_cuts",
    "list_dropped",
    "load_definition",
    "register_table",
    "rename_definition",
    "rename_table",
    "save_cut",
    "stage_table",
    "table_folders",
    "undrop_definition",
    "undrop_namespace",
    "undrop_table",
    "versions_of",
]
