package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.lakelog.internals.LakelogFailure
import org.apache.spark.sql.lakelog.table.TableAccess
import org.apache.spark.sql.lakelog.wire

/**
 * A write to a table that is there. `reference` names the version that it starts from: what was committed since may conflict
 * with what the write has read. `begin` asks for its id.
 */
private[lakelog] final class TableWrite(access: TableAccess, reference: => wire.LoadedTable,
    begin: => wire.BegunWrite) {

  private lazy val started = reference
  private lazy val begun = begin
  private var asked = false

  /** What the names of the write's files begin with. */
  def filePrefix: String = TableWrite.prefix(begun.write)

  /** Whether the files may be in the table: a commit that failed may have happened. */
  def mayHaveHappened: Boolean = asked

  /**
   * Asks for the commit, which is the same however often it is asked for. If another change is in the way, it is asked for
   * as `overOthers` does, if that is any: it costs more, and knows better what the write depends on.
   */
  def commit[A](
      of: (wire.LoadedTable, wire.BegunWrite) => wire.Request[A],
      overOthers: => Option[(wire.LoadedTable, wire.BegunWrite) => wire.Request[A]] = None): A = {
    def ask(of: (wire.LoadedTable, wire.BegunWrite) => wire.Request[A]): A = {
      val request = of(started, begun)
      asked = true
      try access.channel.change(request)
      catch {
        case failure: LakelogFailure =>
          asked = failure.outcomeUnknown
          throw failure
      }
    }
    access.failures.table(access.ident) {
      try ask(of)
      catch {
        case conflict: LakelogFailure if conflict.kind == TableWrite.Conflict && !mayHaveHappened =>
          ask(overOthers.getOrElse(throw conflict))
      }
    }
  }
}

private[lakelog] object TableWrite {

  /** The name of a file shows, before any commit does, from which version its write started. */
  def prefix(write: wire.WriteRef): String = f"${write.version}%020d-${write.id}"

  /** The kind of Python's error for a change that others are in the way of. */
  private val Conflict = "commit-conflict"
}
