package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.lakelog.files.CountMetric
import org.apache.spark.sql.lakelog.wire

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
        new RowsCopiedMetric -> rows.copied).collect { case (metric, Some(count)) => CountMetric.value(metric, count) }
    }
    val taken = cost.toSeq.flatMap { cost =>
      Seq(
        new CommitAttempts -> cost.attempts,
        new CommitRebases -> cost.rebases,
        new CommitWaits -> cost.waits,
        new CommitWaited -> cost.waitedMs,
        new CommitRequests -> cost.requests,
        new CommitBytesRead -> cost.bytesRead,
        new CommitBytesWritten -> cost.bytesWritten).map { case (metric, count) => CountMetric.value(metric, count) }
    }
    (rows ++ taken).toArray
  }
}

private[lakelog] class RowsWrittenMetric extends CountMetric("lakelogRowsWritten", "rows written")

private[lakelog] class RowsInsertedMetric extends CountMetric("lakelogRowsInserted", "rows inserted")

private[lakelog] class RowsUpdatedMetric extends CountMetric("lakelogRowsUpdated", "rows updated")

private[lakelog] class RowsDeletedMetric extends CountMetric("lakelogRowsDeleted", "rows deleted")

private[lakelog] class RowsCopiedMetric extends CountMetric("lakelogRowsCopied", "rows copied")

private[lakelog] class CommitAttempts extends CountMetric("lakelogCommitAttempts", "attempts of the commit")

private[lakelog] class CommitRebases
  extends CountMetric("lakelogCommitRebases", "times that the commit was rebased over others")

private[lakelog] class CommitWaits extends CountMetric("lakelogCommitWaits", "waits of the commit")

private[lakelog] class CommitWaited extends CountMetric("lakelogCommitWaited", "time that the commit waited (ms)")

private[lakelog] class CommitRequests extends CountMetric("lakelogCommitRequests", "requests of the commit")

private[lakelog] class CommitBytesRead extends CountMetric("lakelogCommitBytesRead", "bytes read by the commit")

private[lakelog] class CommitBytesWritten extends CountMetric("lakelogCommitBytesWritten", "bytes written by the commit")
