package org.apache.spark.sql.lakelog

/**
 * A write to a table that is there. `reference` names the version that it starts from: what was committed since may conflict
 * with what the write has read. `begin` asks for its id.
 */
private[lakelog] final class TableWrite(access: TableAccess, reference: => wire.LoadedTable, begin: => wire.Begun) {

  private lazy val started = reference
  private lazy val begun = begin
  private var asked = false

  /** What the names of the write's files begin with. */
  def filePrefix: String = FileCommit.prefix(begun.write)

  /** Whether the files may be in the table: a commit that failed may have happened. */
  def mayHaveHappened: Boolean = asked

  /**
   * Asks for the commit, which is the same however often it is asked for. Where another change is in the way, it is asked for
   * as `overOthers` does, if that is any: it costs more, and knows better what the write depends on.
   */
  def commit[A](
      of: (wire.LoadedTable, wire.Begun) => wire.Request[A],
      overOthers: => Option[(wire.LoadedTable, wire.Begun) => wire.Request[A]] = None): A = {
    def ask(of: (wire.LoadedTable, wire.Begun) => wire.Request[A]): A = {
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

private object TableWrite {

  /** The kind of Python's error for a change that others are in the way of. */
  val Conflict = "commit-conflict"
}
