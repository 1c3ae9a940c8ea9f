package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/**
 * How many rows a write has changed and what its commit took, for Spark's UI. Tasks count the rows that they write, which shows how
 * far they are; what these are, the commit says, and the driver reports that. Spark makes these classes anew by their names.
 */
private[lakelog] object WriteMetrics {

  val written: CustomMetric = new RowsWrittenMetric

  def all: Array[CustomMetric] = Array(
    written, new RowsInsertedMetric, new RowsUpdatedMetric, new RowsDeletedMetric, new RowsCopiedMetric,
    new CommitAttempts, new CommitRebases, new CommitWaits, new CommitWaited, new CommitRequests, new CommitBytesRead,
    new CommitBytesWritten)

  /** What a commit has changed, as far as that is known, and what it took. */
  def of(changed: Option[wire.RowsChanged], cost: Option[wire.CommitCost]): Array[CustomTaskMetric] = {
    val rows = changed.toSeq.flatMap { rows =>
      Seq(
        new RowsInsertedMetric -> rows.inserted,
        new RowsUpdatedMetric -> rows.updated,
        new RowsDeletedMetric -> rows.deleted,
        new RowsCopiedMetric -> rows.copied).collect { case (metric, Some(count)) => value(metric, count) }
    }
    val taken = cost.toSeq.flatMap { cost =>
      Seq(
        new CommitAttempts -> cost.attempts,
        new CommitRebases -> cost.rebases,
        new CommitWaits -> cost.waits,
        new CommitWaited -> cost.waitedMs,
        new CommitRequests -> cost.requests,
        new CommitBytesRead -> cost.bytesRead,
        new CommitBytesWritten -> cost.bytesWritten).map { case (metric, count) => value(metric, count) }
    }
    (rows ++ taken).toArray
  }

  /** What a task or the driver has counted so far. */
  def value(of: CustomMetric, count: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name(): String = of.name
    override def value(): Long = count
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

private[lakelog] class CommitAttempts extends CountMetric("lakelogCommitAttempts", "attempts of the commit")

private[lakelog] class CommitRebases
  extends CountMetric("lakelogCommitRebases", "times that the commit was rebased over others")

private[lakelog] class CommitWaits extends CountMetric("lakelogCommitWaits", "waits of the commit")

private[lakelog] class CommitWaited extends CountMetric("lakelogCommitWaited", "time that the commit waited (ms)")

private[lakelog] class CommitRequests extends CountMetric("lakelogCommitRequests", "requests of the commit")

private[lakelog] class CommitBytesRead extends CountMetric("lakelogCommitBytesRead", "bytes read by the commit")

private[lakelog] class CommitBytesWritten extends CountMetric("lakelogCommitBytesWritten", "bytes written by the commit")
