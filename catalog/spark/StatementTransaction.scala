package org.apache.spark.sql.lakelog

import scala.collection.mutable

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table}
import org.apache.spark.sql.connector.catalog.transactions.Transaction
import org.apache.spark.sql.connector.read.Scan

/**
 * The transaction that Spark begins for a statement that writes.
 *
 * It costs nothing where the statement is one commit anyway. Only a schema that changes along with the data needs one in
 * Python, unless the session has one open, which the statement is part of then. Spark ends it several times, or never.
 */
private[lakelog] final class StatementTransaction(plugin: LakeCatalog, session: LakeSession, failures: Failures)
  extends Transaction {

  private val own = plugin.within(this)
  private var begun: Option[OpenTransaction] = None

  override def catalog(): CatalogPlugin = own

  /** What the statement reads, and once it has changed a schema, how that stood before. */
  private val read = mutable.LinkedHashMap.empty[Identifier, Option[Table]]

  /** Where the statement's requests go. */
  def channel: Channel = synchronized(begun.map(session.channelIn).getOrElse(session.channel))

  /**
   * Loads a table. When the statement has been analysed, Spark loads what it reads again, and must find no column there
   * that only its own analysis has added.
   */
  def load(ident: Identifier)(anew: => Table): Table = {
    val before = if (SparkInternals.statementTracker.isEmpty) synchronized(read.get(ident).flatten) else None
    synchronized(read.getOrElseUpdate(ident, None))
    before.getOrElse(anew)
  }

  /** Called before the statement changes a schema, on which its data follow. */
  def beforeSchemaChange(load: Identifier => Table): Unit = synchronized {
    if (begun.isEmpty && !session.isInTransaction) begun = Some(failures.procedure(session.beginStatement()))
    read.keys.toList.foreach(ident => if (read(ident).isEmpty) read(ident) = Some(load(ident)))
  }

  override def commit(): Unit = end(session.commitStatement)

  override def abort(): Unit = end(session.rollBackStatement)

  override def close(): Unit = abort()

  /** What Spark has cached is told apart by tables and versions. */
  override def registerScans(scans: Array[Scan]): Boolean = true

  private def end(ended: OpenTransaction => Unit): Unit = synchronized {
    val ending = begun
    begun = None
    ending.foreach(transaction => failures.procedure(ended(transaction)))
  }
}
