package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.lakelog.internals.files.ArrowInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Reads Arrow streams with the columns of `schema`, a task for each; they are made once, when Spark first needs them. */
private[lakelog] final class ArrowScan(name: String, schema: StructType, make: () => Seq[Array[Byte]])
  extends Scan with Batch {

  private lazy val streams = make()

  override def readSchema(): StructType = schema

  override def description(): String = name

  override def toBatch: Batch = this

  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  override def planInputPartitions(): Array[InputPartition] = streams.map(new ArrowPartition(_): InputPartition).toArray

  override def createReaderFactory(): PartitionReaderFactory = ArrowReaderFactory
}

private final class ArrowPartition(val stream: Array[Byte]) extends InputPartition

private object ArrowReaderFactory extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new IllegalStateException("Arrow is read in columns.")

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    ArrowInternals.batches(partition.asInstanceOf[ArrowPartition].stream)

  private def readResolve(): Any = ArrowReaderFactory
}

/** How Python describes the columns of its own tables, and gives their rows: streams one after the other. */
private[lakelog] object SystemStreams {

  def of(answer: (wire.StreamLengths, Array[Byte])): Seq[Array[Byte]] = {
    val (streams, body) = answer
    val lengths = streams.streams.map(_.toInt)
    lengths.scanLeft(0)(_ + _).zip(lengths).map { case (from, length) => body.slice(from, from + length) }
  }
}
