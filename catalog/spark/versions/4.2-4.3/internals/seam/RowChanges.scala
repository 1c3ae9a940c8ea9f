package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta
import org.apache.spark.sql.catalyst.util.RowDeltaUtils
import org.apache.spark.sql.connector.write.{DeleteSummary, UpdateSummary}

/** Changes of rows as Spark plans and counts them. */
private[lakelog] object RowChanges {

  /** The condition by which a merge-on-read statement looks first for the files that it changes. */
  def firstLook(delta: WriteDelta): Option[Expression] = delta.groupFilterCondition

  def lookingFirst(delta: WriteDelta, condition: Option[Expression]): WriteDelta =
    delta.copy(groupFilterCondition = condition)

  /** How plans mark rows that a statement changes, and rows that it adds. Rows that are only copied have other marks. */
  val updates: Set[Int] = Set(RowDeltaUtils.UPDATE_OPERATION)

  /** Whether rows that an UPDATE changes and rows that it only copies have the same mark, outside of what makes them. */
  val areMarkedAlike: Boolean = false

  val inserts: Set[Int] = Set(RowDeltaUtils.INSERT_OPERATION)

  /** The rows that an UPDATE has changed, and those that it has copied; None of other statements. */
  def ofUpdate(summary: WriteSummary): Option[(Long, Long)] = Some(summary).collect {
    case update: UpdateSummary => (update.numUpdatedRows, update.numCopiedRows)
  }

  /** The rows that a DELETE has deleted, and those that it has copied; None of other statements. */
  def ofDelete(summary: WriteSummary): Option[(Long, Long)] = Some(summary).collect {
    case delete: DeleteSummary => (delete.numDeletedRows, delete.numCopiedRows)
  }
}
