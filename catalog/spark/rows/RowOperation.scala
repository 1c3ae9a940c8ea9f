package org.apache.spark.sql.lakelog.rows

import java.util.Locale

import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite
import org.apache.spark.sql.connector.distributions.{Distribution, UnspecifiedDistribution}
import org.apache.spark.sql.connector.expressions.{NamedReference, SortOrder}
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.{RequiresDistributionAndOrdering, RowLevelOperation, RowLevelOperationTable, WriterCommitMessage}
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.files.RowFact
import org.apache.spark.sql.lakelog.internals.{PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.plans.MergeKeys
import org.apache.spark.sql.lakelog.internals.seam.NewerBatchWrite
import org.apache.spark.sql.lakelog.read.{LakeScan, LakeScanBuilder, ScanUse}
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.lakelog.write.{RowOrder, WriteMetrics, WriteTasks}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A DELETE, UPDATE or MERGE on one version of a table. Spark asks for what it reads first, then for what it writes.
 */
private[lakelog] abstract class RowOperation(table: LakeTable, kind: Command, use: ScanUse)
  extends RowLevelOperation {

  private var reads: Option[(LakeScan, ReadTogether)] = None

  /** What a MERGE compares with the table's columns, if that is known. */
  @volatile var keys: Option[MergeKeys] = None

  /** Whether Spark finds out which files or partitions have rows that match, before it reads these rows. */
  def looksFirst: Boolean = use.looksFirst

  /** The name of the table. */
  def name: String = table.name

  /** The users' functions in the condition by which it chooses rows. */
  @volatile var functions: Seq[String] = Nil

  override def command(): Command = kind

  override def description(): String = s"lakelog ${kind.name.toLowerCase(Locale.ROOT)} of ${table.name}"

  override def toString: String = description()

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val together = ReadTogether.joined(table)
    new LakeScanBuilder(table, together, options, use, scan => reads = Some((scan, together)))
  }

  protected def fact(of: RowFact): NamedReference = SchemaInternals.reference(Seq(table.physical.metadata.name(of)))

  /** How to commit what the scan that was built last has found. If no row can match, Spark builds none. */
  protected def commit: RowCommit =
    new RowCommit(table, kind, reads.map(_._1), reads.map(_._2), keys, Deciders(kind, name, functions))
}

/**
 * The order in which rows come that an operation writes. How large the parts of a shuffle should be is given only if
 * there is one: otherwise Spark refuses it.
 */
private[lakelog] abstract class RowWrite(table: LakeTable, commit: RowCommit)
  extends RequiresDistributionAndOrdering {

  protected val order = new RowOrder(table.facts)

  /** Spark shows this in plans. */
  override def toString: String = description()

  override def supportedCustomMetrics(): Array[CustomMetric] = WriteMetrics.all

  /** Spark asks once all is committed. */
  override def reportDriverMetrics(): Array[CustomTaskMetric] = WriteMetrics.of(commit.changed, commit.cost)

  override def distributionStrictlyRequired(): Boolean = false

  override def advisoryPartitionSizeInBytes(): Long = requiredDistribution() match {
    case _: UnspecifiedDistribution => 0
    case _: Distribution => table.facts.targetFileBytes
  }

  override def requiredOrdering(): Array[SortOrder] = order.ordering
}

private[lakelog] object RowOperation {

  /** The operation of a statement that changes rows of a table of lakelog's; None of other tables. */
  def of(write: RowLevelWrite): Option[RowOperation] = write.table match {
    case PlanInternals.TableOf(RowLevelOperationTable(_: LakeTable, operation: RowOperation)) => Some(operation)
    case _ => None
  }
}

/** What the tasks of an operation have written. Its files are removed when it fails, unless they may be in the table. */
private[lakelog] abstract class RowBatch(table: LakeTable, commit: RowCommit) extends NewerBatchWrite {

  override def abort(messages: Array[WriterCommitMessage]): Unit =
    if (!commit.mayHaveHappened) WriteTasks.deleteFiles(table, written(messages).flatMap(_.dataFiles))

  protected def written(messages: Array[WriterCommitMessage]): Seq[RowsWritten] =
    messages.toSeq.collect { case rows: RowsWritten => rows }
}
