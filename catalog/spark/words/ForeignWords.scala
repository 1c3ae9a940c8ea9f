package org.apache.spark.sql.lakelog.words

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.{AdapterLog, ErrorInternals, SchemaInternals, SettingInternals}
import org.apache.spark.sql.lakelog.internals.seam.Changes
import org.apache.spark.sql.lakelog.names.{CatalogNames, EntranceNames}

/**
 * Words of Delta, Iceberg and Hudi that lakelog has other words for, or none: what an error says to use. Those that work are
 * with what makes them work. The pages `docs/coming-from-*.md` show each of them, and tests run these.
 */
private[lakelog] object ForeignWords {

  /** What to do instead, by the option's name in small letters. */
  private def table(rows: (String, String)*): Map[String, String] = rows.flatMap { case (names, instead) =>
    names.split(' ').toSeq.map(_.toLowerCase(Locale.ROOT) -> instead)
  }.toMap

  private val changes =
    s"read what versions have changed by ${Changes.read}, with startingVersion and endingVersion"
  private val skips =
    s"use skipChangeCommits, with which a stream skips versions that change rows, or read them by ${Changes.readStream}"
  private val tuning = "leave it out, as lakelog plans its reads by itself"
  private val fileSize = "leave it out, and set the table property lakelog.write.target-file-size-bytes"
  private val codec = "leave it out, and set the table property lakelog.write.parquet.compression-codec"
  private val overwrites =
    "replace the partitions of the rows by writeTo(…).overwritePartitions(), or set spark.sql.sources.partitionOverwriteMode " +
      "for INSERT OVERWRITE"
  private val keys = "write rows by their keys with MERGE INTO"
  private val evolving =
    "leave it out, as a stream that meets other columns stops, and goes on with them when it is restarted"

  private val Options: Map[String, String] = table(
    // Iceberg, reads
    "start-snapshot-id end-snapshot-id start-timestamp end-timestamp" -> changes,
    "stream-from-timestamp" -> "use startingTimestamp, with a time such as 2026-11-20 23:59:00",
    "streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots" -> skips,
    "streaming-max-files-per-micro-batch" -> "use maxFilesPerTrigger",
    "streaming-max-rows-per-micro-batch" -> "use maxRowsPerTrigger",
    "streaming-snapshot-polling-interval-ms async-micro-batch-planning-enabled async-queue-preload-file-limit " +
      "async-queue-preload-row-limit" -> "leave it out, and set the query's trigger",
    "split-size lookback file-open-cost batch-size vectorization-enabled aggregate-push-down-enabled locality " +
      "scan-task-set-id" -> tuning,
    "branch tag" -> "name a tag or branch as in t.branch_trial, or by VERSION AS OF 'trial'; a stream cannot read one",
    "snapshot-id as-of-timestamp" -> "a stream begins at startingVersion or startingTimestamp, and a write changes the newest version",
    // Iceberg, writes
    "overwrite-mode" -> overwrites,
    "isolation-level validate-from-snapshot-id" ->
      ("leave it out, and set the table property lakelog.isolation, or write in a transaction " +
        "(CALL system.begin_transaction())"),
    "write-format delete-format" -> "leave it out, as data files are Parquet",
    "target-file-size-bytes target-delete-file-size-bytes advisory-partition-size" -> fileSize,
    "compression-codec compression-level compression-strategy" -> codec,
    "fanout-enabled distribution-mode use-table-distribution-and-ordering output-spec-id output-sort-order-id" ->
      "leave it out, as rows are written by the table's partitioning and order (ALTER TABLE … WRITE ORDERED BY)",
    "check-nullability check-ordering" -> "leave it out, as rows always have to fit the table",
    "delete-granularity shred-variants variant-inference-buffer-size use-merge-append-for-streaming " +
      "rewritten-file-scan-task-set-id" -> "leave it out",
    // Delta, reads
    "ignoreChanges ignoreDeletes ignoreFileDeletion" -> skips,
    "endingVersion endingTimestamp" -> changes,
    "schemaTrackingLocation schemaLocation streamingSourceTrackingId allowSourceColumnDrop allowSourceColumnRename " +
      "allowSourceColumnTypeChange" -> evolving,
    "excludeRegex" -> "leave it out, and filter rows by where",
    "withEventTimeOrder" -> "leave it out, as a stream reads versions in their order",
    // Delta, writes
    "partitionOverwriteMode" -> overwrites,
    "replaceOn replaceUsing targetAlias" -> "use replaceWhere, or MERGE INTO",
    "userMetadata" -> "leave it out, as each version has its statement, user and application (SELECT * FROM t.history)",
    "dataChange" -> "leave it out, and compact by CALL system.compact",
    "optimizeWrite autoCompact" -> "leave it out, and set the table property lakelog.maintenance = auto",
    "maxRecordsPerFile" -> fileSize,
    "compression parquet.writer.version" -> codec,
    "clusterByAuto writePartitionColumns" -> "leave it out")

  private val property = "it is a table property: set it by ALTER TABLE … SET TBLPROPERTIES or writeTo(…).tableProperty"

  /** What begins so is another's. */
  private val Beginnings: Seq[(String, String)] = Seq(
    "hoodie.datasource.write.recordkey" -> keys,
    "hoodie.datasource.write.precombine" -> keys,
    "hoodie.datasource.write.operation" -> keys,
    "hoodie.datasource.query.type" -> changes,
    "hoodie.datasource.read.begin" -> changes,
    "hoodie.datasource.read.end" -> changes,
    "as.of.instant" -> "use timestampAsOf",
    "hoodie." -> "leave it out, as lakelog has no options of Hudi's",
    "snapshot-property." -> "leave it out, as each version has its statement, user and application (SELECT * FROM t.history)",
    "delta." -> property,
    "write." -> property,
    "lakelog." -> property)

  /** All that lakelog knows of reads, writes and streams. */
  private val Own = Seq(
    "versionAsOf", "timestampAsOf", "branch", "tag", "snapshot-id", "as-of-timestamp", "readChangeFeed",
    "startingVersion",
    "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger", "maxRowsPerTrigger", "skipChangeCommits",
    "failOnDataLoss", "mergeSchema", "merge-schema", "overwriteSchema", "replaceWhere", "txnAppId", "txnVersion",
    "checkpointLocation")

  /** What an error says to do about an option that is not known. */
  def instead(option: String): String = {
    val folded = option.toLowerCase(Locale.ROOT)
    Options.get(folded)
      .orElse(Beginnings.collectFirst { case (begin, instead) if folded.startsWith(begin) => instead })
      .orElse(SettingInternals.nearest(option, Own).map { name =>
        if (name.equalsIgnoreCase(option)) "it is for other reads, writes or streams, so leave it out"
        else s"did you mean '$name'? Otherwise leave it out"
      })
      .getOrElse("leave it out, and use a table property or a session setting")
  }

  private val Procedures: Map[String, String] = table(
    "cherrypick_snapshot publish_changes" ->
      "write to a branch, and publish it by CALL system.fast_forward(table, 'main', branch)",
    "set_current_snapshot" -> "use CALL system.set_current_version(table, version)",
    "ancestors_of" -> "use SELECT version FROM t.history WHERE is_current_ancestor",
    "rewrite_manifests" -> "leave it out, as lakelog keeps its manifests merged by itself",
    "rewrite_position_delete_files" -> "use CALL system.compact(table)",
    "create_changelog_view" ->
      s"use SELECT * FROM t CHANGES FROM VERSION 1, or ${Changes.read}, and createOrReplaceTempView",
    "compute_table_stats compute_partition_stats" -> "use CALL system.compute_statistics(table), or ANALYZE TABLE",
    "migrate snapshot" -> "use CALL system.import_table(source, 'iceberg', table), or 'delta' or 'parquet'",
    "rewrite_table_path" -> "use CALL system.copy(url), which copies a warehouse or a table",
    "convert_to_delta" -> "use CALL system.import_table(source, format, table)",
    // Hudi
    "show_commits show_timeline" -> "use SELECT * FROM t.history",
    "show_savepoints" -> "use SELECT * FROM t.refs",
    "create_savepoint" -> "use ALTER TABLE t CREATE TAG name",
    "delete_savepoint" -> "use ALTER TABLE t DROP TAG name",
    "rollback_to_savepoint rollback_to_instant" -> "use CALL system.rollback_to_version(table, version)",
    "run_compaction" -> "use CALL system.compact(table)",
    "run_clustering" -> "use CALL system.cluster(table)",
    "run_clean" -> "use CALL system.expire(table), then CALL system.vacuum(table)",
    "upgrade_table downgrade_table" -> "leave it out")

  /** Refuses a procedure that is another's, or was meant to be one of `known`. */
  def refuseProcedure(catalog: String, ident: Identifier, known: Iterable[String]): Unit = {
    val name = ident.name.toLowerCase(Locale.ROOT)
    val system = SchemaInternals.quoted(Seq(catalog, CatalogNames.SystemNamespace))
    def refuse(instead: String) = throw ErrorInternals.noSuchRoutine(
      catalog +: ident.namespace.toSeq :+ ident.name, instead.replace("CALL system.", s"CALL $system."))
    Procedures.get(name).foreach(refuse)
    if (!CatalogNames.isSystem(ident.namespace) && known.exists(_ == name))
      refuse(s"its procedures are in the namespace system, so use CALL system.$name(…)")
    if (CatalogNames.isSystem(ident.namespace))
      SettingInternals.nearest(name, known.toSeq).foreach(near => refuse(s"did you mean CALL system.$near(…)?"))
  }

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /**
   * Says what becomes of a provider that a statement or writer names, once for each: it is kept, as SHOW CREATE TABLE shows it, and
   * the table is lakelog's all the same. Writers that name none say parquet.
   */
  def warnOfProvider(table: Seq[String], provider: String): Unit = {
    val isSo = EntranceNames.isFormat(provider) || provider.equalsIgnoreCase("parquet")
    if (!isSo && warned.add(provider.toLowerCase(Locale.ROOT))) AdapterLog.warn(
      s"${SchemaInternals.quoted(table)} is a lakelog table, of Parquet files and lakelog's own log: USING $provider is kept as a word, " +
        "and no table of that format is made. Write USING lakelog, or leave it out.")
  }

  private val MetadataNames: Map[String, String] = table(
    "all_files all_data_files all_entries entries data_files" ->
      "use files, also VERSION AS OF another version",
    "all_manifests" -> "use manifests, also VERSION AS OF another version",
    "delete_files all_delete_files position_deletes" ->
      "use files, whose columns say how many rows of each are deleted",
    "metadata_log_entries" -> "use log or history")

  /** What an error says of a metadata table that is another's, or was misspelled. */
  def insteadOfTable(name: String, known: Iterable[String]): Option[String] =
    MetadataNames.get(name.toLowerCase(Locale.ROOT))
      .orElse(SettingInternals.nearest(name, known.toSeq).map(near => s"did you mean $near?"))
}
