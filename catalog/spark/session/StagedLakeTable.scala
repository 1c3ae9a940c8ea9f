package org.apache.spark.sql.lakelog.session

import java.util.Locale

import org.apache.spark.sql.connector.catalog.{StagedTable, TableCatalog}
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.lakelog.files.DataFiles
import org.apache.spark.sql.lakelog.internals.{Failures, LakelogFailure, SettingInternals}
import org.apache.spark.sql.lakelog.table.{LakeTable, TableFacts}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{FileCommit, LakeWriteBuilder, StagedCommit}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A table that no reader sees until its one commit, which carries its metadata and the files written to it.
 *
 * Python made the stage, with all ids in it; it is kept here, so that any Python process can commit it.
 */
private[lakelog] final class StagedLakeTable(table: LakeTable, stage: wire.StagedTable)
  extends SparkTable(table.access, table.facts) with StagedTable {

  override def equals(other: Any): Boolean = this eq other.asInstanceOf[AnyRef]

  override def hashCode(): Int = System.identityHashCode(this)

  private var files: Seq[wire.DataFile] = Nil
  private var asked = false
  private var aborted = false

  /** Whether the table may be visible, even if [[commit]] failed. */
  def mayHaveHappened: Boolean = asked

  override def newWriteBuilder(info: LogicalWriteInfo): LakeWriteBuilder = {
    refuseUnknown(info)
    if (identities.nonEmpty) {
      throw Failures.unsupported(
        s"A table with an identity column cannot be created together with its rows: create $name first, and then insert.")
    }
    new LakeWriteBuilder(this, info, commitOfFiles)
  }

  def refuseUnknown(info: LogicalWriteInfo): Unit = refuseUnknownInWrite(info.options)

  override private[lakelog] def refuseUnknownInWrite(options: CaseInsensitiveStringMap): Unit =
    refuseUnknown(options, "write", obeyedOptions)

  /** Keeps the files that are written, for the table's commit. */
  def commitOfFiles: FileCommit =
    new StagedCommit(stage.write, written => files = files ++ written)

  /** Spark gives a path to the writer too, and keeps a statement's OPTIONS among the table's properties. */
  private def obeyedOptions: Set[String] = {
    val stored = facts.properties.keySet.filter(_.startsWith(TableCatalog.OPTION_PREFIX))
      .map(_.stripPrefix(TableCatalog.OPTION_PREFIX).toLowerCase(Locale.ROOT))
    if (facts.ownLocation) stored + "path" else stored
  }

  /** Both of Spark's roles have this one. */
  override def reportDriverMetrics(): Array[CustomTaskMetric] = Array.empty

  override def commitStagedChanges(): Unit = commit()

  /** Makes the table visible and returns it. The same stage may be committed again; it happens once. */
  def commit(): LakeTable = {
    if (aborted) throw new IllegalStateException(
      s"The staged table $name was aborted, and its files are deleted: stage it again.")
    val request = wire.CommitStage(stage, files)
    asked = true
    try {
      val committed = new SparkTable(access, TableFacts(access.channel.change(request)))
      access.wrote(facts.location, files)
      committed
    } catch {
      case failure: LakelogFailure =>
        asked = failure.outcomeUnknown
        throw access.failures.ofTable(failure, access.ident)
    }
  }

  /** Removes the files, unless the commit may have happened after all. */
  override def abortStagedChanges(): Unit = if (!mayHaveHappened) {
    aborted = true
    DataFiles.deleteAll(facts.location, files, SettingInternals.hadoopConf(facts.location, access.hadoopSettings))
    files = Nil
  }
}
