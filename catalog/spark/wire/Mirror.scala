// Written by scripts/wire from lakelog.spark.requests.*: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

import org.apache.spark.sql.lakelog.{Frame, Json}

/** Reads and writes requests and answers again, so that a test can compare them with those of Python. */
private[lakelog] object Mirror {

  /** The request as the adapter would write it, in its transaction and for its statement. */
  def request(method: String, text: String): String = {
    val json = Frame.parsed(text.getBytes(java.nio.charset.StandardCharsets.UTF_8))
    val read = requests(method)(json)
    require(read.method == method)
    Json.text(Scope.of(json).on(read))
  }

  def answer(name: String, text: String): String =
    Json.text(answers(name)(Frame.parsed(text.getBytes(java.nio.charset.StandardCharsets.UTF_8))).json)

  private val requests: Map[String, JObject => Request[_]] = Map(
    "hello" -> ((Hello.of _): JObject => Request[_]),
    "open_catalog" -> ((OpenCatalog.of _): JObject => Request[_]),
    "close_catalog" -> ((CloseCatalog.of _): JObject => Request[_]),
    "list_namespaces" -> ((ListNamespaces.of _): JObject => Request[_]),
    "namespace_exists" -> ((NamespaceExists.of _): JObject => Request[_]),
    "load_namespace" -> ((LoadNamespace.of _): JObject => Request[_]),
    "create_namespace" -> ((CreateNamespace.of _): JObject => Request[_]),
    "alter_namespace" -> ((AlterNamespace.of _): JObject => Request[_]),
    "drop_namespace" -> ((DropNamespace.of _): JObject => Request[_]),
    "list_tables" -> ((ListTables.of _): JObject => Request[_]),
    "table_exists" -> ((TableExists.of _): JObject => Request[_]),
    "load_table" -> ((LoadTable.of _): JObject => Request[_]),
    "load_relation" -> ((LoadRelation.of _): JObject => Request[_]),
    "alter_table" -> ((AlterTable.of _): JObject => Request[_]),
    "drop_table" -> ((DropTable.of _): JObject => Request[_]),
    "rename_table" -> ((RenameTable.of _): JObject => Request[_]),
    "stage" -> ((StageTable.of _): JObject => Request[_]),
    "prepare_table" -> ((PrepareTable.of _): JObject => Request[_]),
    "commit_stage" -> ((CommitStage.of _): JObject => Request[_]),
    "plan" -> ((Plan.of _): JObject => Request[_]),
    "plan_cut" -> ((PlanCut.of _): JObject => Request[_]),
    "read_together" -> ((ReadTogether.of _): JObject => Request[_]),
    "can_delete" -> ((CanDelete.of _): JObject => Request[_]),
    "can_overwrite" -> ((CanOverwrite.of _): JObject => Request[_]),
    "can_change" -> ((CanChange.of _): JObject => Request[_]),
    "aggregate" -> ((Aggregate.of _): JObject => Request[_]),
    "delete" -> ((Delete.of _): JObject => Request[_]),
    "truncate" -> ((Truncate.of _): JObject => Request[_]),
    "begin_write" -> ((BeginWrite.of _): JObject => Request[_]),
    "begin_batch" -> ((BeginBatch.of _): JObject => Request[_]),
    "commit_write" -> ((CommitWrite.of _): JObject => Request[_]),
    "commit_rows" -> ((CommitRows.of _): JObject => Request[_]),
    "token" -> ((MakeToken.of _): JObject => Request[_]),
    "plan_compaction" -> ((PlanCompaction.of _): JObject => Request[_]),
    "commit_compaction" -> ((CommitCompaction.of _): JObject => Request[_]),
    "load_changes" -> ((LoadChanges.of _): JObject => Request[_]),
    "plan_changes" -> ((PlanChanges.of _): JObject => Request[_]),
    "stream_form" -> ((StreamForm.of _): JObject => Request[_]),
    "stream_start" -> ((StreamStart.of _): JObject => Request[_]),
    "stream_head" -> ((StreamHead.of _): JObject => Request[_]),
    "stream_next" -> ((StreamNext.of _): JObject => Request[_]),
    "stream_files" -> ((StreamFiles.of _): JObject => Request[_]),
    "create_ref" -> ((CreateRef.of _): JObject => Request[_]),
    "drop_ref" -> ((DropRef.of _): JObject => Request[_]),
    "partitions" -> ((ListPartitions.of _): JObject => Request[_]),
    "partition_keys" -> ((PartitionKeys.of _): JObject => Request[_]),
    "add_partitions" -> ((AddPartitions.of _): JObject => Request[_]),
    "drop_partitions" -> ((DropPartitions.of _): JObject => Request[_]),
    "truncate_partitions" -> ((TruncatePartitions.of _): JObject => Request[_]),
    "rename_partition" -> ((RenamePartition.of _): JObject => Request[_]),
    "list_views" -> ((ListViews.of _): JObject => Request[_]),
    "list_relations" -> ((ListRelations.of _): JObject => Request[_]),
    "view_exists" -> ((ViewExists.of _): JObject => Request[_]),
    "define_view" -> ((DefineView.of _): JObject => Request[_]),
    "drop_view" -> ((DropView.of _): JObject => Request[_]),
    "rename_view" -> ((RenameView.of _): JObject => Request[_]),
    "list_functions" -> ((ListFunctions.of _): JObject => Request[_]),
    "load_function" -> ((LoadFunction.of _): JObject => Request[_]),
    "create_function" -> ((CreateFunction.of _): JObject => Request[_]),
    "drop_function" -> ((DropFunction.of _): JObject => Request[_]),
    "procedures" -> ((ListProcedures.of _): JObject => Request[_]),
    "call_token" -> ((CallToken.of _): JObject => Request[_]),
    "call_prepare" -> ((CallPrepare.of _): JObject => Request[_]),
    "call" -> ((Call.of _): JObject => Request[_]),
    "transaction_token" -> ((TransactionToken.of _): JObject => Request[_]),
    "abandon_transaction" -> ((AbandonTransaction.of _): JObject => Request[_]),
    "system_tables" -> ((ListSystemTables.of _): JObject => Request[_]),
    "read_system_table" -> ((ReadSystemTable.of _): JObject => Request[_]),
    "metadata_table" -> ((DescribeMetadataTable.of _): JObject => Request[_]),
    "read_metadata_table" -> ((ReadMetadataTable.of _): JObject => Request[_]))

  private val answers: Map[String, JObject => Message] = Map(
    "Begun" -> (Begun.of _: JObject => Message),
    "ChangesFacts" -> (ChangesFacts.of _: JObject => Message),
    "Closed" -> (Closed.of _: JObject => Message),
    "CompactionPlan" -> (CompactionPlan.of _: JObject => Message),
    "Complete" -> (Complete.of _: JObject => Message),
    "Done" -> (Done.of _: JObject => Message),
    "Dropped" -> (Dropped.of _: JObject => Message),
    "Exists" -> (Exists.of _: JObject => Message),
    "Form" -> (Form.of _: JObject => Message),
    "FoundFunction" -> (FoundFunction.of _: JObject => Message),
    "FoundView" -> (FoundView.of _: JObject => Message),
    "Functions" -> (Functions.of _: JObject => Message),
    "Job" -> (Job.of _: JObject => Message),
    "Known" -> (Known.of _: JObject => Message),
    "Lost" -> (Lost.of _: JObject => Message),
    "MetadataTable" -> (MetadataTable.of _: JObject => Message),
    "NamespaceFacts" -> (NamespaceFacts.of _: JObject => Message),
    "Namespaces" -> (Namespaces.of _: JObject => Message),
    "Next" -> (Next.of _: JObject => Message),
    "Opened" -> (Opened.of _: JObject => Message),
    "Position" -> (Position.of _: JObject => Message),
    "Possible" -> (Possible.of _: JObject => Message),
    "Procedures" -> (Procedures.of _: JObject => Message),
    "Relations" -> (Relations.of _: JObject => Message),
    "Rows" -> (Rows.of _: JObject => Message),
    "Staged" -> (Staged.of _: JObject => Message),
    "Streams" -> (Streams.of _: JObject => Message),
    "SystemTables" -> (SystemTables.of _: JObject => Message),
    "TableFacts" -> (TableFacts.of _: JObject => Message),
    "Tables" -> (Tables.of _: JObject => Message),
    "TokenOfCall" -> (TokenOfCall.of _: JObject => Message),
    "Versions" -> (Versions.of _: JObject => Message),
    "Views" -> (Views.of _: JObject => Message),
    "Welcome" -> (Welcome.of _: JObject => Message),
    "Written" -> (Written.of _: JObject => Message))
}
