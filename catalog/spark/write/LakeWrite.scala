package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expressions, NullOrdering, SortDirection, SortOrder}
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.connector.write.{BatchWrite, LogicalWriteInfo, RequiresDistributionAndOrdering}

/** A write of rows that come clustered by partition and sorted by the table's order. */
private[lakelog] final class LakeWrite(
    table: LakeTable, info: LogicalWriteInfo, operation: WriteOperation, commit: FileCommit)
  extends RequiresDistributionAndOrdering {

  private val partitions = table.facts.partitionFields

  override def description(): String = s"lakelog ${operation.name} to ${table.name}"

  /** With clustering, rows that are alike go to the same task, of all partitions together. */
  override def requiredDistribution(): Distribution =
    if (clustering.nonEmpty) Distributions.ordered((byPartition ++ clustering).toArray)
    else if (partitions.isEmpty) Distributions.unspecified()
    else Distributions.clustered(partitions.map(field => field.transform.toExpression(field.column)).toArray)

  /** A partition that is much larger than the others may be written by several tasks. */
  override def distributionStrictlyRequired(): Boolean = false

  private def byPartition: Seq[SortOrder] = partitions.map { field =>
    Expressions.sort(field.transform.toExpression(field.column), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
  }

  private def clustering: Seq[SortOrder] = table.facts.clustering.map { column =>
    Expressions.sort(SparkInternals.reference(column), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
  }

  override def requiredOrdering(): Array[SortOrder] = {
    val byOrder = table.facts.sortFields.map { field =>
      Expressions.sort(
        field.transform.toExpression(field.column),
        if (field.ascending) SortDirection.ASCENDING else SortDirection.DESCENDING,
        if (field.nullsFirst) NullOrdering.NULLS_FIRST else NullOrdering.NULLS_LAST)
    }
    (byPartition ++ clustering ++ byOrder).toArray
  }

  override def toBatch: BatchWrite = new LakeBatchWrite(table, info, operation, commit)

  override def toStreaming: StreamingWrite = commit match {
    case batches: BatchCommit => new LakeStreamingWrite(new LakeBatchWrite(table, info, operation, batches), batches)
    case _ => throw StreamSinks.withoutExtension(table)
  }
}
