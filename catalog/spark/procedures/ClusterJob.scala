package org.apache.spark.sql.lakelog.procedures

import scala.annotation.tailrec

import org.apache.spark.sql.lakelog.internals.{LakelogException, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.plans.FileConditions
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.CompactRows

/**
 * Puts the rows of a table in the order of its curve, step by step. Python says which files go together next, and commits;
 * executors read, sort and write. What was committed stays, whenever it is stopped.
 */
private[lakelog] object ClusterJob {

  def run(job: wire.ClusterFiles, catalog: String): wire.CompactResult = {
    val table = new ClusteredTable(SchemaInternals.quoted(catalog +: job.table), job.goal)
    val condition = job.where.map(FileConditions.of(table.name, _))
    if (job.dry) {
      val (expected, version) = table.expected(condition, job.limitBytes)
      wire.CompactResult(
        expected.readFiles, expected.readBytes, expected.writtenFiles, expected.writtenBytes, expected.deletedRows,
        version,
        expected.isLeft, expected.overlapBefore, expected.overlapAfter)
    } else
      cluster(table, condition, job.limitBytes, Compacted.Nothing, TriesMax).copy(overlapBefore = job.overlap)
  }

  @tailrec
  private def cluster(
      table: ClusteredTable, condition: Option[wire.Expression], limit: Option[Long], done: Compacted,
      triesLeft: Int): wire.CompactResult = {
    val left = limit.fold(table.bytesAtOnce)(most => math.min(table.bytesAtOnce, most - done.bytes))
    val batch = table.next(condition, math.max(1L, left))
    if (batch.isEmpty || left <= 0) answer(done, batch.version, isLeft = !batch.isEmpty)
    else if (triesLeft == 0) throw new LakelogException(
      s"Clustering of ${table.name} conflicted $TriesMax times: other writers changed files while they were rewritten. " +
        s"${done.files} files were rewritten, and stay so: cluster the rest when fewer rows are being changed.", null)
    else {
      val (more, isWhole) = table.run(batch)
      cluster(table, condition, limit, done + more, if (isWhole) triesLeft else triesLeft - 1)
    }
  }

  private def answer(done: Compacted, version: Long, isLeft: Boolean): wire.CompactResult = wire.CompactResult(
    done.files, done.bytes, done.addedFiles, done.addedBytes, done.deleted, version, isLeft)

  private val TriesMax = 5
}

/** A table while it is clustered: files of others that came since do not count, but those do that were written for it. */
private[lakelog] final class ClusteredTable(val name: String, goal: wire.ClusteringGoal) {

  private val compacted = new CompactedTable(name)
  private var until = -1L
  private var written: Option[Long] = None

  /** How many are rewritten by one job, so that there is work for all executors. */
  def bytesAtOnce: Long = goal.targetSizeBytes * CompactRows.filesAtOnce

  /** What is to be done next, up to about so many bytes. */
  def next(condition: Option[wire.Expression], limitBytes: Long): CompactBatch = {
    val table = compacted.table()
    // A version that follows ours at once is the one that our own commit has made.
    if (until < 0 || (written.contains(until) && table.facts.version == until + 1)) until = table.facts.version
    CompactBatch.plan(
      table, wire.PlanClustering(_, goal, condition, until, limitBytes),
      goal.targetSizeBytes + math.max(goal.targetSizeBytes / 2, ClusteredTable.HeldBytes), "clustering")
  }

  /** What all of it would do, up to about so many bytes, and as of which version. */
  def expected(
      condition: Option[wire.Expression], limitBytes: Option[Long]): (wire.ClusteringExpectation, Long) = {
    val now = compacted.table()
    (now.access.ask(wire.ExpectClustering(now.facts.reference, goal, condition, limitBytes)), now.facts.version)
  }

  def run(batch: CompactBatch): (Compacted, Boolean) = {
    val (more, isWhole) = batch.run()
    written = Some(batch.version).filter(_ => more.files > 0)
    (more, isWhole)
  }
}

private[lakelog] object ClusteredTable {

  /** About how much of a file a writer of Parquet holds in memory, which is not compressed yet. */
  val HeldBytes: Long = 32L * 1024 * 1024
}
