package org.apache.spark.sql.lakelog.expressions

import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.DataType

/** A field of the partition spec: what it is computed from, and how; what its values are called, and their type. */
private[lakelog] final case class PartitionField(
    id: Int, transform: PartitionTransform, column: Seq[String], name: String, result: DataType) {
  def toSpark: Transform = transform.toSpark(column)
}

/** A field of the sort order. */
private[lakelog] final case class SortField(
    transform: PartitionTransform, column: Seq[String], ascending: Boolean, nullsFirst: Boolean)
