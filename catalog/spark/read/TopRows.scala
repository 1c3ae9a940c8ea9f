package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.connector.expressions.{NamedReference, NullOrdering, SortDirection, SortOrder}
import org.apache.spark.sql.lakelog.wire

/** The first rows by a column that a query wants; Python passes over files that have none of them. */
private[lakelog] final case class TopRows(column: String, ascending: Boolean, nullsFirst: Boolean, limit: Int) {

  def asked: wire.TopLimit = wire.TopLimit(column, ascending, nullsFirst, limit.toLong)

  override def toString: String = s"$limit by $column${if (ascending) "" else " descending"}"
}

private[lakelog] object TopRows {

  /** Of an order by several columns, the first one says enough. */
  def of(orders: Array[SortOrder], limit: Int): Option[TopRows] = orders.headOption.flatMap { order =>
    order.expression match {
      case column: NamedReference if column.fieldNames.length == 1 =>
        val ascending = order.direction == SortDirection.ASCENDING
        Some(TopRows(column.fieldNames.head, ascending, order.nullOrdering == NullOrdering.NULLS_FIRST, limit))
      case _ => None
    }
  }
}
