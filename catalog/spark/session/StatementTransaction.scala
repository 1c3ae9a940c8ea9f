package org.apache.spark.sql.lakelog.session

import scala.collection.mutable

import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.lakelog.internals.{Failures, StatementInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Relation, Transaction}
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable, OpenTransaction}

/**
 * The transaction that Spark begins for a statement that writes.
 *
 * It costs nothing if the statement is one commit anyway. Only a schema that changes along with the data needs one in
 * Python, unless the session has one open, which the statement is part of then. Spark ends it several times, or never.
 */
private[lakelog] final class StatementTransaction(
    session: LakeSession, failures: Failures, shown: StatementTransaction => CatalogPlugin)
  extends Transaction {

  private val own = shown(this)
  private var begun: Option[OpenTransaction] = None

  override def catalog(): CatalogPlugin = own

  /** What the statement has loaded, and once it has changed a schema, how that stood before. */
  private val loaded = mutable.LinkedHashSet.empty[Identifier]
  private var before: Map[Identifier, Relation] = Map.empty

  @volatile private var changing: Option[Identifier] = None

  /** Takes note of the table whose rows the statement changes, and not only adds. */
  def changesRows(ident: Identifier): Unit = changing = Some(ident)

  def isChanging(ident: Identifier): Boolean = changing.contains(ident)

  /** Whether the statement has given columns to a table that it writes to. */
  def hasEvolved: Boolean = synchronized(before.nonEmpty)

  /** Where the statement's requests go. */
  def channel: Channel = synchronized(begun.map(session.channelIn).getOrElse(session.channel))

  /**
   * Loads a table or a view. When the statement has been analysed, Spark loads what it reads again, and must find no column there
   * that only its own analysis has added, unless that is what it reads.
   */
  def load(ident: Identifier)(anew: => Relation): Relation = {
    synchronized(loaded.add(ident))
    val asBefore = if (StatementInternals.tracker.isEmpty) synchronized(before.get(ident)) else None
    asBefore.fold(anew) { table =>
      val read = StatementInternals.tablesRead.collect { case same: LakeTable if same.access.ident == ident => same }
      if (read.isEmpty || read.exists(isAs(_, table))) table else evolved(read, anew)
    }
  }

  private def isAs(read: LakeTable, before: Relation): Boolean = before match {
    case table: LakeTable => read.schema == table.schema
    case _ => true
  }

  /** A MERGE that only adds rows looks for rows like them in the table that its analysis has made. */
  private def evolved(read: Seq[LakeTable], anew: Relation): Relation = anew match {
    case table: LakeTable if read.exists(_.access.isEvolved) => table.evolved
    case other => other
  }

  /** Called before the statement changes a schema, on which its data follow. */
  def beforeSchemaChange(load: Identifier => Relation): Unit = synchronized {
    if (begun.isEmpty && !session.isInTransaction) begun = Some(failures.procedure(session.beginStatement()))
    before = before ++ loaded.filterNot(before.contains).map(ident => ident -> load(ident))
  }

  override def commit(): Unit = end(session.commitStatement)

  override def abort(): Unit = end(session.rollBackStatement)

  override def close(): Unit = abort()

  /** What Spark has cached is distinguished by tables and versions. */
  override def registerScans(scans: Array[Scan]): Boolean = true

  private def end(ended: OpenTransaction => Unit): Unit = synchronized {
    val ending = begun
    begun = None
    ending.foreach(transaction => failures.procedure(ended(transaction)))
  }
}
