package org.apache.spark.sql.lakelog.files

import org.roaringbitmap.RoaringBitmap

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The positions of a file's deleted rows, passed through once beside its rows: a reader gives these in the order of their
 * positions. If it does not, it is begun anew.
 */
private[lakelog] final class DeletedPositions(deleted: RoaringBitmap) {

  private var left = deleted.getIntIterator
  private var known = take()
  private var asked = 0L

  /** The first deleted position that is not before `position`; beyond all positions if there is none. */
  def from(position: Long): Long = {
    if (position < asked) {
      left = deleted.getIntIterator
      known = take()
    }
    asked = position
    if (known < position) {
      if (position <= DeletedPositions.Last) left.advanceIfNeeded(position.toInt)
      known = if (position <= DeletedPositions.Last) take() else DeletedPositions.None
    }
    known
  }

  private def take(): Long = if (left.hasNext) Integer.toUnsignedLong(left.next()) else DeletedPositions.None
}

private[lakelog] object DeletedPositions {
  private val Last = 0xffffffffL
  private val None = Long.MaxValue
}

/** The rows that are not deleted, of a reader whose column `position` says where in the file each row is. */
private[lakelog] final class LiveRows(inner: PartitionReader[InternalRow], position: Int, bitmap: RoaringBitmap)
  extends PartitionReader[InternalRow] {

  private val deleted = new DeletedPositions(bitmap)

  override def next(): Boolean = {
    var found = inner.next()
    while (found && isDeleted(inner.get().getLong(position))) found = inner.next()
    found
  }

  private def isDeleted(at: Long): Boolean = deleted.from(at) == at

  override def get(): InternalRow = inner.get()

  override def close(): Unit = inner.close()
}

/** The same in columns: a batch stays as it is, seen through the numbers of those of its rows that are left. */
private[lakelog] final class LiveBatches(inner: PartitionReader[ColumnarBatch], position: Int, bitmap: RoaringBitmap)
  extends PartitionReader[ColumnarBatch] {

  private val deleted = new DeletedPositions(bitmap)
  private var batch: ColumnarBatch = _

  override def next(): Boolean = {
    batch = null
    while (batch == null && inner.next()) batch = live(inner.get())
    batch != null
  }

  override def get(): ColumnarBatch = batch

  override def close(): Unit = inner.close()

  /** None of its rows is null. */
  private def live(all: ColumnarBatch): ColumnarBatch = {
    val (positions, rows) = (all.column(position), all.numRows)
    var next = if (rows == 0) 0L else deleted.from(positions.getLong(0))
    if (rows == 0 || next > positions.getLong(rows - 1)) all
    else {
      val kept = new Array[Int](rows)
      var (count, row) = (0, 0)
      while (row < rows) {
        val at = positions.getLong(row)
        if (next < at) next = deleted.from(at)
        if (next != at) {
          kept(count) = row
          count += 1
        }
        row += 1
      }
      if (count == rows) all
      else if (count == 0) null
      else new ColumnarBatch(Array.tabulate(all.numCols)(i => new PickedRows(all.column(i), kept): ColumnVector), count)
    }
  }
}

/** Some rows of a column: row `i` is row `rows(i)` of `all`. */
private final class PickedRows(all: ColumnVector, rows: Array[Int]) extends ColumnVector(all.dataType) {

  override def close(): Unit = all.close()

  /** The reader of the file uses the column again. */
  override def closeIfFreeable(): Unit = all.closeIfFreeable()

  override def hasNull: Boolean = all.hasNull

  /** An upper bound, which is all that is asked for. */
  override def numNulls: Int = all.numNulls

  override def isNullAt(row: Int): Boolean = all.isNullAt(rows(row))
  override def getBoolean(row: Int): Boolean = all.getBoolean(rows(row))
  override def getByte(row: Int): Byte = all.getByte(rows(row))
  override def getShort(row: Int): Short = all.getShort(rows(row))
  override def getInt(row: Int): Int = all.getInt(rows(row))
  override def getLong(row: Int): Long = all.getLong(rows(row))
  override def getFloat(row: Int): Float = all.getFloat(rows(row))
  override def getDouble(row: Int): Double = all.getDouble(rows(row))
  override def getArray(row: Int): ColumnarArray = all.getArray(rows(row))
  override def getMap(row: Int): ColumnarMap = all.getMap(rows(row))
  override def getBinary(row: Int): Array[Byte] = all.getBinary(rows(row))
  override def getUTF8String(row: Int): UTF8String = all.getUTF8String(rows(row))
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = all.getDecimal(rows(row), precision, scale)

  /** Of structs, whose fields have a row for each of theirs; lists and maps are read as values. Asked for in each row. */
  override def getChild(ordinal: Int): ColumnVector = {
    if (ordinal >= children.length) children = java.util.Arrays.copyOf(children, ordinal + 1)
    if (children(ordinal) == null) children(ordinal) = new PickedRows(all.getChild(ordinal), rows)
    children(ordinal)
  }

  private var children = new Array[ColumnVector](0)
}
