package org.apache.spark.sql.lakelog

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/**
 * A number that the driver knows, or the tasks together, in Spark's UI. Spark makes each anew by its class's constructor
 * without arguments.
 */
private[lakelog] abstract class CountMetric(override val name: String, override val description: String)
  extends CustomSumMetric

private[lakelog] class RowGroupsAsked
  extends CountMetric("lakelogRowGroupsAsked", "row groups looked up in Bloom filters")

private[lakelog] class RowGroupsLeftOut
  extends CountMetric("lakelogRowGroupsLeftOut", "row groups left out by Bloom filters")

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
 * What the plans of one scan found and cost: it is planned anew where more filters are known, or where other tables of the
 * statement have moved. The files are those of the last plan.
 */
private[lakelog] final class PlanMetrics {

  private var last: Option[(wire.Planned, PlannedFiles)] = None
  private var time, requests, bytes = 0L

  def planned(answer: wire.Planned, files: PlannedFiles, nanos: Long): Unit = synchronized {
    last = Some((answer, files))
    time += nanos
    requests += answer.requests
    bytes += answer.bytes
  }

  /** How many files are read, and of how many; None before they are planned. */
  def words: Option[String] = synchronized(last.map { case (answer, files) =>
    val left = answer.byPartition.toSeq.flatMap { byPartition =>
      Seq(byPartition -> "by partition", (answer.files - files.length - byPartition) -> "by statistics")
    }.collect { case (count, how) if count > 0 => s"$count $how" }
    s"${files.length} of ${answer.files} files" + (if (left.isEmpty) "" else left.mkString(" (left out: ", ", ", ")"))
  })

  def values: Array[CustomTaskMetric] = synchronized(last.toArray.flatMap { case (answer, files) =>
    val planned = files.length.toLong
    Seq(
      new FilesPlanned -> planned,
      new FilesLeftOut -> (answer.files - planned),
      new DeletedRowsPassed -> answer.deleted,
      new PlanningTime -> time / 1000000,
      new PlanRequests -> requests,
      new PlanBytes -> bytes).map { case (metric, count) => PlanMetrics.of(metric, count) } ++
      answer.byPartition.toSeq.flatMap { byPartition =>
        Seq(
          PlanMetrics.of(new FilesLeftOutByPartition, byPartition),
          PlanMetrics.of(new FilesLeftOutByStatistics, answer.files - planned - byPartition))
      }
  })
}

private[lakelog] object PlanMetrics {

  val all: Array[CustomMetric] = Array(
    new FilesPlanned, new FilesLeftOut, new FilesLeftOutByPartition, new FilesLeftOutByStatistics,
    new DeletedRowsPassed, new PlanningTime, new PlanRequests, new PlanBytes, new RowGroupsAsked, new RowGroupsLeftOut)

  def of(metric: CustomMetric, count: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name: String = metric.name
    override def value: Long = count
  }
}
