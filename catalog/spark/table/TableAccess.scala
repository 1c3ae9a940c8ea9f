package org.apache.spark.sql.lakelog.table

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.files.DataFiles
import org.apache.spark.sql.lakelog.internals.{Failures, SettingInternals}
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire

/** The replacement of all rows of a materialized view by its newest ones. */
private[lakelog] trait Refresh {

  /** Called when the rows are committed, or are part of the transaction that this commits. */
  def written(): Unit
}

/**
 * How a table that was loaded reaches Python, and what its errors and files are called. One on the branch of a session has the
 * facts of the table `itself`, which was named. What a statement has given columns `isEvolved`. One
 * of which a scan shall not report the partitions is not `isKeyed`. Rows that are written to one with a `refresh` replace all
 * that are there.
 */
private[lakelog] final case class TableAccess(
    catalog: String, ident: Identifier, channel: Channel, failures: Failures, options: Map[String, String],
    itself: Option[TableFacts] = None, isEvolved: Boolean = false, isKeyed: Boolean = true,
    refresh: Option[Refresh] = None) {

  def hadoopSettings: Map[String, String] = Locations.hadoopSettings(options)

  /** Asks about this table. */
  def ask[A](request: wire.Request[A]): A = failures.table(ident)(channel.ask(request))

  /** Takes note of data files of a table that belong to a transaction from now on. */
  def wrote(location: String, files: Seq[wire.DataFile]): Unit = {
    val settings = hadoopSettings
    channel.onRollback(() => DataFiles.deleteAll(location, files, SettingInternals.hadoopConf(location, settings)))
  }

  /** Asks for a change of this table, or of a version of it. */
  def change[A](request: wire.Change[A]): A = failures.table(ident)(channel.changeOnce(request))
}
