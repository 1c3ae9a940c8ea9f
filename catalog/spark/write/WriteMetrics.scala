package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/** How many rows a write writes, for Spark's UI: those of all tasks together. Spark makes these classes anew by their names. */
private[lakelog] object WriteMetrics {

  /** Those of a write that only adds rows, or that writes rows of files anew. */
  def ofRows: Array[CustomMetric] = Array(new RowsWrittenMetric)

  /** Those of a write that marks rows as deleted. */
  def ofChanges: Array[CustomMetric] =
    Array(new RowsInsertedMetric, new RowsUpdatedMetric, new RowsDeletedMetric)

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
