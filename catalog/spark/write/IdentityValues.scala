package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{JoinedRow, SpecificInternalRow, UnsafeProjection}
import org.apache.spark.sql.lakelog.columns.IdentityColumn
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.RowInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** From where on the tasks of a write take values of a column: by turns, so that no two of them take the same. */
private[lakelog] final case class IdentityStart(column: IdentityColumn, next: BigInt, tasks: Int)

/** What a task took of the column of that id: values up to `last`, if any. `brought`: some rows brought theirs. */
private[lakelog] final case class IdentityTaken(column: Long, last: Option[Long], brought: Boolean)

/**
 * Puts values into the rows of one task, which have the columns of `schema` and those `behind` them. Another attempt at
 * the task takes the same values, and only one commits.
 */
private[lakelog] final class IdentityFiller(
    starts: Seq[IdentityStart], schema: StructType, behind: Seq[StructField], partition: Int) {

  private val places = starts.map(start => schema.fieldIndex(start.column.name)).toArray
  private val counters = starts.map(new IdentityCounter(_, partition)).toArray
  private val made = new SpecificInternalRow(starts.map(_ => LongType))
  private val joined = new JoinedRow
  private val filled: UnsafeProjection = RowInternals.filling(StructType(schema.fields ++ behind), places)

  /**
   * The row with a value in each of the columns; it is good until the next one. One that `isNew` brings a value only if
   * that is allowed; another keeps the one that it has.
   */
  def apply(row: InternalRow, isNew: Boolean): InternalRow = {
    var i = 0
    while (i < places.length) {
      if (row.isNullAt(places(i))) made.setLong(i, counters(i).take())
      else if (isNew) counters(i).pass()
      else counters(i).keep()
      i += 1
    }
    filled(joined(row, made))
  }

  def taken: Seq[IdentityTaken] = counters.toSeq.map(_.taken)
}

private final class IdentityCounter(start: IdentityStart, partition: Int) {
  private val column = start.column
  private val stride = BigInt(column.step) * start.tasks
  private var next = start.next + BigInt(column.step) * partition
  // Arithmetic of whole numbers without bounds is slow, and hardly ever needed.
  private var fast = next.isValidLong
  private val by = stride.toLong
  private val fits = stride.isValidLong
  private var value = if (fast) next.toLong else 0L
  private var last = 0L
  private var any = false
  private var brought = false

  def take(): Long = {
    if (!fast) throw Failures.invalid(
      s"The identity column ${SchemaInternals.quoted(Seq(column.name))} is exhausted: $next exceeds BIGINT.")
    val taken = value
    any = true
    last = taken
    val following = taken + by
    // Overflown if both have the same sign and the sum has not.
    if (!fits || ((taken ^ following) & (by ^ following)) < 0) {
      fast = false
      next = BigInt(taken) + stride
    } else value = following
    taken
  }

  /** Takes note of a row that brings a value of its own. */
  def pass(): Unit = {
    if (column.always) throw Failures.invalid(column.refusal)
    brought = true
  }

  /** Takes note of a row that had its value before: of a column of made values only, it was taken then. */
  def keep(): Unit = if (!column.always) brought = true

  def taken: IdentityTaken = IdentityTaken(column.id, if (any) Some(last) else None, brought)
}

private[lakelog] object IdentityValues {

  /** The starts of a write with so many tasks, where `next` has the next value of each column by its id. */
  def starts(columns: Seq[IdentityColumn], next: Map[Long, BigInt], tasks: Int): Seq[IdentityStart] =
    columns.map(column => IdentityStart(column, next(column.id), math.max(1, tasks)))

  /** What all tasks together took; nothing of columns of which none did. */
  def united(
      columns: Seq[IdentityColumn], next: Map[Long, BigInt], taken: Seq[IdentityTaken]): Seq[wire.ValuesTaken] =
    columns.flatMap { column =>
      val own = taken.filter(_.column == column.id)
      val lasts = own.flatMap(_.last)
      if (lasts.isEmpty) None
      else Some(wire.ValuesTaken(
          column.id, next(column.id), if (column.step > 0) lasts.max else lasts.min, own.exists(_.brought)))
    }
}
