package org.apache.spark.sql.lakelog.internals.files

import java.io.InputStream
import java.util.Locale

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import org.apache.parquet.format.{SchemaElement, Util}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Literal, UnsafeProjection}
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.vectorized.{ColumnVectorUtils, ConstantColumnVector}
import org.apache.spark.sql.lakelog.columns.OldRowValues
import org.apache.spark.sql.lakelog.files.{Constants, Mapped}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/**
 * What rows have in columns that their file lacks: the default that the column was added with.
 *
 * Spark's readers learn of no defaults, as they get some of them wrong. The reader of columns takes only decimals whose
 * digits fit into 64 bits, and no binary values. The reader of rows takes the columns that a file lacks for the last ones of
 * all that are read. So the values are set here, by the columns that are in the file's footer.
 */
private[lakelog] final class OldRowDefaults private (columns: StructType, values: Array[Any], anyCase: Boolean)
  extends Serializable {

  /** The rows of a file that has `there`, by its reader; `all` are the columns and what is read behind them. */
  def inRows(
      there: Set[String], all: StructType, reader: PartitionReader[InternalRow]): PartitionReader[InternalRow] = {
    val missing = missingOf(there)
    if (missing.isEmpty) reader
    else {
      val project = UnsafeProjection.create(all.indices.map { i =>
        if (missing(i)) Literal(values(i), all(i).dataType) else BoundReference(i, all(i).dataType, nullable = true)
      })
      new Mapped[InternalRow](reader, project(_))
    }
  }

  /** The same in columns. */
  def inColumns(there: Set[String], reader: PartitionReader[ColumnarBatch]): PartitionReader[ColumnarBatch] = {
    val missing = missingOf(there)
    if (missing.isEmpty) reader
    else {
      val defaults = missing.toSeq.map(i => i -> OldRowDefaults.column(columns(i).dataType, values(i))).toMap
      def filled(batch: ColumnarBatch): ColumnarBatch = new ColumnarBatch(
        Array.tabulate(batch.numCols)(i => defaults.getOrElse(i, batch.column(i))), batch.numRows)
      new Mapped[ColumnarBatch](reader, filled)
    }
  }

  private def missingOf(there: Set[String]): Set[Int] = {
    val names = there.map(spelled)
    values.indices.filter(i => values(i) != null && !names(spelled(columns(i).name))).toSet
  }

  private def spelled(name: String): String = if (anyCase) name.toLowerCase(Locale.ROOT) else name
}

private[lakelog] object OldRowDefaults {

  /** None if no column has a default. */
  def of(columns: StructType): Option[OldRowDefaults] = {
    val values = columns.fields.map(valueOf)
    if (values.forall(_ == null)) None
    else Some(new OldRowDefaults(columns, values, anyCase = !SettingInternals.conf.caseSensitiveAnalysis))
  }

  private def valueOf(field: StructField): Any =
    if (!field.metadata.contains(OldRowValues.Key)) null
    else {
      val stored = wire.TypedValue.parsed(field.metadata.getMetadata(OldRowValues.Key).json)
      stored.value.map(Constants.value(_, stored.`type`, field.dataType)).orNull
    }

  /** The names of a Parquet file's columns, by its footer. */
  def columnsOf(footer: InputStream): Set[String] = {
    @tailrec
    def skipped(elements: List[SchemaElement], count: Int): List[SchemaElement] =
      if (count == 0) elements else skipped(elements.tail, count - 1 + elements.head.getNum_children)
    @tailrec
    def tops(elements: List[SchemaElement], found: Set[String]): Set[String] = elements match {
      case top :: rest => tops(skipped(rest, top.getNum_children), found + top.getName)
      case Nil => found
    }
    // The first element stands for the file.
    tops(Util.readFileMetaData(footer, true).getSchema.asScala.toList.drop(1), Set.empty)
  }

  /** A column that has `value` in every row. */
  private def column(dataType: DataType, value: Any): ColumnVector = {
    val column = new ConstantColumnVector(1, dataType)
    ColumnVectorUtils.populate(column, InternalRow(value), 0)
    column
  }
}
