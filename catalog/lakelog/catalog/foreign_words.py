"""The words of delta-rs, pyiceberg and pandas for calls that are called otherwise here.

`foreign_calls` has the errors that quote them. docs/from-python-libraries.md has the same calls. A test
compares the two. An advice ends a sentence, after a colon.
"""

from __future__ import annotations

from collections.abc import Mapping

_FILTER, _COLUMNS = "write filter=", "write columns="
_IF_NOT_EXISTS = "write if_not_exists=True"
_ON_BRANCH = 'write table.at(ref="…"), and call it there'
_EVOLVE = "a write adds no columns, so call table.add_column(…) first"
_OTHER_VERSION = "write table.at(version=…).scan()"
_SELECT = "write table.scan(columns, filter), and call it there"
_SIDES = "an expression names columns as source.… and target.…, so leave it out"
_PAST = "write version=, or timestamp="
_REF = "write ref="

KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "scan": {
        "row_filter": _FILTER,
        "where": _FILTER,
        "predicate": _FILTER,
        "filters": _FILTER,
        "selected_fields": _COLUMNS,
        "select": _COLUMNS,
        "snapshot_id": _OTHER_VERSION,
        "version": _OTHER_VERSION,
        "case_sensitive": "names of columns are found in any case, so leave it out",
        "options": "a scan has none, so leave it out",
    },
    "at": {"snapshot_id": "write version=", "as_of": _PAST, "branch": _REF, "tag": _REF},
    "load_table": {
        "as_of": _PAST,
        "snapshot_id": "write version=",
        "version_as_of": "write version=",
        "timestamp_as_of": "write timestamp=",
        "branch": _REF,
        "tag": _REF,
    },
    "append": {
        "schema_mode": _EVOLVE,
        "merge_schema": _EVOLVE,
        "branch": _ON_BRANCH,
        "mode": "call append(rows), overwrite(rows) or overwrite_partitions(rows)",
        "partition_by": "a table has its partitioning, so leave it out, or call table.set_partitioning(…)",
    },
    "overwrite": {
        "overwrite_filter": _FILTER,
        "predicate": _FILTER,
        "where": _FILTER,
        "schema_mode": _EVOLVE,
        "branch": _ON_BRANCH,
    },
    "delete": {"where": _FILTER, "predicate": _FILTER, "delete_filter": _FILTER, "branch": _ON_BRANCH},
    "update": {
        "updates": "write set=",
        "new_values": "write set=, whose values may be of Python",
        "predicate": "write where=",
        "filter": "write where=",
    },
    "upsert": {"join_cols": "write on=", "keys": "write on=", "df": "write source=", "branch": _ON_BRANCH},
    "merge": {
        "predicate": "write on=",
        "source_alias": _SIDES,
        "target_alias": _SIDES,
        "merge_schema": _EVOLVE,
    },
    **dict.fromkeys(
        ("to_pandas", "to_arrow", "to_polars", "to_batches", "to_reader", "to_duckdb"),
        {name: _SELECT for name in ("columns", "filter", "filters", "partitions", "limit", "row_filter")},
    ),
    "create_table": {
        "exist_ok": _IF_NOT_EXISTS,
        "ignore_if_exists": _IF_NOT_EXISTS,
        "mode": _IF_NOT_EXISTS,
        "partition_spec": "write partition_by=",
        "partitioning": "write partition_by=",
        "sort_order": "write sort_by=",
        "configuration": "write properties=",
        "description": "write comment=",
    },
    "create_namespace": {"exist_ok": _IF_NOT_EXISTS, "ignore_if_exists": _IF_NOT_EXISTS},
    **dict.fromkeys(
        ("drop_table", "drop_namespace", "drop_view", "drop_function"),
        {name: "write missing_ok=True" for name in ("if_exists", "ignore_missing", "ignore_if_not_exists")},
    ),
    "history": {"n": "write limit="},
    "vacuum": {
        "retention_hours": "write older_than=timedelta(hours=…)",
        "enforce_retention_duration": "files of writes that may be under way always stay, so leave it out",
    },
    "compact": {"target_size": "write target_size_bytes=", "partition_filters": _FILTER, "where": _FILTER},
    "changes": {"starting_version": "write first=", "ending_version": "write last="},
    "create_tag": {"snapshot_id": "write version=", "tag_name": "write name="},
    "create_branch": {"snapshot_id": "write version=", "branch_name": "write name="},
}
"""Advice for a keyword that a method does not take, by the method."""

POSITIONAL: Mapping[str, str] = {
    "at": 'write at(version=…), at(timestamp="…") or at(ref="…")',
    "load_table": 'write version=, timestamp="…" or ref="…" after the name',
    "history": "write limit=",
    "overwrite": "write overwrite(rows, filter)",
}
"""Advice for more arguments without a keyword than a method takes."""

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Table": {
        "columns": "write table.arrow_schema.names",
        "fields": "write table.schema.fields",
        "dtypes": "write table.arrow_schema.types",
        "num_rows": "write table.row_count",
        "count": "write table.row_count, or table.scan(filter=…).to_arrow().num_rows",
        "shape": "write table.row_count, and len(table.arrow_schema)",
        "to_pyarrow_table": "write table.to_arrow(), or table.scan(columns, filter).to_arrow()",
        "to_pyarrow_dataset": "write table.scan(filter=…).to_reader(), or give the table itself to a library",
        "to_table": "write table.to_arrow()",
        "to_df": "write table.to_pandas(), or table.to_polars()",
        "select": "write table.scan(columns)",
        "filter": "write table.scan(filter=…)",
        "where": "write table.scan(filter=…)",
        "query": "write table.scan(filter=…), or table.to_duckdb()",
        "insert": "write table.append(rows)",
        "write": "write table.append(rows), or table.overwrite(rows)",
        "dynamic_partition_overwrite": "write table.overwrite_partitions(rows)",
        "load_as_version": "write table.at(version=…), or table.at(timestamp=…)",
        "load_version": "write table.at(version=…)",
        "load_with_datetime": "write table.at(timestamp=…)",
        "snapshot_by_id": "write table.at(version=…)",
        "current_snapshot": "write table.version",
        "snapshots": 'write table.inspect("snapshots")',
        "update_incremental": "write table.refresh()",
        "restore": "write table.rollback_to_version(…), or table.set_current_version(…)",
        "load_cdf": "write table.changes(first, last, updates=True)",
        "optimize": "write table.compact(), or table.set_clustering(columns) and then table.cluster()",
        "z_order": "write table.set_clustering(columns), and then table.cluster()",
        "vacuum": "write catalog.vacuum(name, dry_run=False), after catalog.expire(name, dry_run=False)",
        "expire": "write catalog.expire(name, dry_run=False)",
        "expire_snapshots": "write catalog.expire(name, dry_run=False)",
        "maintenance": "write catalog.expire(name, dry_run=False), or catalog.maintain(name)",
        "manage_snapshots": "write table.create_tag(name), table.create_branch(name) or table.rollback_to_version(…)",
        "update_schema": "write table.alteration(), or table.add_column(name, type)",
        "add_columns": "write table.add_column(name, type)",
        "update_spec": "write table.add_partition_field(field), or table.set_partitioning(fields)",
        "update_properties": "write table.set_properties(…), or table.remove_properties(…)",
        "transaction": "write catalog.transaction(), which has any number of tables",
        "get_add_actions": 'write table.inspect("files")',
        "files": 'write table.inspect("files")',
        "file_uris": 'write table.inspect("files")',
        "partitions": 'write table.inspect("partitions")',
        "detail": "write table.health(), or table.metadata",
        "create_checkpoint": "there is nothing to do: writers leave snapshots by themselves",
        "cleanup_metadata": "write catalog.expire(name, dry_run=False)",
        "drop": "write catalog.drop_table(name)",
        "rename": "write catalog.rename_table(name, new_name)",
    },
    "Scan": {
        "to_table": "write to_arrow()",
        "to_arrow_batch_reader": "write to_reader()",
        "to_pyarrow_table": "write to_arrow()",
        "plan_files": "write plan()",
        "count": "write to_arrow().num_rows, or table.row_count",
        "select": "write table.scan(columns)",
        "filter": "write table.scan(filter=…)",
        "use_ref": 'write table.at(ref="…").scan()',
    },
    "CatalogNames": {
        "create_table_if_not_exists": "write create_table(…, if_not_exists=True)",
        "create_namespace_if_not_exists": "write create_namespace(…, if_not_exists=True)",
        "create_table_transaction": "write catalog.transaction(), and create_table(…) in it",
        "purge_table": "write drop_table(name, purge=True)",
        "load_namespace_properties": "write load_namespace(name)",
        "update_namespace_properties": "write alter_namespace(name, set=…, remove=…)",
        "namespaces": "write list_namespaces()",
        "tables": "write list_tables(namespace)",
        "table": "write load_table(name)",
        "get_table": "write load_table(name)",
        "read_table": "write load_table(name).to_arrow()",
        "sql": "write load_table(name).to_duckdb(), or use `lakelog sql`",
        "close": "there is nothing to close",
    },
}
"""Advice for an attribute that a class does not have."""

ON_METHODS: Mapping[str, Mapping[str, str]] = {
    "inspect": {
        name: f'write table.inspect("{name}")'
        for name in ("snapshots", "files", "partitions", "refs", "history", "entries", "manifests")
    },
    "alter": {
        "add_columns": "write table.add_column(name, type)",
        "add_constraint": "write table.add_constraint(name, check=…)",
        "drop_constraint": "write table.drop_constraint(name)",
        "set_table_properties": "write table.set_properties(…)",
        "add_feature": "a table gets its features from what it uses",
    },
}
"""Advice for an attribute of a method, which is an object elsewhere."""

MODULE: Mapping[str, str] = {
    "load_catalog": 'write Catalog("/tmp/warehouse")',
    "DeltaTable": 'write Catalog("/tmp/warehouse").load_table("shop.orders")',
    "write_deltalake": 'write Catalog("/tmp/warehouse").load_table("shop.orders").append(rows)',
    "StaticTable": 'write Catalog("/tmp/warehouse").table_at(location)',
}
"""Advice for a name that `lakelog.catalog` does not have."""
