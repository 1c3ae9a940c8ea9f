package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.lakelog.files.{FileShape, Mapped, ShapedPartition, ShapedSchema}
import org.apache.spark.sql.lakelog.internals.files.RowInternals
import org.apache.spark.sql.vectorized.ColumnarBatch

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
