"""For each file of `catalog/spark/internals` a test that runs it, on every version of Spark with each change.

All others that are marked `adapter` run on older versions with `scripts/test --full spark-4.2` and so on.
"""

from __future__ import annotations

_RACES = "rows/test_row_races.py::test_changes_of_other_rows_of_one_file_go_through[merge-on-read]"

TESTS = {
    "AdapterLog": "test_child.py::test_a_child_killed_while_idle_is_started_again",
    "CheckpointMark": "streaming/test_sink.py::test_a_checkpoint_past_a_restored_table_is_refused",
    "CloudAccess": "test_clouds.py::test_credentials_for_azure_are_named_by_their_variables",
    "ColumnInternals": "sql/test_create.py::test_like_copies_clustering_and_order_and_no_rows",
    "ConditionColumns": "sql/test_constraints.py::test_a_check_holds_for_every_write",
    "ErrorInternals": "sql/test_create.py::test_an_external_table_has_to_have_a_location",
    "Failures": "sql/test_create.py::test_an_external_table_has_to_have_a_location",
    "FilterInternals": "rows/test_writes.py::test_every_transform_partitions_rows_and_prunes_files",
    "PlanInternals": (
        "rows/test_storage_partitioned_joins.py::test_filters_at_run_time_leave_the_keys_as_they_are"
    ),
    "S3Access": "test_s3_first.py::test_without_s3a_nothing_is_created",
    "SchemaInternals": "test_tables.py::test_all_types_that_parquet_holds_make_the_round_trip",
    "ScriptText": "test_one_moment.py::test_a_schema_change_and_its_data_are_one_commit",
    "SessionInternals": "test_tables.py::test_names_without_a_catalog_are_found_after_use",
    "SettingInternals": (
        "rows/test_reads.py::test_blanks_behind_a_char_count_where_a_session_takes_it_for_a_text"
    ),
    "SparkAbilities": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "SqlTokens": (
        "sql/test_evolution.py::"
        "test_partition_fields_are_added_replaced_and_dropped_and_all_rows_stay_readable"
    ),
    "StatementInternals": "test_one_moment.py::test_a_schema_change_and_its_data_are_one_commit",
    "additions/Additions": (
        "sql/test_views.py::test_statements_do_and_show_what_those_of_sparks_own_catalog_do"
    ),
    "additions/CatalogCalls": (
        "sql/test_functions.py::test_names_in_a_body_are_those_of_the_catalog_and_namespace_of_its_creation"
    ),
    "additions/ChangesClauses": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "additions/ChangesFound": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "additions/ClauseScanner": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "additions/ColumnsAsAnalysed": (
        "rows/test_column_ids.py::test_a_column_that_took_the_name_of_a_renamed_one_is_another_one"
    ),
    "additions/CreateViews": (
        "sql/test_views.py::test_statements_do_and_show_what_those_of_sparks_own_catalog_do"
    ),
    "additions/FunctionCalls": "sql/test_functions.py::test_functions_of_spark_stay_what_they_are",
    "additions/LeftOutColumns": (
        "sql/test_made_values.py::"
        "test_an_updated_row_keeps_its_identity_value_and_an_inserted_one_gets_the_next"
    ),
    "additions/MergesThatAdd": (
        "rows/test_row_races.py::test_a_merge_that_only_adds_rows_has_read_what_could_match_and_no_more"
    ),
    "additions/NewerWords": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "additions/RefusedHere": "test_one_moment.py::test_a_schema_change_and_its_data_are_one_commit",
    "additions/TablesLike": "sql/test_create.py::test_like_copies_clustering_and_order_and_no_rows",
    "additions/ViewCommands": "sql/test_views.py::test_what_show_create_shows_creates_the_same_view",
    "additions/ViewPlans": (
        "sql/test_views.py::test_a_view_means_the_names_of_the_catalog_and_namespace_of_its_creation"
    ),
    "additions/ViewRelations": "sql/test_views.py::test_a_view_reads_what_its_table_has_now",
    "additions/ViewStatements": "sql/test_views.py::test_renames_move_a_view_within_a_namespace_and_across",
    "files/ArrowInternals": (
        "sql/test_metadata_tables.py::test_files_are_those_on_disk_with_what_their_footers_say"
    ),
    "files/CurvePlace": "sql/test_cluster.py::test_one_job_and_one_commit_put_all_partitions_in_order",
    "files/FooterInternals": "sql/test_add_files.py::test_names_of_folders_are_columns_and_partitions",
    "files/JobInternals": (
        "sql/test_compute_statistics.py::"
        "test_what_a_job_counts_is_kept_with_its_version_and_seen_by_all_clients"
    ),
    "files/KnownFile": "rows/test_reads.py::test_the_row_reader_and_the_column_reader_agree",
    "files/OldRowDefaults": (
        "rows/test_reads.py::test_the_row_reader_finds_defaults_of_columns_that_stand_before_others"
    ),
    "files/PackedFiles": "rows/test_planned_files.py::test_parts_of_files_are_those_that_spark_makes",
    "files/ReadInternals": "rows/test_reads.py::test_the_row_reader_and_the_column_reader_agree",
    "files/RowInternals": "sql/test_rows.py::test_schema_evolution_and_rows_are_one_commit",
    "files/SourceFiles": _RACES,
    "files/TransformExpression": "rows/test_writes.py::test_every_transform_partitions_rows_and_prunes_files",
    "files/WriteInternals": "rows/test_writes.py::test_the_sessions_settings_do_not_change_what_files_hold",
    "functions/BoundSqlFunction": (
        "sql/test_functions.py::test_names_in_a_body_are_those_of_the_catalog_and_namespace_of_its_creation"
    ),
    "functions/ClassFunctions": "sql/test_class_functions.py::test_classes_of_a_jar_are_functions",
    "functions/FunctionDefinitions": (
        "sql/test_functions.py::test_all_that_is_known_of_a_function_is_described"
    ),
    "functions/FunctionInfo": "sql/test_functions.py::test_all_that_is_known_of_a_function_is_described",
    "functions/FunctionInternals": "sql/test_functions.py::test_all_that_is_known_of_a_function_is_described",
    "functions/FunctionsInUse": "sql/test_functions.py::test_a_function_that_would_call_itself_is_refused",
    "functions/SqlFunctionAnalysis": "sql/test_functions.py::test_what_is_temporary_cannot_be_in_a_function",
    "functions/StoredFunction": "sql/test_functions.py::test_all_that_is_known_of_a_function_is_described",
    "plans/CachedTables": (
        "sql/test_procedures.py::test_what_is_cached_is_read_anew_after_a_procedure_changed_it"
    ),
    "plans/ConstraintInternals": "sql/test_constraints.py::test_a_check_holds_for_every_write",
    "plans/FileConditions": "sql/test_compact.py::test_where_chooses_files",
    "plans/KeptRows": (
        "rows/test_moving_sources.py::test_no_key_is_inserted_twice_whatever_the_source_says_next"
    ),
    "plans/MergeKeys": _RACES,
    "plans/OneRowScans": (
        "rows/test_storage_partitioned_joins.py::test_what_becomes_one_row_is_packed_unless_it_is_grouped_first"
    ),
    "plans/OverwriteInternals": (
        "sql/test_overwriting.py::"
        "test_conditions_that_only_spark_evaluates_replace_the_rows_of_which_they_are_true"
    ),
    "plans/RepeatableRows": (
        "rows/test_small_sources.py::test_what_may_be_others_when_it_is_read_again_is_joined_by_spark"
    ),
    "seam/Changes": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "seam/Checks": "sql/test_constraints.py::test_a_check_holds_for_every_write",
    "seam/Columns": "test_tables.py::test_all_types_that_parquet_holds_make_the_round_trip",
    "seam/Errors": "sql/test_functions.py::test_what_is_temporary_cannot_be_in_a_function",
    "seam/Files": "sql/test_procedures.py::test_what_is_cached_is_read_anew_after_a_procedure_changed_it",
    "seam/Functions": (
        "sql/test_functions.py::test_names_in_a_body_are_those_of_the_catalog_and_namespace_of_its_creation"
    ),
    "seam/NewerBatchWrite": _RACES,
    "seam/Pipelines": (
        "test_pipelines.py::test_a_refresh_is_one_version_and_a_run_that_fails_leaves_the_view"
    ),
    "seam/RowChanges": _RACES,
    "seam/NewerStagingCatalog": "sql/test_session_catalog.py::test_both_kinds_are_listed_together",
    "seam/NewerTableCatalog": "sql/test_create.py::test_like_copies_clustering_and_order_and_no_rows",
    "seam/Relations": "sql/test_views.py::test_a_view_reads_what_its_table_has_now",
    "seam/Statements": "sql/test_looking.py::test_statements_show_what_they_show_of_a_table_of_sparks_own",
    "seam/Streams": "streaming/test_sink.py::test_a_checkpoint_past_a_restored_table_is_refused",
    "seam/Tables": "sql/test_session_catalog.py::test_both_kinds_are_listed_together",
    "seam/Transactions": "test_one_moment.py::test_a_schema_change_and_its_data_are_one_commit",
    "seam/Types": "rows/test_writes.py::test_every_transform_partitions_rows_and_prunes_files",
    "seam/Views": "sql/test_views.py::test_a_view_reads_what_its_table_has_now",
    "seam/package": "test_tables.py::test_names_without_a_catalog_are_found_after_use",
    "shows/DescribedViews": (
        "sql/test_views.py::test_texts_of_stated_lengths_are_in_a_view_what_they_are_in_its_table"
    ),
    "shows/MarkedTable": "sql/test_show_create.py::test_values_begin_where_they_began",
    "shows/ShowBoth": "sql/test_session_catalog.py::test_both_kinds_are_listed_together",
    "shows/ShowCreateTables": "sql/test_show_create.py::test_values_begin_where_they_began",
    "statements/EarlyRewrite": "sql/test_references.py::test_a_tag_and_a_branch_are_read_by_their_names",
    "statements/LakeCommand": "sql/test_evolution.py::test_what_is_changed_is_shown_to_other_sessions",
    "statements/LakeNames": "sql/test_functions.py::test_functions_of_spark_stay_what_they_are",
    "statements/LakeParser": (
        "sql/test_evolution.py::test_other_statements_and_parameters_are_for_sparks_own_parser"
    ),
    "statements/LakeStatement": (
        "sql/test_evolution.py::"
        "test_partition_fields_are_added_replaced_and_dropped_and_all_rows_stay_readable"
    ),
    "statements/MadeValues": (
        "sql/test_made_values.py::"
        "test_an_updated_row_keeps_its_identity_value_and_an_inserted_one_gets_the_next"
    ),
    "statements/OtherWords": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "statements/OutermostParser": (
        "sql/test_foreign_words.py::test_other_extensions_keep_their_words_in_both_orders"
    ),
    "statements/QuickRows": (
        "sql/test_looking.py::test_statements_show_what_they_show_of_a_table_of_sparks_own"
    ),
    "statements/SessionNames": (
        "sql/test_session_catalog.py::test_if_not_exists_is_content_with_what_the_other_has"
    ),
    "statements/StatementWords": (
        "sql/test_evolution.py::"
        "test_partition_fields_are_added_replaced_and_dropped_and_all_rows_stay_readable"
    ),
    "statements/WritesByName": (
        "test_renamed_tables.py::test_a_statement_goes_to_the_table_that_got_its_name_while_it_ran"
    ),
    "statements/WriteTargets": (
        "sql/test_made_values.py::test_views_and_frames_of_a_table_are_read_by_statements_that_change_it"
    ),
    "streams/ChangesApart": "rows/test_changes.py::test_changes_are_a_view_and_are_written_like_other_rows",
    "streams/ComparedChanges": "streaming/test_changes.py::test_updates_are_shown_as_such",
    "streams/ComparedChangesExec": "streaming/test_changes.py::test_updates_are_shown_as_such",
    "streams/StreamedTexts": "streaming/test_source.py::test_a_stream_reads_texts_of_stated_lengths",
}


def runs_internals(test: str) -> bool:
    """Whether a test is one of these, by its id. One that is named without parameters is, with all of them."""
    return test in _IDS or test.partition("[")[0] in _IDS


_IDS = {f"tests/spark/{test}" for test in TESTS.values()}
