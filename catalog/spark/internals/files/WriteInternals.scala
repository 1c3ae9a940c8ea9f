package org.apache.spark.sql.lakelog.internals.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.Job
import org.apache.parquet.hadoop.{ParquetFileWriter, ParquetOutputFormat, ParquetWriter}
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.io.OutputFile

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.parquet.{ParquetOptions, ParquetUtils, ParquetWriteSupport}
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.lakelog.files.{BloomSettings, FieldIds, ParquetWriteSettings, RowIds}
import org.apache.spark.sql.lakelog.internals.seam.Files
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.util.SerializableConfiguration

/** How Spark writes Parquet files: settings that the driver fixes, and the writer that executors make of them. */
private[lakelog] object WriteInternals {

  /**
   * What decides about the bytes of a data file. Whatever a session says, a table's files have microseconds
   * (nanoseconds of the old kind carry no statistics), the proleptic calendar, the standard layout of lists, and
   * column ids.
   */
  private val tableFormat: Map[String, String] = Map(
    SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE.key -> SQLConf.ParquetOutputTimestampType.TIMESTAMP_MICROS.toString,
    SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key -> LegacyBehaviorPolicy.CORRECTED.toString,
    SQLConf.PARQUET_WRITE_LEGACY_FORMAT.key -> "false",
    SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED.key -> "true")

  /** What executors need to write Parquet files of `schema`, which names columns as the files shall. */
  def parquetWrite(
      schema: StructType, codec: String, configuration: Configuration, bloom: Option[BloomSettings])
      : ParquetWriteSettings = {
    val format = SettingInternals.conf.clone()
    val job = Job.getInstance(configuration)
    // In both places: Spark asks the one for some of them and the other one for others.
    tableFormat.foreach { case (key, value) =>
      format.setConfString(key, value)
      job.getConfiguration.set(key, value)
    }
    val parquet = new ParquetOptions(Map(ParquetOptions.PARQUET_COMPRESSION -> codec), format)
    ParquetUtils.prepareWrite(format, job, schema, parquet)
    new ParquetWriteSettings(
      SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(job.getConfiguration)),
      parquet.compressionCodecClassName, format.getAllConfs, bloom)
  }

  /** A writer of rows to `file`, on an executor, in the format that [[parquetWrite]] fixed. */
  def parquetWriter(file: OutputFile, settings: ParquetWriteSettings): ParquetWriter[InternalRow] = {
    val format = new SQLConf()
    settings.format.foreach { case (key, value) => format.setConfString(key, value) }
    val configuration = settings.configuration.value.value
    SQLConf.withExistingConf(format) {
      val builder = new RowWriterBuilder(file)
        .withConf(configuration)
        .withCompressionCodec(CompressionCodecName.valueOf(settings.codec))
        .withRowGroupSize(ParquetOutputFormat.getLongBlockSize(configuration))
        .withPageSize(ParquetOutputFormat.getPageSize(configuration))
        .withDictionaryPageSize(ParquetOutputFormat.getDictionaryPageSize(configuration))
        .withDictionaryEncoding(ParquetOutputFormat.getEnableDictionary(configuration))
        // No two rows have the same one, so that a dictionary would be all of them once more.
        .withDictionaryEncoding(RowIds.own(RowIds.Id).name, false)
        .withPageWriteChecksumEnabled(true)
        .withWriteMode(ParquetFileWriter.Mode.CREATE)
      settings.bloom.foreach(withFilters(builder, _))
      builder.build()
    }
  }

  /**
   * How many values will come is not known: of filters of many sizes, the smallest is kept that they fit into. Parquet makes
   * none of a column that is all in a dictionary, so these have none.
   */
  private def withFilters(builder: RowWriterBuilder, bloom: BloomSettings): Unit = {
    Files.limitRows(builder, bloom.values)
    builder.withAdaptiveBloomFilterEnabled(true)
      .withMaxBloomFilterBytes(bloom.mostBytes)
    bloom.columns.foreach { column =>
      builder.withDictionaryEncoding(column, false).withBloomFilterEnabled(column, true)
        .withBloomFilterFPP(column, bloom.errors).withBloomFilterCandidateNumber(column, bloom.sizes)
    }
  }

  private final class RowWriterBuilder(file: OutputFile)
    extends ParquetWriter.Builder[InternalRow, RowWriterBuilder](file) {
    override protected def self: RowWriterBuilder = this
    override protected def getWriteSupport(configuration: Configuration): WriteSupport[InternalRow] =
      new IdentifiedRows
  }

  /** Spark's writer of rows, in files in which elements, keys and values have their ids too. */
  private final class IdentifiedRows extends ParquetWriteSupport {
    override def init(configuration: Configuration): WriteSupport.WriteContext = {
      val plain = super.init(configuration)
      val schema = DataType.fromJson(configuration.get(ParquetWriteSupport.SPARK_ROW_SCHEMA)).asInstanceOf[StructType]
      new WriteSupport.WriteContext(FieldIds.ofParts(plain.getSchema, schema), plain.getExtraMetaData)
    }
  }
}
