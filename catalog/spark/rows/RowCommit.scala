package org.apache.spark.sql.lakelog.rows

import java.util.Locale

import scala.util.Try

import org.roaringbitmap.RoaringBitmap

import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.plans.MergeKeys
import org.apache.spark.sql.lakelog.read.LakeScan
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{IdentityValues, RowsSeen, TableWrite}

/** The one commit of a row-level operation, on the version that it has read, of rows that `deciders` have chosen. */
private[lakelog] final class RowCommit(
    table: LakeTable, command: Command, val scan: Option[LakeScan], together: Option[ReadTogether],
    keys: Option[MergeKeys], val deciders: Deciders) {

  /**
   * The filters of all scans of the table, those of the rows to be changed among them. When Spark asks for what is
   * written, it has planned all that the statement reads; its first look at the files or partitions of these rows comes
   * later, and reads nothing else.
   */
  private val read = together.toSeq.flatMap(_.filters(table))

  private def readsOthers: Boolean = read.length > 1

  private lazy val reference = table.facts.referenceOf(scan.fold(table.facts.version)(_.version))
  private lazy val begun = table.access.ask(wire.BeginWrite(reference))
  private lazy val write = new TableWrite(table.access, reference, begun)

  /** The next value of each identity column, by the column's id. */
  def nextValues: Map[Long, BigInt] = begun.identities.map(value => value.column -> value.next).toMap

  def filePrefix: String = write.filePrefix

  def mayHaveHappened: Boolean = write.mayHaveHappened

  /** How many rows were changed; None before the commit, and if nothing was to be changed. */
  @volatile var changed: Option[wire.RowsChanged] = None

  /** What the commit took. */
  @volatile var cost: Option[wire.CommitCost] = None

  /**
   * Removes files that were rewritten, marks rows as deleted (by the names of their files) and adds what was written, of which
   * so many rows are `updated`; None: that is not known. If nothing is to be changed, there is no commit.
   */
  def commit(
      removed: Seq[String], deleted: Map[String, RoaringBitmap], written: Seq[RowsWritten],
      updated: Option[Long]): Unit = {
    val files = written.flatMap(_.dataFiles)
    val taken = written.flatMap(_.values)
    if (removed.nonEmpty || deleted.nonEmpty || files.nonEmpty) {
      val condition = RowsSeen.condition(table, read)
      def request(condition: Option[wire.Expression])(version: wire.LoadedTable, write: wire.BegunWrite) =
        wire.CommitRows(
          version, write.token, write.write, command.name.toLowerCase(Locale.ROOT), files,
          removed = removed,
          deletes = RowsSeen.positions(deleted, path),
          condition = condition,
          values = if (taken.isEmpty) Nil else IdentityValues.united(table.identities, nextValues, taken),
          readsOthers = readsOthers,
          inserted = updated.filter(_ => command == Command.MERGE).map(_ => written.map(_.inserted).sum),
          updated = updated.filter(_ => command != Command.DELETE))
      val answer =
        write.commit(request(condition) _, overOthers = narrowed(condition).map(each => request(Some(each)) _))
      changed = answer.rows
      cost = answer.cost
      table.access.wrote(table.facts.location, files)
    }
  }

  /** The condition of rows that match the source of a MERGE: a closer look than all that its scans have read. */
  private def narrowed(condition: Option[wire.Expression]): Option[wire.Expression] =
    if (readsOthers) None
    else keys.flatMap(each => Try(each.condition).toOption.flatten).map(matching =>
      Predicates.all(condition.toSeq :+ matching))

  /** The path in the log of a file that was read, by the name that its rows have. */
  private def path(file: String): String = paths.getOrElse(file,
    throw new IllegalStateException(
      s"A row of $file was changed, which was not read"))

  private lazy val paths: Map[String, String] = scan.fold(Map.empty[String, String]) { scan =>
    val files = scan.files
    files.indices.map(i => files.name(i) -> files.path(i)).toMap
  }
}
