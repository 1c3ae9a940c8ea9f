package org.apache.spark.sql.lakelog.internals.streams

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, BoundReference, Literal, SortOrder, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, Distribution, Partitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.lakelog.internals.seam.{ChangelogContext, DeduplicationMode}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StringType

/** Compares the changes of each row, which come together and in the order of their versions. */
private[lakelog] final case class ComparedChangesExec(
    child: SparkPlan, columns: Seq[Attribute], comparison: RowComparison) extends UnaryExecNode {

  private def row = columns.head

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] = Seq(ClusteredDistribution(Seq(row)))

  /** Within a version, a row is deleted before it is inserted. */
  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq(Seq(row, columns(2), columns(3)).map(SortOrder(_, Ascending)))

  override protected def doExecute(): RDD[InternalRow] = {
    val ordinals = columns.map(column => output.indexWhere(_.exprId == column.exprId))
    val (types, how) = (output.map(_.dataType), comparison)
    child.execute().mapPartitionsInternal { rows =>
      val (row, rowVersion, version, change) = (ordinals(0), ordinals(1), ordinals(2), ordinals(3))
      def named(name: String) = UnsafeProjection.create(types.indices.map { i =>
        if (i == change) Literal.create(name, StringType) else BoundReference(i, types(i), nullable = true)
      })
      val (before, after) = (named(RowComparison.BeforeUpdate), named(RowComparison.AfterUpdate))
      new RowGroups(rows, row).flatMap { group =>
        val changes = group.map(each =>
          RowChange(each, each.getLong(version), each.getLong(rowVersion), each.getUTF8String(change).toString))
        how.compared(changes).map(each =>
          each.change match {
            case RowComparison.BeforeUpdate => before(each.row).copy()
            case RowComparison.AfterUpdate => after(each.row).copy()
            case _ => each.row
          })
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ComparedChangesExec = copy(child = newChild)
}

/** The rows that have the same number, which come one after the other. */
private final class RowGroups(rows: Iterator[InternalRow], number: Int) extends Iterator[Seq[InternalRow]] {

  private var ahead: InternalRow = take()

  override def hasNext: Boolean = ahead != null

  override def next(): Seq[InternalRow] = {
    val (group, id) = (mutable.ArrayBuffer.empty[InternalRow], ahead.getLong(number))
    while (ahead != null && ahead.getLong(number) == id) {
      group += ahead
      ahead = take()
    }
    group.toSeq
  }

  /** Spark uses the row again. */
  private def take(): InternalRow = if (rows.hasNext) rows.next().copy() else null
}

/** One change of a row, as a query gets it. */
private[lakelog] final case class RowChange(row: InternalRow, version: Long, rowVersion: Long, change: String)

/**
 * What becomes of the changes of one row. Without rows that were only copied: deleted and inserted again in one version, with
 * the version that they had. With `updates`, rows that were deleted and inserted are named so. `net` leaves the difference
 * of the row after all versions to that before.
 */
private[lakelog] final case class RowComparison(dropsCopies: Boolean, updates: Boolean, net: Boolean) {
  import RowComparison._

  /** In the order of the versions, of each the deletion first. */
  def compared(changes: Seq[RowChange]): Seq[RowChange] =
    if (changes.length == 1) changes
    else if (net) netOf(changes)
    else pairs(changes).flatMap {
      case pair @ Seq(gone, come) =>
        if (isCopy(gone, come)) Nil else if (updates) asUpdate(gone, come) else pair
      case one => one
    }

  private def netOf(all: Seq[RowChange]): Seq[RowChange] = {
    val changes = pairs(all).filter { case Seq(gone, come) => !isCopy(gone, come); case _ => true }.flatten
    if (changes.isEmpty) Nil
    else {
      val (first, last) = (changes.head, changes.last)
      (first.change, last.change) match {
        case (Delete, Insert) if first.rowVersion == last.rowVersion => Nil
        case (Delete, Insert) => if (updates) asUpdate(first, last) else Seq(first, last)
        case (Delete, _) => Seq(first)
        case (_, Insert) => Seq(last)
        case _ => Nil
      }
    }
  }

  /** The changes of each version, of which there is one or there are two. */
  private def pairs(changes: Seq[RowChange]): Seq[Seq[RowChange]] = {
    val found = mutable.ArrayBuffer.empty[Seq[RowChange]]
    changes.foreach { change =>
      if (found.nonEmpty && found.last.head.version == change.version) found(found.length - 1) = found.last :+ change
      else found += Seq(change)
    }
    found.toSeq
  }

  private def isCopy(gone: RowChange, come: RowChange): Boolean = dropsCopies && gone.rowVersion == come.rowVersion

  private def asUpdate(gone: RowChange, come: RowChange): Seq[RowChange] =
    Seq(gone.copy(change = BeforeUpdate), come.copy(change = AfterUpdate))
}

private[lakelog] object RowComparison {

  private val Delete = "delete"
  private val Insert = "insert"
  val BeforeUpdate = "update_preimage"
  val AfterUpdate = "update_postimage"

  /** None if there is nothing to compare among such changes. */
  def of(asked: ChangelogContext, among: wire.StreamBatchFiles): Option[RowComparison] = {
    val dropsCopies = asked.deduplicationMode != DeduplicationMode.NONE && among.mayCarry
    val updates = asked.computeUpdates && among.mayUpdate
    val net = asked.deduplicationMode == DeduplicationMode.NET_CHANGES && among.mayRepeat
    // Over several versions, a row that was deleted and inserted is an update too.
    if (dropsCopies || updates || net) Some(RowComparison(dropsCopies, asked.computeUpdates, net)) else None
  }
}
