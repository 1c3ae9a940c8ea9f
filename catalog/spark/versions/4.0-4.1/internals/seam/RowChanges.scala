package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta
import org.apache.spark.sql.catalyst.util.RowDeltaUtils

/** Changes of rows as Spark plans and counts them. */
private[lakelog] object RowChanges {

  /** The condition by which a merge-on-read statement looks first for the files that it changes: here it has none. */
  def firstLook(delta: WriteDelta): Option[Expression] = None

  def lookingFirst(delta: WriteDelta, condition: Option[Expression]): WriteDelta = delta

  /** How plans mark rows that a statement changes, and rows that it adds. Rows that are only copied count as changed. */
  val updates: Set[Int] = Set(RowDeltaUtils.UPDATE_OPERATION, RowDeltaUtils.WRITE_WITH_METADATA_OPERATION)

  /** Whether rows that an UPDATE changes and rows that it only copies have the same mark, outside of what makes them. */
  val areMarkedAlike: Boolean = true

  val inserts: Set[Int] = Set(RowDeltaUtils.INSERT_OPERATION, RowDeltaUtils.WRITE_OPERATION)

  /** The rows that an UPDATE has changed, and those that it has copied: Spark counts those of MERGE only. */
  def ofUpdate(summary: WriteSummary): Option[(Long, Long)] = None

  /** The rows that a DELETE has deleted, and those that it has copied. */
  def ofDelete(summary: WriteSummary): Option[(Long, Long)] = None
}
