package org.apache.spark.sql.lakelog.procedures

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.SparkException
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.files.JobInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.CompactRows

/**
 * Keeps tables in shape, as Python says what is due: a step of each table at a time, each one job and one commit, until
 * nothing is due or a limit is reached. A table that fails hides no other; a job that a user cancels ends all of it.
 */
private[lakelog] object MaintainJob {

  def run(job: wire.MaintainTables, catalog: String): wire.MaintainResult = {
    val began = System.nanoTime
    val limits = new MaintainLimits(job.limitUs, job.limitBytes, began)
    val works = job.tables.map(new TableUpkeep(_, catalog, limits))
    round(works, limits)
    wire.MaintainResult(works.map(_.done), (System.nanoTime - began) / 1000)
  }

  @tailrec
  private def round(left: Seq[TableUpkeep], limits: MaintainLimits): Unit =
    if (left.nonEmpty) round(left.filter(_.goOn()), limits)
}

private final class MaintainLimits(timeUs: Option[Long], bytes: Option[Long], began: Long) {

  private var read = 0L

  def isOver: Boolean = timeUs.exists((System.nanoTime - began) / 1000 >= _) || bytes.exists(read >= _)

  def atMost(wanted: Long): Long = bytes.fold(wanted)(limit => math.max(1L, math.min(wanted, limit - read)))

  def add(more: Long): Unit = read += more
}

/** What is left to do for one table. */
private final class TableUpkeep(asked: wire.KeepTable, catalog: String, limits: MaintainLimits) {

  private val name = SchemaInternals.quoted(catalog +: asked.table)
  private lazy val compacted = new CompactedTable(name)
  private lazy val clustered = asked.clustering.map(new ClusteredTable(name, _))
  private var counts = Compacted.Nothing
  private var lost = 0
  private var isLeft = false
  private var error: Option[String] = None
  private var statistics: Option[wire.StatisticsResult] = None

  def done: wire.KeptTable = wire.KeptTable(
    asked.table, counts.files, counts.bytes, counts.addedFiles, counts.addedBytes, counts.deleted, lost, isLeft, error,
    statistics)

  /** Does the next step; whether there may be another. */
  def goOn(): Boolean =
    if (limits.isOver) {
      isLeft = true
      false
    } else
      try compact() || cluster() || {
          count()
          false
        }
      catch {
        case cancelled: SparkException if cancelled.getCondition == "SPARK_JOB_CANCELLED" => throw cancelled
        case NonFatal(failed) =>
          error = Some(Option(failed.getMessage).getOrElse(failed.toString))
          false
      }

  private def compact(): Boolean = lost < TableUpkeep.LostMax && {
    // After a step that was lost, as little as possible at once.
    val most = if (lost > 0) 1L else limits.atMost(asked.goal.targetSizeBytes * CompactRows.filesAtOnce)
    done(compacted.next(asked.goal, None, most, asked.mostBytes))(_.run())
  }

  private def cluster(): Boolean = lost < TableUpkeep.LostMax && clustered.exists { table =>
    val most = if (lost > 0) 1L else limits.atMost(table.bytesAtOnce)
    done(table.next(None, most))(table.run)
  }

  private def done(batch: CompactBatch)(run: CompactBatch => (Compacted, Boolean)): Boolean = !batch.isEmpty && {
    limits.add(batch.bytes)
    val (more, isWhole) = run(batch)
    counts = counts + more
    if (!isWhole) lost += 1
    true
  }

  private def count(): Unit = if (asked.statistics.nonEmpty) {
    if (limits.isOver) isLeft = true
    else {
      val job = wire.ComputeStatistics(asked.table, asked.statistics)
      statistics = Some(JobInternals.described(s"lakelog statistics of $name")(StatisticsJob.run(job, catalog)))
    }
  }
}

private object TableUpkeep {

  /** After so many steps that other writers won, a table is left for the next run. */
  private val LostMax = 5
}
