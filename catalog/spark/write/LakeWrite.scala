package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.distributions.Distribution
import org.apache.spark.sql.connector.expressions.SortOrder
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.connector.write.{BatchWrite, LogicalWriteInfo, RequiresDistributionAndOrdering}
import org.apache.spark.sql.lakelog.table.LakeTable

/** A write of rows that come clustered by partition and sorted by the table's order. */
private[lakelog] final class LakeWrite(
    table: LakeTable, info: LogicalWriteInfo, operation: WriteOperation, commit: FileCommit)
  extends RequiresDistributionAndOrdering {

  private val order = new RowOrder(table.facts)

  override def description(): String = s"lakelog ${operation.name} to ${table.name}"

  /** Spark shows this in plans. */
  override def toString: String = description()

  override def supportedCustomMetrics(): Array[CustomMetric] =
    if (commit.isReported) WriteMetrics.all else Array(WriteMetrics.written)

  /** Spark asks once all is committed. */
  override def reportDriverMetrics(): Array[CustomTaskMetric] = WriteMetrics.of(commit.changed, commit.cost)

  override def requiredDistribution(): Distribution = order.distribution()

  /** A partition that is much larger than the others may be written by several tasks. */
  override def distributionStrictlyRequired(): Boolean = false

  override def requiredOrdering(): Array[SortOrder] = order.ordering

  override def toBatch: BatchWrite = batch

  /** Made while the statement is optimised, which leads to what it reads. */
  private val batch = new LakeBatchWrite(table, info, operation, commit, description())

  override def toStreaming: StreamingWrite = commit match {
    case batches: BatchCommit => new LakeStreamingWrite(batch, batches)
    case _ => throw StreamPreparation.withoutExtension(table)
  }
}
