package org.apache.spark.sql.lakelog.internals.files

import java.nio.ByteBuffer
import java.nio.channels.ReadableByteChannel

import scala.jdk.CollectionConverters._

import org.apache.arrow.memory.{ArrowBuf, BufferAllocator}
import org.apache.arrow.vector.{BigIntVector, ValueVector, VarCharVector, VectorSchemaRoot}
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ReadChannel}
import org.apache.arrow.vector.ipc.message.MessageChannelReader

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.lakelog.files.FileColumns
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** How Spark reads the Arrow that Python sends: batches for columns on executors, rows and lists of files on the driver. */
private[lakelog] object ArrowInternals {

  /** The batches of an Arrow stream. Each is gone when the next one is read. */
  def batches(stream: Array[Byte]): PartitionReader[ColumnarBatch] = new PartitionReader[ColumnarBatch] {
    private val allocator = ArrowUtils.rootAllocator.newChildAllocator("lakelog-rows", 0, Long.MaxValue)
    private val reader = readerOf(stream, allocator)

    override def next(): Boolean = reader.loadNextBatch()

    override def get(): ColumnarBatch = {
      val root = reader.getVectorSchemaRoot
      new ColumnarBatch(root.getFieldVectors.asScala.map(new Borrowed(_): ColumnVector).toArray, root.getRowCount)
    }

    override def close(): Unit =
      try reader.close()
      finally allocator.close()
  }

  /** Spark closes each batch when it has read it, but the next one comes in the same vectors. */
  private final class Borrowed(vector: ValueVector) extends ArrowColumnVector(vector) {
    override def close(): Unit = ()
  }

  /**
   * Takes the files of an Arrow stream of the columns path, size, rows and, if any file has some, footer, names, constants,
   * deletes, first_row and version. If all files have keys, their values are in the columns key0, key1, …, of `keyTypes`.
   */
  def addFiles(arrow: Array[Byte], keyTypes: Seq[DataType], files: FileColumns.Builder): Unit = {
    lazy val toUnsafe = UnsafeProjection.create(keyTypes.toArray)
    foreachBatch(arrow, "lakelog-plan") { root =>
      def whole(column: String): Option[Int => Long] =
        Option(root.getVector(column).asInstanceOf[BigIntVector]).map(known =>
          i => if (known.isNull(i)) FileColumns.Unknown else known.get(i))
      def text(column: String): Option[Int => Array[Byte]] =
        Option(root.getVector(column).asInstanceOf[VarCharVector]).map(known => known.get(_))
      val keyed = keyTypes.indices.map(i => root.getVector(s"key$i"))
      val keys =
        if (keyed.isEmpty || keyed.contains(null)) None else Some(unsafeRows(keyed, root.getRowCount, toUnsafe))
      files.add(root.getRowCount, text("path").get, whole("size").get, whole("rows").get, whole, text, keys)
    }
  }

  /** Reads the rows of an Arrow stream whose columns have these types. */
  def rows(arrow: Array[Byte], schema: StructType): Array[InternalRow] = {
    val toUnsafe = UnsafeProjection.create(schema)
    val found = Array.newBuilder[InternalRow]
    foreachBatch(arrow, "lakelog-rows") { root =>
      found ++= unsafeRows(root.getFieldVectors.asScala.toSeq, root.getRowCount, toUnsafe)
    }
    found.result()
  }

  private def unsafeRows(vectors: Seq[ValueVector], count: Int, toUnsafe: UnsafeProjection): Iterator[InternalRow] = {
    val columns = vectors.map(new ArrowColumnVector(_): ColumnVector).toArray
    new ColumnarBatch(columns, count).rowIterator.asScala.map(toUnsafe(_).copy())
  }

  private def foreachBatch(arrow: Array[Byte], name: String)(use: VectorSchemaRoot => Unit): Unit = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator(name, 0, Long.MaxValue)
    try {
      val reader = readerOf(arrow, allocator)
      try while (reader.loadNextBatch()) use(reader.getVectorSchemaRoot)
      finally reader.close()
    } finally allocator.close()
  }

  private def readerOf(arrow: Array[Byte], allocator: BufferAllocator): ArrowStreamReader =
    new ArrowStreamReader(new MessageChannelReader(new BytesChannel(new Bytes(arrow)), allocator), allocator)

  private final class Bytes(val all: Array[Byte]) extends ReadableByteChannel {
    var at = 0

    def left: Int = all.length - at

    override def read(into: ByteBuffer): Int = {
      val count = math.min(into.remaining, left)
      into.put(all, at, count)
      at += count
      if (count == 0 && into.hasRemaining) -1 else count
    }

    override def isOpen: Boolean = true
    override def close(): Unit = ()
  }

  /**
   * Copies what is in memory straight into Arrow's. Arrow's own channel wraps its memory in buffers of Java's, which takes options of
   * the JVM that a driver lacks in deploy mode cluster on Spark standalone.
   */
  private final class BytesChannel(bytes: Bytes) extends ReadChannel(bytes) {

    override def bytesRead(): Long = bytes.at

    override def readFully(into: ArrowBuf, length: Long): Long = {
      val count = math.min(length, bytes.left).toInt
      into.setBytes(0, bytes.all, bytes.at, count)
      into.writerIndex(count)
      bytes.at += count
      count
    }
  }
}
