package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{HasPartitionKey, InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.partitioning.{KeyGroupedPartitioning, Partitioning, UnknownPartitioning}
import org.apache.spark.sql.lakelog.expressions.PartitionField
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.table.TableFacts
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Reports to Spark by which values the rows of a scan are separated, so that it joins and groups by these without
 * moving rows: a task reads files of one partition only. `required` is what the scan reads.
 *
 * It is reported if it costs few more tasks than files packed together would, or if the session requests it by
 * `spark.sql.sources.v2.bucketing.enabled` itself.
 */
private[lakelog] final class KeyedFiles(facts: TableFacts, required: StructType, isWanted: Boolean) {

  /** The fields that Spark understands: of a column that is read, as values that are equal if Spark's are. */
  private lazy val fields: Seq[PartitionField] =
    if (!isWanted || !SettingInternals.joinsByKeys) Nil
    else facts.partitionFields.filter { field =>
      field.transform.name != "truncate" && field.column.length == 1 &&
      required.fields.exists(column => column.name == field.column.head && KeyedFiles.isExact(column.dataType))
    }

  /** The ids of these fields: a plan gives their values with the files. */
  def fieldIds: Seq[Long] = fields.map(_.id.toLong)

  lazy val types: Seq[DataType] = fields.map(field =>
    field.transform.resultType(required(field.column.head).dataType))

  private var reported = false

  /** Of the files of a plan; `packed` is how many tasks they are without keys. */
  def partitioning(files: PlannedFiles, packed: => Int): Partitioning = synchronized {
    val keys = files.keys.filter(_.nonEmpty)
    val isWorthIt = keys.exists { found =>
      val most = KeyedFiles.MoreTasks * math.max(packed, SettingInternals.parallelism)
      SettingInternals.joinsByKeysAsAsked || found.length <= most
    }
    reported = isWorthIt
    if (isWorthIt) new KeyGroupedPartitioning(fields.map(_.toSpark).toArray, keys.get.length)
    else new UnknownPartitioning(packed)
  }

  /**
   * The partitions that `read` makes of the files of each key, if the partitioning was reported; else `packed`. So too
   * if the version that is read in the end has files of another partitioning: Spark then does as if it had not been.
   */
  def partitions(files: PlannedFiles, packed: => Array[InputPartition])(
      read: PlannedFiles => Array[InputPartition]): Array[InputPartition] =
    synchronized {
      val keys = if (reported) files.keys.filter(_.nonEmpty) else None
      keys.fold(packed) { found =>
        found.toArray.flatMap { case (key, some) => read(some).map(new KeyedPartition(key, _): InputPartition) }
      }
    }

  def factory(read: PartitionReaderFactory): PartitionReaderFactory =
    if (synchronized(reported)) new KeyedReaderFactory(read) else read

}

private[lakelog] object KeyedFiles {

  /** So many times the tasks may there be with keys. */
  private val MoreTasks = 2

  /** Types of which Spark joins and groups the values that are kept, and no others: zeros and NaNs are several. */
  private def isExact(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType |
        StringType | BinaryType | _: DecimalType => true
    case _ => false
  }
}

/** A part of a scan, all of whose rows have that key. */
private[lakelog] final class KeyedPartition(key: InternalRow, val inner: InputPartition)
  extends InputPartition with HasPartitionKey {
  override def partitionKey(): InternalRow = key
  override def preferredLocations(): Array[String] = inner.preferredLocations()
}

/** Reads what is in [[KeyedPartition]]s. */
private[lakelog] final class KeyedReaderFactory(read: PartitionReaderFactory) extends PartitionReaderFactory {

  private def inner(partition: InputPartition): InputPartition = partition match {
    case keyed: KeyedPartition => keyed.inner
    case other => other
  }

  override def supportColumnarReads(partition: InputPartition): Boolean = read.supportColumnarReads(inner(partition))

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    read.createReader(inner(partition))

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    read.createColumnarReader(inner(partition))
}
