package org.apache.spark.sql.lakelog

import java.io.ByteArrayInputStream

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.ValueVector
import org.apache.arrow.vector.ipc.ArrowStreamReader

import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** How Spark reads Arrow, on executors too. See [[SparkInternals]]. */
private[lakelog] object ArrowInternals {

  /** The batches of an Arrow stream. Each is gone when the next one is read. */
  def batches(stream: Array[Byte]): PartitionReader[ColumnarBatch] = new PartitionReader[ColumnarBatch] {
    private val allocator = ArrowUtils.rootAllocator.newChildAllocator("lakelog-rows", 0, Long.MaxValue)
    private val reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)

    override def next(): Boolean = reader.loadNextBatch()

    override def get(): ColumnarBatch = {
      val root = reader.getVectorSchemaRoot
      new ColumnarBatch(root.getFieldVectors.asScala.map(new Borrowed(_): ColumnVector).toArray, root.getRowCount)
    }

    override def close(): Unit = try reader.close() finally allocator.close()
  }

  /** Spark lets go of each batch when it has read it, but the next one comes in the same vectors. */
  private final class Borrowed(vector: ValueVector) extends ArrowColumnVector(vector) {
    override def close(): Unit = ()
  }
}
