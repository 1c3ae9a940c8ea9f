package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.lakelog.files.{CountMetric, RowGroupsAsked, RowGroupsLeftOut}
import org.apache.spark.sql.lakelog.wire

private[lakelog] class FilesPlanned extends CountMetric("lakelogFilesPlanned", "files planned")

private[lakelog] class FilesLeftOut extends CountMetric("lakelogFilesLeftOut", "files left out")

private[lakelog] class FilesLeftOutByPartition
  extends CountMetric("lakelogFilesByPartition", "files left out by partition")

private[lakelog] class FilesLeftOutByStatistics
  extends CountMetric("lakelogFilesByStatistics", "files left out by statistics")

private[lakelog] class DeletedRowsPassed extends CountMetric("lakelogDeletedRows", "deleted rows in planned files")

private[lakelog] class PlanningTime extends CountMetric("lakelogPlanningTime", "time of planning (ms)")

private[lakelog] class PlanRequests extends CountMetric("lakelogPlanRequests", "requests of planning")

private[lakelog] class PlanBytes extends CountMetric("lakelogPlanBytes", "bytes read by planning")

/**
 * What the plans of one scan found and cost: it is planned anew if more filters are known, or if other tables of the
 * statement have moved. The files are those of the last plan: what Python found, those of them that filters name, if
 * some do, and those of these that are read, which a limit may make fewer.
 */
private[lakelog] final class PlanMetrics {

  private var last: Option[PlanMetrics.Files] = None
  private var time, requests, bytes = 0L

  def planned(answer: wire.PlanFacts, found: Int, named: Int, read: Int, nanos: Long): Unit = synchronized {
    last = Some(PlanMetrics.Files(answer, found, named, read))
    time += nanos
    requests += answer.requests
    bytes += answer.bytes
  }

  /** How many files are read, and of how many; None before they are planned. */
  def words: Option[String] = synchronized(last.map { files =>
    val left = files.leftOut.collect { case (count, how) if count > 0 => s"$count $how" }
    s"${files.read} of ${files.answer.files} files" + (if (left.isEmpty) ""
                                                       else left.mkString(" (left out: ", ", ", ")"))
  })

  def values: Array[CustomTaskMetric] = synchronized(last.toArray.flatMap { files =>
    Seq(
      new FilesPlanned -> files.read.toLong,
      new FilesLeftOut -> (files.answer.files - files.read),
      new DeletedRowsPassed -> files.answer.deleted,
      new PlanningTime -> time / 1000000,
      new PlanRequests -> requests,
      new PlanBytes -> bytes).map { case (metric, count) => CountMetric.value(metric, count) } ++
      files.byPartition.map(CountMetric.value(new FilesLeftOutByPartition, _)) ++
      files.byStatistics.map(CountMetric.value(new FilesLeftOutByStatistics, _))
  })
}

private[lakelog] object PlanMetrics {

  private final case class Files(answer: wire.PlanFacts, found: Int, named: Int, read: Int) {
    def byPartition: Option[Long] = answer.byPartition
    def byStatistics: Option[Long] = byPartition.map(answer.files - found - _)

    def leftOut: Seq[(Long, String)] =
      byPartition.map(_ -> "by partition").toSeq ++ byStatistics.map(_ -> "by statistics") ++
        Seq((found - named).toLong -> "by name", (named - read).toLong -> "by the limit")
  }

  val all: Array[CustomMetric] = Array(
    new FilesPlanned, new FilesLeftOut, new FilesLeftOutByPartition, new FilesLeftOutByStatistics,
    new DeletedRowsPassed, new PlanningTime, new PlanRequests, new PlanBytes, new RowGroupsAsked, new RowGroupsLeftOut)
}
