package org.apache.spark.sql.lakelog.procedures

import scala.annotation.tailrec

import org.apache.spark.sql.lakelog.internals.{Failures, LakelogException, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.plans.FileConditions
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{CompactGroup, CompactRows, TableWrite, WriteTasks}

/**
 * Rewrites small files of a table into larger ones, and files of which many rows are deleted. Python says which belong
 * together, and commits; executors read and write.
 *
 * So much is done at a time that the executors are busy, and is committed then: when a compaction is stopped, what it has
 * committed stays. Groups of files that others have changed meanwhile are planned again, as of then.
 */
private[lakelog] object CompactJob {

  def run(job: wire.CompactFiles, catalog: String): wire.CompactResult = {
    val table = new CompactedTable(SchemaInternals.quoted(catalog +: job.table))
    val condition = job.where.map(FileConditions.of(table.name, _))
    val (done, version) = compact(job, table, condition, Compacted.Nothing, TriesMax)
    wire.CompactResult(done.files, done.bytes, done.addedFiles, done.addedBytes, done.deleted, version)
  }

  @tailrec
  private def compact(
      job: wire.CompactFiles, table: CompactedTable, condition: Option[wire.Expression], done: Compacted,
      triesLeft: Int): (Compacted, Long) = {
    val batch = table.next(job.goal, condition, job.goal.targetSizeBytes * CompactRows.filesAtOnce, job.mostBytes)
    if (batch.isEmpty) (done, batch.version)
    else if (triesLeft == 0) throw new LakelogException(
      s"Compaction of ${table.name} conflicted $TriesMax times: other writers changed files while they were rewritten. " +
        s"${done.files} files were compacted, and stay so: compact the rest when fewer rows are being changed.", null)
    else {
      val (more, isWhole) = batch.run()
      compact(job, table, condition, done + more, if (isWhole) triesLeft else triesLeft - 1)
    }
  }

  private val TriesMax = 5
}

/** A table while its files are rewritten: only files count that it had at first, and it has to stay the same table. */
private[lakelog] final class CompactedTable(val name: String) {

  private val first = ProcedureTables.load(name)
  private var known = Option(first)

  /** What is to be done next, up to about so many bytes. */
  def next(
      goal: wire.CompactionGoal, condition: Option[wire.Expression], limitBytes: Long, mostBytes: Long): CompactBatch =
    CompactBatch.plan(table(), wire.PlanCompaction(_, goal, condition, first.facts.version, limitBytes), mostBytes)

  /** Its newest version. */
  def table(): LakeTable = {
    val table = known.getOrElse(newest())
    known = None
    table
  }

  private def newest(): LakeTable = {
    val now = ProcedureTables.load(name)
    if (now.facts.ownId != first.facts.ownId) throw Failures.invalid(
      s"$name was dropped and re-created while its files were rewritten: call it again for the new table.")
    now
  }
}

/** How many files, and with how many bytes, gave way to how many others; and how many deleted rows they had. */
private[lakelog] final case class Compacted(files: Long, bytes: Long, addedFiles: Long, addedBytes: Long,
    deleted: Long) {

  def +(more: Compacted): Compacted = Compacted(
    files + more.files, bytes + more.bytes, addedFiles + more.addedFiles, addedBytes + more.addedBytes,
    deleted + more.deleted)
}

private[lakelog] object Compacted {
  val Nothing: Compacted = Compacted(0, 0, 0, 0, 0)
}

/** What is rewritten by one job, and committed at once. */
private[lakelog] final class CompactBatch(
    table: LakeTable, groups: Seq[CompactGroup], mostBytes: Long, what: String) {

  def isEmpty: Boolean = groups.isEmpty

  def version: Long = table.facts.version

  def bytes: Long = groups.map(_.bytes).sum

  /** What was done, and whether that is all of it: others may have changed some of the files first. */
  def run(): (Compacted, Boolean) = {
    val facts = table.facts
    val write = new TableWrite(table.access, facts.reference, table.access.ask(wire.BeginWrite(facts.reference)))
    val text =
      s"lakelog $what of ${table.name}: ${groups.map(_.files.length).sum} files in ${groups.length} groups"
    val written = CompactRows.write(table, groups, write.filePrefix, mostBytes, text)
    val lost =
      try {
        groups.zip(written).foreach { case (group, files) => check(group, files) }
        commit(write, written)
      } catch {
        case failed: Throwable =>
          if (!write.mayHaveHappened) WriteTasks.deleteFiles(table, written.flatten)
          throw failed
      }
    val (gone, stay) = groups.indices.partition(lost)
    WriteTasks.deleteFiles(table, gone.flatMap(written(_)))
    table.access.wrote(facts.location, stay.flatMap(written(_)))
    val done = stay.map { i =>
      val group = groups(i)
      Compacted(group.files.length, group.bytes, written(i).length, written(i).map(_.size).sum,
        group.deleted)
    }
    (done.foldLeft(Compacted.Nothing)(_ + _), gone.isEmpty)
  }

  /** The groups that were left out. */
  private def commit(write: TableWrite, written: Seq[Seq[wire.DataFile]]): Set[Int] = {
    val rewritten = groups.zip(written).map { case (group, files) =>
      wire.RewrittenGroup(group.files.paths, files)
    }
    val answer = write.commit((version, write) => wire.CommitCompaction(version, write.token, write.write, rewritten))
    answer.lost.map(_.toInt).toSet
  }

  private def check(group: CompactGroup, files: Seq[wire.DataFile]): Unit = {
    val rows = files.map(_.rows).sum
    if (rows != group.rows) throw new IllegalStateException(
      s"Files with ${group.rows} rows, from ${group.files.path(0)} on, would be replaced by files with $rows")
  }
}

private[lakelog] object CompactBatch {

  def plan(
      table: LakeTable, wanted: wire.LoadedTable => wire.Request[wire.CompactionPlan], mostBytes: Long,
      what: String = "compaction"): CompactBatch =
    table.access.failures.table(table.access.ident) {
      val (answer, files) =
        table.access.channel.withFiles(wanted(table.facts.reference), table.facts.location)
      val starts = answer.groups.scanLeft(0)(_ + _.files.toInt)
      new CompactBatch(table,
        answer.groups.zip(starts).map { case (group, start) =>
          CompactGroup(
            files.at((start until start + group.files.toInt).toArray),
            group.rows, group.sizeBytes, group.deleted, group.tasks.toInt, group.spread, group.cut, group.cell)
        }, mostBytes, what)
    }
}
