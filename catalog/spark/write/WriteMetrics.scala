package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/**
 * How many rows a write has changed, for Spark's UI. Tasks count the rows that they write, which shows how far they are; what
 * these are, the commit says, and the driver reports that. Spark makes these classes anew by their names.
 */
private[lakelog] object WriteMetrics {

  val written: CustomMetric = new RowsWrittenMetric

  def all: Array[CustomMetric] = Array(
    written, new RowsInsertedMetric, new RowsUpdatedMetric, new RowsDeletedMetric, new RowsCopiedMetric)

  /** What a commit has changed, as far as that is known. */
  def of(changed: Option[wire.RowsChanged]): Array[CustomTaskMetric] = changed.toArray.flatMap { rows =>
    Seq(
      new RowsInsertedMetric -> rows.inserted,
      new RowsUpdatedMetric -> rows.updated,
      new RowsDeletedMetric -> rows.deleted,
      new RowsCopiedMetric -> rows.copied).collect { case (metric, Some(count)) => value(metric, count) }
  }

  /** What a task has counted so far. */
  def value(of: CustomMetric, rows: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name(): String = of.name
    override def value(): Long = rows
  }
}

class RowsWrittenMetric extends CustomSumMetric {
  override def name(): String = "lakelogRowsWritten"
  override def description(): String = "rows written"
}

class RowsInsertedMetric extends CustomSumMetric {
  override def name(): String = "lakelogRowsInserted"
  override def description(): String = "rows inserted"
}

class RowsUpdatedMetric extends CustomSumMetric {
  override def name(): String = "lakelogRowsUpdated"
  override def description(): String = "rows updated"
}

class RowsDeletedMetric extends CustomSumMetric {
  override def name(): String = "lakelogRowsDeleted"
  override def description(): String = "rows deleted"
}

class RowsCopiedMetric extends CustomSumMetric {
  override def name(): String = "lakelogRowsCopied"
  override def description(): String = "rows copied"
}
