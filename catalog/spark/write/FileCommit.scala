package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.lakelog.files.DataFiles
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.table.{Refresh, TableAccess, TableFacts}
import org.apache.spark.sql.lakelog.wire

/** What becomes of the files that the tasks have written. */
private[lakelog] trait FileCommit {

  /** What the names of the write's files begin with: its version and id. Made once, before the first task starts. */
  def filePrefix: String

  /** The next value of each identity column, by the column's id. */
  def nextValues: Map[Long, BigInt]

  /** Takes over the files, and what was taken of identity columns for their rows. */
  def commit(operation: WriteOperation, files: Seq[wire.DataFile], values: Seq[wire.ValuesTaken]): Unit

  /** Whether files may have been taken over, also when [[commit]] failed. */
  def mayHaveHappened: Boolean

  /** Whether the driver learns how many rows were changed, and can report that. */
  def isReported: Boolean = false

  /** How many rows were changed; None before the commit. */
  def changed: Option[wire.RowsChanged] = None

  /** What the commit took; None before it. */
  def cost: Option[wire.CommitCost] = None
}

/**
 * Commits files to a table that is there. Those of a [[batch]] of a stream that the table has already are
 * deleted.
 */
private[lakelog] class TableCommit(access: TableAccess, facts: TableFacts, numbered: Option[wire.StreamBatch] = None)
  extends FileCommit {

  protected def batch: Option[wire.StreamBatch] = numbered

  protected def answered(answer: wire.WriteResult): Unit = {}

  protected def begin(): wire.BegunWrite = access.ask(wire.BeginWrite(facts.reference))

  private lazy val begun = begin()
  private lazy val write = new TableWrite(access, facts.referenceOf(begun.version.getOrElse(facts.version)), begun)

  override def filePrefix: String = write.filePrefix

  override def nextValues: Map[Long, BigInt] = begun.identities.map(value => value.column -> value.next).toMap

  override def mayHaveHappened: Boolean = write.mayHaveHappened

  @volatile private var rows: Option[wire.RowsChanged] = None
  @volatile private var taken: Option[wire.CommitCost] = None

  override def isReported: Boolean = true

  override def changed: Option[wire.RowsChanged] = rows

  override def cost: Option[wire.CommitCost] = taken

  override def commit(operation: WriteOperation, files: Seq[wire.DataFile], values: Seq[wire.ValuesTaken]): Unit =
    if (operation.name == WriteOperation.Merge) {
      val answer = write.commit((table, write) =>
        wire.CommitRows(
          table, write.token, write.write, operation.name, files, removed = Nil, deletes = Nil,
          condition = operation.filter, values = values, inserted = Some(files.map(_.rows).sum), updated = Some(0)))
      rows = answer.rows
      taken = answer.cost
      access.wrote(facts.location, files)
    } else {
      val answer = write.commit((table, write) =>
        wire.CommitWrite(
          table, write.token, write.write, operation.name, files, filter = operation.filter,
          deletes = operation.cut.map(_.rows), copies = operation.cut.flatMap(_.copies), batch = batch, values = values))
      rows = answer.rows
      taken = answer.cost
      if (answer.written) access.wrote(facts.location, files)
      else DataFiles.deleteAll(
        facts.location, files, SettingInternals.hadoopConf(facts.location, access.hadoopSettings))
      answered(answer)
    }
}

/** Commits the rows of a refresh, and what changes with them. */
private[lakelog] final class RefreshCommit(access: TableAccess, facts: TableFacts, refresh: Refresh)
  extends TableCommit(access, facts) {

  override def commit(operation: WriteOperation, files: Seq[wire.DataFile], values: Seq[wire.ValuesTaken]): Unit = {
    super.commit(operation, files, values)
    refresh.written()
  }
}

/** Hands the files to a staged table, which commits them with its metadata. */
private[lakelog] final class StagedCommit(write: wire.WriteRef, keep: Seq[wire.DataFile] => Unit) extends FileCommit {

  override def filePrefix: String = TableWrite.prefix(write)

  /** Rows that come with the creation of a table have none. */
  override def nextValues: Map[Long, BigInt] = Map.empty

  override def mayHaveHappened: Boolean = false

  override def commit(operation: WriteOperation, files: Seq[wire.DataFile], values: Seq[wire.ValuesTaken]): Unit =
    keep(files)
}
