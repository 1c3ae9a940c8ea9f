package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.lakelog.internals.Failures

/**
 * The users' functions by which a statement chooses rows. Spark computes its condition several times for a row. A
 * function that counts as deterministic though it is not may say that the row both changes and stays, or neither: then
 * the statement fails.
 */
private[lakelog] final case class Deciders(command: Command, table: String, functions: Seq[String]) {

  /** The error of a statement that finds a row twice, or not at all. Without such a function it is a bug. */
  def contradiction(what: String): Throwable =
    if (functions.isEmpty) new IllegalStateException(what)
    else Failures.invalid(
      s"The ${command.name} of $table has changed nothing, as a function in its condition gives another value each time that " +
        s"it is computed: ${functions.map(_ + "()").mkString(", ")}. Choose rows by their columns, or compute the function in " +
        s"a subquery or in the source of a MERGE, and register it as one that is not deterministic. ($what.)")
}
