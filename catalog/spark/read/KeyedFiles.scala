package org.apache.spark.sql.lakelog

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{HasPartitionKey, InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.partitioning.{KeyGroupedPartitioning, Partitioning, UnknownPartitioning}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Reports to Spark by which values the rows of a scan are separated, so that it joins and groups by these without
 * moving rows: a task reads files of one partition only. `required` is what the scan reads of what matches `predicates`.
 *
 * It is reported where it costs few more tasks than files packed together would, or where the session requests it by
 * `spark.sql.sources.v2.bucketing.enabled` itself.
 */
private[lakelog] final class KeyedFiles(
    table: LakeTable, required: StructType, predicates: Seq[Predicate], isWanted: Boolean) {

  private val facts = table.facts

  /** The fields that Spark understands: of a column that is read, as values that are equal where Spark's are. */
  private lazy val fields: Seq[PartitionField] =
    if (!isWanted || !SettingInternals.joinsByKeys) Nil
    else facts.partitionFields.filter { field =>
      field.transform.name != "truncate" && field.column.length == 1 &&
      required.fields.exists(column => column.name == field.column.head && KeyedFiles.isExact(column.dataType))
    }

  private lazy val types: Array[DataType] = fields.map(field =>
    field.transform.resultType(required(field.column.head).dataType)).toArray

  private var reported = false
  private var known: Option[(Long, Map[String, InternalRow])] = None

  /** Of some files of a version; `packed` is how many tasks they are without keys. */
  def partitioning(version: Long, files: PlannedFiles, packed: => Int): Partitioning = synchronized {
    val keys = keysOf(version, files)
    val isWorthIt = keys.exists { found =>
      val most = KeyedFiles.MoreTasks * math.max(packed, SettingInternals.parallelism)
      SettingInternals.joinsByKeysAsAsked || found.distinct.length <= most
    }
    reported = isWorthIt
    if (isWorthIt) new KeyGroupedPartitioning(fields.map(_.toSpark).toArray, keys.get.distinct.length)
    else new UnknownPartitioning(packed)
  }

  /**
   * The partitions that `read` makes of some files, each with its key if the partitioning was reported. Without keys where
   * the version that is read in the end has files of another partitioning: Spark then does as if it had not been reported.
   */
  def partitions(version: Long, files: PlannedFiles)(
      read: PlannedFiles => Array[InputPartition]): Array[InputPartition] = synchronized {
    val keys = if (reported) keysOf(version, files) else None
    keys.fold(read(files)) { found =>
      found.indices.groupBy(found(_)).toArray.sortBy(_._2.head).flatMap { case (key, places) =>
        read(files.at(places.toArray)).map(new KeyedPartition(key, _): InputPartition)
      }
    }
  }

  def factory(read: PartitionReaderFactory): PartitionReaderFactory =
    if (synchronized(reported)) new KeyedReaderFactory(read) else read

  /** The key of each file; None where some file has no key. */
  private def keysOf(version: Long, files: PlannedFiles): Option[IndexedSeq[InternalRow]] =
    if (fields.isEmpty || files.paths.isEmpty) None
    else {
      val byPath = known match {
        case Some((`version`, there)) => there
        case _ =>
          val asked = ask(version)
          known = Some((version, asked))
          asked
      }
      val keys = files.paths.toIndexedSeq.map(byPath.get)
      if (keys.forall(_.isDefined)) Some(keys.flatten) else None
    }

  private def ask(version: Long): Map[String, InternalRow] =
    table.access.failures.table(table.access.ident) {
      val request =
        wire.PartitionKeys(facts.referenceOf(version), fields.map(_.id.toLong), Predicates.toPython(predicates))
      val (answer, body) = table.access.channel.withBytes(request)
      if (!answer.complete) Map.empty
      else {
        val columns = types.zipWithIndex.map { case (dataType, i) => StructField(i.toString, dataType) }
        val rows = ArrowInternals.rows(body, StructType(columns :+ StructField("path", StringType)))
        val toKey = RowInternals.reordering(types.indices.toArray, types)
        rows.map(row => row.getUTF8String(types.length).toString -> (toKey(row).copy(): InternalRow)).toMap
      }
    }
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
