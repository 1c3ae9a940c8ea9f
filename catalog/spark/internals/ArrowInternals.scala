package org.apache.spark.sql.lakelog

import java.io.ByteArrayInputStream

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.{BigIntVector, ValueVector, VectorSchemaRoot}
import org.apache.arrow.vector.ipc.ArrowStreamReader

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** How Spark reads the Arrow that Python sends: batches for columns on executors, rows and lists of files on the driver. */
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

    override def close(): Unit =
      try reader.close()
      finally allocator.close()
  }

  /** Spark closes each batch when it has read it, but the next one comes in the same vectors. */
  private final class Borrowed(vector: ValueVector) extends ArrowColumnVector(vector) {
    override def close(): Unit = ()
  }

  /**
   * Reads an Arrow stream of the columns path, size, rows and, where any file has some, footer, names, constants, deletes,
   * first_row and version. Where all files have keys, their values are in the columns key0, key1, …, of `keyTypes`.
   */
  def plannedFiles(arrow: Array[Byte], location: String, keyTypes: Seq[DataType] = Nil): PlannedFiles = {
    val (paths, sizes, rows) = (Array.newBuilder[String], Array.newBuilder[Long], Array.newBuilder[Long])
    val (footers, ids, versions) =
      (Array.newBuilder[Option[Long]], Array.newBuilder[Option[Long]], Array.newBuilder[Option[Long]])
    val (names, constants, deletes) =
      (Array.newBuilder[String], Array.newBuilder[String], Array.newBuilder[String])
    val keys = Array.newBuilder[InternalRow]
    var hasKeys = keyTypes.nonEmpty
    foreachBatch(arrow, "lakelog-plan") { root =>
      def whole(column: String) = root.getVector(column).asInstanceOf[BigIntVector]
      val (path, size, count) = (root.getVector("path"), whole("size"), whole("rows"))
      val numbers = Seq("footer" -> footers, "first_row" -> ids, "version" -> versions).map { case (column, found) =>
        (whole(column), found)
      }
      (0 until root.getRowCount).foreach { i =>
        paths += path.getObject(i).toString
        sizes += size.get(i)
        rows += count.get(i)
        numbers.foreach { case (known, found) =>
          found += (if (known == null || known.isNull(i)) None else Some(known.get(i)))
        }
        Seq("names" -> names, "constants" -> constants, "deletes" -> deletes).foreach { case (column, texts) =>
          texts += Option(root.getVector(column)).flatMap(v => Option(v.getObject(i))).map(_.toString).orNull
        }
      }
      val keyed = keyTypes.indices.map(i => root.getVector(s"key$i"))
      hasKeys &&= !keyed.contains(null)
      if (hasKeys) keys ++= unsafeRows(keyed, root.getRowCount, UnsafeProjection.create(keyTypes.toArray))
    }
    new PlannedFiles(
      paths.result(), sizes.result(), rows.result(), footers.result(), names.result(), constants.result(),
      deletes.result(), ids.result(), versions.result(), location, if (hasKeys) Some(keys.result()) else None)
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
      val reader = new ArrowStreamReader(new ByteArrayInputStream(arrow), allocator)
      try while (reader.loadNextBatch()) use(reader.getVectorSchemaRoot)
      finally reader.close()
    } finally allocator.close()
  }
}
