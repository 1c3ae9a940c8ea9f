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

  /** Asks for the commit, which is the same however often it is asked for. */
  def commit[A](of: (wire.LoadedTable, wire.Begun) => wire.Request[A]): A = {
    val request = of(started, begun)
    asked = true
    try access.channel.change(request)
    catch {
      case failure: LakelogFailure =>
        asked = failure.outcomeUnknown
        throw access.failures.ofTable(failure, access.ident)
    }
  }
}
