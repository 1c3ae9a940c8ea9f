package org.apache.spark.sql.lakelog.write

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetWriter

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.{DataWriter, DataWriterFactory}
import org.apache.spark.sql.lakelog.expressions.{Curve, PartitionField, Predicates}
import org.apache.spark.sql.lakelog.files.{CountMetric, DataFiles, FooterStatistics, MeasuredFile, ParquetWriteSettings}
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.{RowInternals, WriteInternals}
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * All that a task needs to know to write its files. `schema` is that of the rows, with users' names; `behind` its columns,
 * rows have others. Files say between which places of the `curve` their rows are. `sync` asks for files that survive a power failure.
 */
private[lakelog] final case class WriterSettings(
    parquet: ParquetWriteSettings,
    location: String,
    filePrefix: String,
    specId: Int,
    schema: StructType,
    behind: Seq[StructField],
    partitions: Seq[PartitionField],
    leaves: Map[Seq[String], (Long, DataType)],
    targetBytes: Long,
    identities: Seq[IdentityStart],
    curve: Option[Curve],
    sync: Boolean)

private[lakelog] final class LakeWriterFactory(settings: WriterSettings) extends DataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] =
    new LakeDataWriter(settings, partitionId, s"$partitionId-$taskId")
}

/**
 * Writes the rows of one task to Parquet files: a new one for each partition and whenever one is large enough.
 *
 * Rows come clustered by partition, so one file is open at a time. The statistics of a file are taken from the footer
 * that its writer holds in memory, so nothing is read back. With a `cut`, no file has rows on both sides of that place of the
 * curve, if they come in its order.
 */
private[lakelog] final class LakeDataWriter(
    settings: WriterSettings, partitionId: Int, task: String, cut: Option[Long] = None)
  extends DataWriter[InternalRow] {
  import LakeDataWriter._

  private val configuration = settings.parquet.configuration.value.value
  private val partitionTypes = RowInternals.partitionTypes(settings.partitions, settings.schema)
  private val partitionOf = RowInternals.partitionOf(settings.partitions, settings.schema)
  private val filler =
    if (settings.identities.isEmpty) None
    else Some(new IdentityFiller(settings.identities, settings.schema, settings.behind, partitionId))
  private val files = ArrayBuffer.empty[wire.DataFile]
  private val paths = ArrayBuffer.empty[Path]

  private val placeOf = settings.curve.map(RowInternals.placeOn(_, settings.schema)).orNull
  private var low = Long.MaxValue
  private var high = Long.MinValue

  private var key: UnsafeRow = _
  private var file: MeasuredFile = _
  private var writer: ParquetWriter[InternalRow] = _
  private var rows = 0L
  private var allRows = 0L

  override def currentMetricsValues(): Array[CustomTaskMetric] =
    Array(CountMetric.value(WriteMetrics.written, allRows))

  override def write(row: InternalRow): Unit = put(row, isNew = true)

  /** Writes a row; one that is not new may bring values of identity columns. */
  def put(row: InternalRow, isNew: Boolean): Unit = {
    if (settings.partitions.nonEmpty) {
      val partition = partitionOf(row)
      if (partition != key) {
        close()
        key = partition.copy()
      }
    }
    val whole = if (filler.isEmpty) row else filler.get(row, isNew)
    if (placeOf != null) place(placeOf.placeOf(whole))
    if (writer == null) open()
    writer.write(whole)
    rows += 1
    allRows += 1
    if (rows % RowsBetweenSizeChecks == 0 && writer.getDataSize >= settings.targetBytes) close()
  }

  /** Notes where the next row is on the curve. */
  private def place(at: Long): Unit = {
    if (cut.exists(end => high < end && at >= end)) close()
    if (at < low) low = at
    if (at > high) high = at
  }

  override def commit(): FilesWritten = {
    close()
    FilesWritten(files.map(_.asText).toArray, filler.map(_.taken).getOrElse(Nil).toArray)
  }

  /** Removes what this attempt has written: no other attempt has files of these names. */
  override def abort(): Unit = {
    try if (writer != null) writer.close()
    catch { case _: Exception => } // The file is deleted anyway, and the first error is the one to report.
    writer = null
    paths.foreach(DataFiles.delete(_, configuration))
  }

  override def close(): Unit = if (writer != null) {
    val closing = writer
    writer = null
    closing.close()
    val path = paths.last
    if (settings.sync) DataFiles.sync(path)
    files += wire.DataFile(
      path = relative(paths.length - 1),
      size = file.sizeBytes,
      rows = rows,
      spec = settings.specId.toLong,
      partition = partitionValues,
      stats = FooterStatistics.of(closing.getFooter, settings.leaves),
      crc = Some(file.crc),
      footer = Some(file.footerCrc),
      curve = settings.curve.map(_.generation),
      curveLow = settings.curve.map(_ => low),
      curveHigh = settings.curve.map(_ => high))
    rows = 0
    low = Long.MaxValue
    high = Long.MinValue
  }

  private def open(): Unit = {
    paths += Locations.file(settings.location, relative(paths.length))
    file = DataFiles.create(paths.last, configuration)
    writer = WriteInternals.parquetWriter(file, settings.parquet)
  }

  private def relative(number: Int): String = s"data/${settings.filePrefix}-$task-$number.parquet"

  private def partitionValues: Map[Long, wire.Scalar] =
    settings.partitions.zip(partitionTypes).zipWithIndex.map { case ((field, dataType), i) =>
      field.id.toLong -> (key.get(i, dataType) match {
        case text: UTF8String if !text.isValid =>
          throw Failures.invalid(
            s"The column ${SchemaInternals.quoted(field.column)} partitions the table and has a text that is not " +
              "valid UTF-8, which cannot be a partition value: correct it, with make_valid_utf8 for example.")
        case value => Predicates.encode(value, dataType)
      })
    }.toMap
}

private[lakelog] object LakeDataWriter {

  /** Asking for the size costs more than a row, and a file may be a little larger than asked for. */
  private val RowsBetweenSizeChecks = 1000
}
