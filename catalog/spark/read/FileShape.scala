package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.JObject
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * How files of other writers are read: what they call the columns, by id, and which columns they have as constants.
 *
 * `names` is None for files whose columns have the table's physical names. A column that is not in the names is not in
 * the file, whatever that has under the same name.
 */
private[lakelog] final case class FileShape(names: Option[Map[Long, String]], constants: Seq[Long])

private[lakelog] object FileShape {

  /** Files of lakelog's own. */
  val Own: FileShape = FileShape(None, Nil)

  def of(names: Option[String], constants: Option[String]): FileShape = FileShape(
    names.map(text => Json.stringMap(Json.obj("names" -> JsonMethods.parse(text)), "names").map {
      case (id, name) => id.toLong -> name
    }),
    constants.map(text => members(text).map(_._1.toLong).sorted).getOrElse(Nil))

  /** The constants of a file, by column id. */
  def constants(text: String): Map[Long, JObject] =
    members(text).collect { case (id, constant: JObject) => id.toLong -> constant }.toMap

  private def members(text: String) = JsonMethods.parse(text).asInstanceOf[JObject].obj
}

/** What of a file of a shape is read: columns by the file's names, then constants, and where each wanted column is. */
private[lakelog] final case class ShapedSchema(
    columns: StructType, constants: StructType, constantIds: Seq[Long], order: Array[Int]) {

  def types: Array[DataType] = (columns.fields ++ constants.fields).map(_.dataType)
}

private[lakelog] final class ShapedPartition(val shape: FileShape, val inner: InputPartition) extends InputPartition {
  override def preferredLocations(): Array[String] = inner.preferredLocations()
}

/** Reads each partition in the way of its files, and gives the columns in the order that was asked for. */
private[lakelog] final class ShapedReaderFactory(
    own: PartitionReaderFactory, shaped: Map[FileShape, (PartitionReaderFactory, ShapedSchema)])
  extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = partition match {
    case part: ShapedPartition => shaped(part.shape)._1.supportColumnarReads(part.inner)
    case other => own.supportColumnarReads(other)
  }

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = partition match {
    case part: ShapedPartition =>
      val (factory, schema) = shaped(part.shape)
      val project = SparkInternals.reordering(schema.order, schema.types)
      new Mapped[InternalRow](factory.createReader(part.inner), project(_))
    case other => own.createReader(other)
  }

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = partition match {
    case part: ShapedPartition =>
      val (factory, schema) = shaped(part.shape)
      new Mapped[ColumnarBatch](
        factory.createColumnarReader(part.inner),
        batch => new ColumnarBatch(schema.order.map(batch.column), batch.numRows))
    case other => own.createColumnarReader(other)
  }
}

private final class Mapped[T](inner: PartitionReader[T], change: T => T) extends PartitionReader[T] {
  override def next(): Boolean = inner.next()
  override def get(): T = change(inner.get())
  override def close(): Unit = inner.close()
}
