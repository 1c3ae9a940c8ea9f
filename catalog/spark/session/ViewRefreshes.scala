package org.apache.spark.sql.lakelog.session

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.connector.catalog.{Identifier, TableChange}
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.Pipelines
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.table.{Channel, LakeTable, OpenTransaction, Refresh}

/**
 * The materialized views whose refresh Spark's pipelines have begun in this session.
 *
 * A run empties a view, gives it the columns of its query, and later appends the rows, each by itself. Readers must see the old
 * rows until the new ones are there, so only the append commits: it replaces all rows, and changes the columns with
 * them. A run that ends before leaves the view as it is.
 */
private[lakelog] final class ViewRefreshes(session: OwnTransactions) {

  private val begun = new ConcurrentHashMap[Identifier, ViewRefresh]

  /** Returns whether a view's rows will be replaced later, rather than deleted now. */
  def begin(catalog: String, ident: Identifier): Boolean = {
    val is = isPrepared(catalog, ident)
    if (is) Option(begun.put(ident, new ViewRefresh(session, () => begun.remove(ident)))).foreach(_.end())
    is
  }

  /** The refresh of a view whose columns and properties this thread changes. */
  def changing(catalog: String, ident: Identifier): Option[ViewRefresh] =
    Option(begun.get(ident)).filter(_ => isPrepared(catalog, ident))

  /** Spark asks for partitions too when it writes the rows of such a view, and refuses that then. */
  def refuseClustered(catalog: String, ident: Identifier): Unit = if (isPrepared(catalog, ident)) {
    throw Failures.unsupported(
      s"Spark cannot fill a materialized view that is clustered: leave CLUSTER BY out of " +
        s"${SchemaInternals.quoted(Seq(ident.name))}, and give the table WRITE ORDERED BY if its rows shall be sorted.")
  }

  private def isPrepared(catalog: String, ident: Identifier): Boolean =
    Pipelines.isPreparing && Pipelines.isView(catalog, ident)

  /** The refresh of a view whose rows this thread writes. */
  def filling(ident: Identifier): Option[ViewRefresh] = Option(begun.get(ident)).filter(_ => Pipelines.isFillingView)
}

/** One refresh of a view, whose write may be tried several times. `done` is called when it is committed. */
private[lakelog] final class ViewRefresh(session: OwnTransactions, done: () => Unit) extends Refresh {

  private var changes: Seq[TableChange] = Nil
  private val open = new AtomicReference[OpenTransaction]()

  // A run that fails says nothing, and its transaction must not stay in the Python process for ever.
  ProcessState.whenGone(this)(new AbandonedTransaction(open))

  /**
   * Takes note of what changes with the rows. `alter` makes the changes in a transaction, which is rolled back: what is wrong with
   * them is said now.
   */
  def change(wanted: Seq[TableChange], current: LakeTable)(alter: (Channel, Seq[TableChange]) => LakeTable): LakeTable =
    synchronized {
      changes = wanted.filterNot(isSo(current, _)).flatMap(possible(current, _))
      if (changes.isEmpty) current
      else
        try alter(begin(), changes)
        finally end()
    }

  /** Spark sets every property of a view again in each run. */
  private def isSo(table: LakeTable, change: TableChange): Boolean = change match {
    case set: TableChange.SetProperty => table.properties.get(set.property) == set.value
    case _ => false
  }

  /** A column of a type that its values do not fit becomes another column: none of its values stay. */
  private def possible(table: LakeTable, change: TableChange): Seq[TableChange] = change match {
    case typed: TableChange.UpdateColumnType if !table.supportsColumnChange(typed) =>
      val column = typed.fieldNames
      val parent = column.init
      val before = s"${column.last} before this refresh"
      Seq(
        TableChange.renameColumn(column, before),
        TableChange.addColumn(column, typed.newDataType, true, null, TableChange.ColumnPosition.after(before), null),
        TableChange.deleteColumn(parent :+ before, false))
    case other => Seq(other)
  }

  /** The view for its rows. Changes of its columns need a transaction, and only with these is one begun. */
  def target(current: => LakeTable)(alter: (Channel, Seq[TableChange]) => LakeTable): LakeTable = synchronized {
    val table = if (changes.isEmpty) current else alter(begin(), changes)
    table.refreshed(this)
  }

  private def begin(): Channel = {
    end()
    open.set(session.beginStatement())
    session.channelIn(open.get)
  }

  override def written(): Unit = synchronized {
    Option(open.getAndSet(null)).foreach(session.commitStatement)
    done()
  }

  /** Rolls back what is open of it. */
  def end(): Unit = synchronized(Option(open.getAndSet(null)).foreach(session.rollBackStatement))
}
