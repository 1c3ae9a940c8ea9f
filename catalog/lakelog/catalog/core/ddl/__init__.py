"""Statements on namespaces, tables, views and functions, from creation to restore; saved cuts of them.

Rule: a name leads to a log by a link in its namespace; a change of several logs is a single transaction.

It must not know rows: contents of a staged table come as finished file entries.
"""

from lakelog.catalog.core.ddl.definitions import (
    define,
    drop_definition,
    find_definition,
    load_definition,
    raise_missing,
    rename_definition,
    undrop_definition,
)
from lakelog.catalog.core.ddl.drop import drop_namespace, drop_table, drop_table_at
from lakelog.catalog.core.ddl.dropped import DroppedEntry, list_dropped
from lakelog.catalog.core.ddl.kept_for_cuts import NeededVersions, holders_of
from lakelog.catalog.core.ddl.namespaces import alter_namespace, create_namespace
from lakelog.catalog.core.ddl.register import register_table
from lakelog.catalog.core.ddl.restore import undrop_namespace, undrop_table
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
from lakelog.catalog.core.ddl.staging import CREATE, StagedTable, commit_stage, create_from, created_event
from lakelog.catalog.core.ddl.table_places import LOCATION, new_table, table_folders
from lakelog.catalog.core.ddl.tables import StageRequest, rename_table, stage_table

__all__ = [
    "CREATE",
    "DroppedEntry",
    "LOCATION",
    "NeededVersions",
    "StagedTable",
    "StageRequest",
    "all_cuts",
    "alter_namespace",
    "collect",
    "commit_stage",
    "create_from",
    "create_namespace",
    "created_event",
    "cut_of",
    "decode_cut",
    "define",
    "drop_cut",
    "drop_definition",
    "drop_namespace",
    "drop_table",
    "drop_table_at",
    "find_definition",
    "folder_of_cuts",
    "holders_of",
    "list_dropped",
    "load_definition",
    "raise_missing",
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
    "new_table",
]
