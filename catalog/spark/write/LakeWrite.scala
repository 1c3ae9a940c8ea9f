package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expressions, NullOrdering, SortDirection, SortOrder}
import org.apache.spark.sql.connector.write.{BatchWrite, LogicalWriteInfo, RequiresDistributionAndOrdering}

/** A write of rows that come clustered by partition and sorted by the table's order. */
private[lakelog] final class LakeWrite(
    table: LakeTable, info: LogicalWriteInfo, operation: WriteOperation, commit: FileCommit)
  extends RequiresDistributionAndOrdering {

  private val partitions = table.facts.partitionFields

  override def description(): String = s"lakelog ${operation.name} to ${table.name}"

  override def requiredDistribution(): Distribution =
    if (partitions.isEmpty) Distributions.unspecified()
    else Distributions.clustered(partitions.map(field => field.transform.toExpression(field.column)).toArray)

  /** A partition that is much larger than the others may be written by several tasks. */
  override def distributionStrictlyRequired(): Boolean = false

  override def requiredOrdering(): Array[SortOrder] = {
    val byPartition = partitions.map { field =>
      Expressions.sort(field.transform.toExpression(field.column), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
    }
    val byOrder = table.facts.sortFields.map { field =>
      Expressions.sort(
        field.transform.toExpression(field.column),
        if (field.ascending) SortDirection.ASCENDING else SortDirection.DESCENDING,
        if (field.nullsFirst) NullOrdering.NULLS_FIRST else NullOrdering.NULLS_LAST)
    }
    (byPartition ++ byOrder).toArray
  }

  override def toBatch: BatchWrite = new LakeBatchWrite(table, info, operation, commit)
}
