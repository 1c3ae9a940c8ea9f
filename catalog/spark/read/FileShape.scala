package org.apache.spark.sql.lakelog

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * What files have in common that are read in one way: what they call the columns, by id, which columns they have as
 * constants, and whether some of their rows are deleted.
 *
 * `names` is None for files whose columns have the table's physical names. A column that is not in the names is not in
 * the file, whatever that has under the same name.
 */
private[lakelog] final case class FileShape(names: Option[Map[Long, String]], constants: Seq[Long], hasDeletes: Boolean)

private[lakelog] object FileShape {

  /** lakelog's own files, with all of their rows. */
  val Own: FileShape = FileShape(None, Nil, hasDeletes = false)

  def of(names: Option[String], constants: Option[String], hasDeletes: Boolean): FileShape = FileShape(
    names.map(wire.Json.read[Map[Long, String]](_)),
    constants.map(FileShape.constants(_).keys.toSeq.sorted).getOrElse(Nil), hasDeletes)

  /** The constants of a file, by column id. */
  def constants(text: String): Map[Long, wire.Constant] = wire.Json.read[Map[Long, wire.Constant]](text)
}

/**
 * What of a file of a shape is read: columns by the file's names, with the positions of the rows among them where these
 * are wanted or needed, then constants of the file; and what each wanted column is made of.
 */
private[lakelog] final case class ShapedSchema(
    columns: StructType, constants: StructType, meanings: Seq[FileConstant], order: Array[ReadColumn]) {

  def types: Array[DataType] = (columns.fields ++ constants.fields).map(_.dataType)

  /** Where the positions are among the columns. */
  def position: Option[Int] = Some(columns.fieldNames.indexOf(ShapedSchema.Position)).filter(_ >= 0)

  /** Whether what is read is what is wanted. */
  def isPlain: Boolean = constants.isEmpty && order.toSeq == columns.indices.map(ReadColumn.AsItIs(_))
}

private[lakelog] object ShapedSchema {

  /** Under this name, Spark's reader gives the position of each row in its file. */
  val Position: String = ReadInternals.RowPositionColumn

  /** What the constants of a file are called that are no columns of the table: nothing in a file is. */
  def constant(name: String): String = name + PhysicalSchema.NotThere
}

/** What is the same for all rows of a file. */
private[lakelog] sealed trait FileConstant
private[lakelog] object FileConstant {

  /** A column of the table, by its id. */
  final case class OfColumn(id: Long) extends FileConstant
  case object Name extends FileConstant

  /** The id of its first row. */
  case object FirstRow extends FileConstant

  /** The version that has added it. */
  case object Version extends FileConstant
}

private[lakelog] final class ShapedPartition(val shape: FileShape, val inner: InputPartition) extends InputPartition {
  override def preferredLocations(): Array[String] = inner.preferredLocations()
}

/**
 * Reads each partition in the way of its files, and gives the columns in the order that was asked for.
 *
 * `inColumns` is the answer for the whole scan: Spark makes one plan for all of its partitions.
 */
private[lakelog] final class ShapedReaderFactory(
    shaped: Map[FileShape, (PartitionReaderFactory, ShapedSchema)], inColumns: Boolean) extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = inColumns

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val (files, factory, schema) = parts(partition)
    if (schema.isPlain) factory.createReader(files)
    else {
      val project = RowInternals.projection(schema.order, schema.types)
      new Mapped[InternalRow](factory.createReader(files), project(_))
    }
  }

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = {
    val (files, factory, schema) = parts(partition)
    val reader = factory.createColumnarReader(files)
    if (schema.isPlain) reader
    else new Mapped[ColumnarBatch](reader, batch => new ColumnarBatch(schema.order.map(_.of(batch)), batch.numRows))
  }

  private def parts(partition: InputPartition): (InputPartition, PartitionReaderFactory, ShapedSchema) = {
    val (shape, files) = partition match {
      case part: ShapedPartition => (part.shape, part.inner)
      case own => (FileShape.Own, own)
    }
    val (factory, schema) = shaped(shape)
    (files, factory, schema)
  }
}

private final class Mapped[T](inner: PartitionReader[T], change: T => T) extends PartitionReader[T] {
  override def next(): Boolean = inner.next()
  override def get(): T = change(inner.get())
  override def currentMetricsValues(): Array[CustomTaskMetric] = inner.currentMetricsValues()
  override def close(): Unit = inner.close()
}

/** A file, or a part of one, that has none of the rows that are wanted. */
private[lakelog] final class NothingToRead[T] extends PartitionReader[T] {
  override def next(): Boolean = false
  override def get(): T = throw new NoSuchElementException("There is no row")
  override def close(): Unit = {}
}

/** Reports to Spark what Bloom filters were asked while a task has read its files. */
private[lakelog] final class CountedReader[T](
    inner: PartitionReader[T], counts: BloomCounts) extends PartitionReader[T] {
  override def next(): Boolean = inner.next()
  override def get(): T = inner.get()
  override def currentMetricsValues(): Array[CustomTaskMetric] = inner.currentMetricsValues() ++ Seq(
    CountMetric.value(new RowGroupsAsked, counts.asked), CountMetric.value(new RowGroupsLeftOut, counts.leftOut))
  override def close(): Unit = inner.close()
}
