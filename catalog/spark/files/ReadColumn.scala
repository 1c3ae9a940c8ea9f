package org.apache.spark.sql.lakelog.files

import org.apache.spark.sql.types.{Decimal, LongType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/** What a wanted column is made of, by places among the columns and constants that are read of a file. */
private[lakelog] sealed trait ReadColumn extends Serializable {
  def of(batch: ColumnarBatch): ColumnVector
}

private[lakelog] object ReadColumn {

  final case class AsItIs(place: Int) extends ReadColumn {
    override def of(batch: ColumnarBatch): ColumnVector = batch.column(place)
  }

  /**
   * A number that a row may have of its own; else that of the file, plus the row's position if that counts. NULL if
   * neither is there. If positions do not count, it is a version, and the lower one of both: in a clone, rows of files
   * may have versions of another log.
   */
  final case class OwnOrFiles(own: Option[Int], file: Int, position: Option[Int]) extends ReadColumn {
    override def of(batch: ColumnarBatch): ColumnVector = new OwnOrFilesVector(
      own.map(batch.column).orNull, batch.column(file), position.map(batch.column).orNull)
  }
}

/** `own` and `position` are null if there are none. */
private final class OwnOrFilesVector(own: ColumnVector, file: ColumnVector, position: ColumnVector)
  extends ColumnVector(LongType) {

  override def isNullAt(row: Int): Boolean = file.isNullAt(row) && (own == null || own.isNullAt(row))

  override def getLong(row: Int): Long =
    if (own != null && !own.isNullAt(row)) {
      if (position != null || file.isNullAt(row)) own.getLong(row) else own.getLong(row).min(file.getLong(row))
    } else if (position == null) file.getLong(row)
    else file.getLong(row) + position.getLong(row)

  override def hasNull: Boolean = file.hasNull

  /** An upper bound, which is all that is asked for. */
  override def numNulls: Int = file.numNulls

  /** The reader of the file has made the columns, and uses them again. */
  override def close(): Unit = {}
  override def closeIfFreeable(): Unit = {}

  private def notALong = throw new UnsupportedOperationException("These are values of BIGINT")

  override def getBoolean(row: Int): Boolean = notALong
  override def getByte(row: Int): Byte = notALong
  override def getShort(row: Int): Short = notALong
  override def getInt(row: Int): Int = notALong
  override def getFloat(row: Int): Float = notALong
  override def getDouble(row: Int): Double = notALong
  override def getArray(row: Int): ColumnarArray = notALong
  override def getMap(row: Int): ColumnarMap = notALong
  override def getBinary(row: Int): Array[Byte] = notALong
  override def getUTF8String(row: Int): UTF8String = notALong
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = notALong
  override def getChild(ordinal: Int): ColumnVector = notALong
}
