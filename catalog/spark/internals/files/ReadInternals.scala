package org.apache.spark.sql.lakelog.internals.files

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetInputFormat
import org.roaringbitmap.RoaringBitmap

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.execution.datasources.parquet.{ParquetOptions, ParquetUtils}
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory
import org.apache.spark.sql.execution.datasources.v2.parquet.{ParquetPartitionReaderFactory, ParquetScan}
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.lakelog.files.{BloomCondition, BloomCounts, BloomFilters, CountedReader, DeletionVector, Footers, LiveBatches, LiveRows, NothingToRead, PlannedFiles}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.SerializableConfiguration

/** How Spark reads Parquet files: its own reader, planned on the driver, behind checks that executors make. */
private[lakelog] object ReadInternals {

  private def session: SparkSession = SparkSession.active

  private def conf: SQLConf = SettingInternals.conf

  /** Whether Parquet files of that schema are read in columns, by the session's settings. */
  def readsColumns(schema: StructType): Boolean =
    ParquetUtils.isBatchReadSupportedForSchema(conf, schema) && conf.wholeStageEnabled &&
    !WholeStageCodegenExec.isTooManyFields(conf, schema)

  /**
   * Spark's own Parquet reader for `schema`, which names columns as the files do. `constants` come with each file, and
   * after the columns. `position` is the column with the positions of the rows, which files need that have deleted ones.
   *
   * Files that Python wrote do not say which calendar they use, and then Spark would take the session's setting. Checksums
   * of pages are compared unless a setting says otherwise, and then filters by dictionary are off: they
   * would read dictionaries without their checksums. Bloom filters are asked here for what is `wanted`, before Spark opens
   * a file; Parquet's own use of them takes both zeros for different, and would read them a second time.
   */
  def parquetReader(
      schema: StructType, filters: Array[Filter], configuration: Configuration,
      constants: StructType, position: Option[Int], wanted: Option[BloomCondition]): PartitionReaderFactory = {
    val asksFilters = configuration.getBoolean(ParquetInputFormat.BLOOM_FILTERING_ENABLED, true)
    configuration.set(ParquetInputFormat.BLOOM_FILTERING_ENABLED, "false")
    configuration.setIfUnset(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, "true")
    if (configuration.getBoolean(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, true)) {
      configuration.setIfUnset(ParquetInputFormat.DICTIONARY_FILTERING_ENABLED, "false")
    }
    val defaults = OldRowDefaults.of(schema)
    val all = StructType(schema.fields ++ constants.fields)
    val scan = ParquetScan(
      session, configuration, null, schema, schema, constants, filters,
      new CaseInsensitiveStringMap(properCalendar.asJava))
    scan.createReaderFactory() match {
      case files: ParquetPartitionReaderFactory =>
        val broadcast = session.sparkContext.broadcast(new SerializableConfiguration(configuration))
        new KnownFilesReaderFactory(files, broadcast, all, position, defaults, wanted.filter(_ => asksFilters))
      case other => throw new IllegalStateException(s"Spark reads Parquet files by a ${other.getClass}")
    }
  }

  /**
   * Reads a file only when it has the size and the footer that the log says, and none of its deleted rows; of a file with
   * Bloom filters, only the part that may have what is `wanted`.
   */
  private final class KnownFilesReaderFactory(
      files: ParquetPartitionReaderFactory, configuration: Broadcast[SerializableConfiguration], all: StructType,
      position: Option[Int], defaults: Option[OldRowDefaults], wanted: Option[BloomCondition])
    extends PartitionReaderFactory {

    override def supportColumnarReads(partition: InputPartition): Boolean = files.supportColumnarReads(partition)

    override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
      val counts = new BloomCounts
      counted(new Files(counts).createReader(partition), counts)
    }

    override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = {
      val counts = new BloomCounts
      counted(new Files(counts).createColumnarReader(partition), counts)
    }

    private def counted[T](reader: PartitionReader[T], counts: BloomCounts): PartitionReader[T] =
      if (wanted.isEmpty) reader else new CountedReader(reader, counts)

    private final class Files(counts: BloomCounts) extends FilePartitionReaderFactory {

      override def options: FileSourceOptions = files.options

      override def buildReader(file: PartitionedFile): PartitionReader[InternalRow] =
        part(file).fold[PartitionReader[InternalRow]](new NothingToRead) { part =>
          val rows = files.buildReader(part.file)
          val whole = defaults.fold(rows)(_.inRows(part.columns, all, rows))
          deleted(file).fold(whole)(new LiveRows(whole, position.get, _))
        }

      override def buildColumnarReader(file: PartitionedFile): PartitionReader[ColumnarBatch] =
        part(file).fold[PartitionReader[ColumnarBatch]](new NothingToRead) { part =>
          val batches = files.buildColumnarReader(part.file)
          val whole = defaults.fold(batches)(_.inColumns(part.columns, batches))
          deleted(file).fold(whole)(new LiveBatches(whole, position.get, _))
        }

      private def deleted(file: PartitionedFile): Option[RoaringBitmap] =
        file.otherConstantMetadataColumnValues.get(Deletes)
          .map(_.asInstanceOf[DeletionVector].load(configuration.value.value))

      /** What is to be read of the part of a file that a task has; None for nothing. */
      private def part(file: PartitionedFile): Option[CheckedPart] = {
        val footer = file.otherConstantMetadataColumnValues.get(FooterCrc).map(_.asInstanceOf[Long])
        val hadoop = configuration.value.value
        if (wanted.isEmpty && defaults.isEmpty) {
          val status = Footers.check(file.toPath, file.fileSize, footer, hadoop)
          Some(CheckedPart(new KnownFile(file, status), Set.empty))
        } else Footers.checked(file.toPath, file.fileSize, footer, hadoop) { (status, opened) =>
          val columns = if (defaults.isEmpty) Set.empty[String] else OldRowDefaults.columnsOf(opened.footer)
          val place = wanted match {
            case None => Some((file.start, file.length))
            case Some(condition) =>
              new BloomFilters(opened, condition, counts, hadoop).narrowed(file.start, file.length)
          }
          place.map { case (start, length) =>
            CheckedPart(new KnownFile(file.copy(start = start, length = length), status), columns)
          }
        }
      }
    }
  }

  /** What is to be read of a file that was checked; its `columns` if some have defaults. */
  private final case class CheckedPart(file: KnownFile, columns: Set[String])

  private val FooterCrc = "lakelog.footer"
  private val Deletes = "lakelog.deletes"

  private val properCalendar: Map[String, String] = Map(
    ParquetOptions.DATETIME_REBASE_MODE -> LegacyBehaviorPolicy.CORRECTED.toString,
    ParquetOptions.INT96_REBASE_MODE -> LegacyBehaviorPolicy.CORRECTED.toString)

  /** How large the parts are at most that Spark splits these files into. It depends on all that a scan reads. */
  def splitBytes(files: PlannedFiles): Long = {
    val openCost = conf.filesOpenCostInBytes
    FilePartition.maxSplitBytes(session, files.totalBytes + openCost * files.length)
  }

  /** Files with these constants, split into parts of `splitBytes` and packed by Spark's own rules. */
  def inputPartitions(
      files: PlannedFiles, constants: Int => InternalRow, splitBytes: Long): Array[InputPartition] = {
    def facts(i: Int) = files.footer(i).map(FooterCrc -> _).toMap[String, Any] ++ files.deletes(i).map(Deletes -> _)
    new PackedFiles(files, splitBytes, facts, constants, conf).partitions
  }
}
