package org.apache.spark.sql.lakelog.internals.files

import java.util.Locale
import java.util.zip.CRC32

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.InputFile
import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, PrimitiveType}
import org.apache.parquet.schema.LogicalTypeAnnotation.{DecimalLogicalTypeAnnotation, IntLogicalTypeAnnotation, StringLogicalTypeAnnotation, TimestampLogicalTypeAnnotation}

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, ExternalCatalogUtils}
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.lakelog.files.{FooterLook, FooterStatistics, ForeignFile}
import org.apache.spark.sql.lakelog.internals.{Failures, SettingInternals}
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

/** A table of another format: its folder, or the file of its metadata, and its columns, those of partitions among them. */
private[lakelog] final case class SourceTable(url: String, columns: StructType, partitionedBy: Seq[String])

/** The calls into Spark's internals for files of other writers. All but [[FooterReader]] runs on the driver. */
private[lakelog] object FooterInternals {

  private def session: SparkSession = SparkSession.active

  /** All files below some folders, with their sizes; Spark's rules say which are hidden. */
  def filesBelow(roots: Seq[Path], settings: Map[String, String]): Seq[(Path, Long)] = {
    val configuration = SettingInternals.hadoopConf(roots.head.toString, settings)
    val there = roots.filter(root => root.getFileSystem(configuration).exists(root))
    if (there.isEmpty) Nil
    else new InMemoryFileIndex(session, there, settings + ("recursiveFileLookup" -> "true"), None)
      .allFiles().filterNot(_.getPath.getName.startsWith(SummaryPrefix))
      .map(status => status.getPath -> status.getLen).sortBy(_._1.toString)
  }

  /** The folders of a Parquet table of the session catalog, each with the values of its partition if these are known. */
  def placesOfTable(name: Seq[String]): Seq[(Path, Option[Map[String, String]])] = {
    val catalog = session.sessionState.catalog
    val ident = TableIdentifier(name.last, name.init.headOption)
    val table = catalog.getTableMetadata(ident)
    if (table.tableType == CatalogTableType.VIEW || !isParquet(table)) {
      throw Failures.invalid(s"${table.identifier.unquotedString} is not a table of Parquet files.")
    }
    if (table.partitionColumnNames.nonEmpty && table.tracksPartitionsInCatalog) {
      catalog.listPartitions(ident).map(part => new Path(part.location) -> Some(part.spec))
    } else Seq(new Path(table.location) -> None)
  }

  /** A table of the session catalog that has this format. */
  def sourceTable(name: Seq[String], format: String): SourceTable = {
    val table = session.sessionState.catalog.getTableMetadata(TableIdentifier(name.last, name.init.headOption))
    val metadata = table.properties.get("metadata_location")
    val found =
      if (table.tableType == CatalogTableType.VIEW) "view"
      else if (metadata.isDefined) "iceberg"
      else if (isParquet(table)) "parquet"
      else table.provider.getOrElse("unknown").toLowerCase(Locale.ROOT)
    if (found != format) {
      throw Failures.invalid(s"${table.identifier.unquotedString} is not a table of the format $format, but $found.")
    }
    SourceTable(
      metadata.getOrElse(Locations.url(new Path(table.location))), table.schema, table.partitionColumnNames)
  }

  private def isParquet(table: CatalogTable): Boolean =
    (table.provider.toSeq ++ table.storage.serde).exists(_.toLowerCase(Locale.ROOT).contains("parquet"))

  def unescaped(folder: String): String = ExternalCatalogUtils.unescapePathName(folder)

  /** A text as a value of that type, as Spark reads the names of folders; None if it is none. */
  def cast(text: String, dataType: DataType): Option[Any] = Option(
    Cast(Literal(UTF8String.fromString(text), StringType), dataType, Some(SettingInternals.conf.sessionLocalTimeZone),
      EvalMode.LEGACY).eval())

  /** What executors find in the footers of these files. */
  def read(files: Seq[ForeignFile], settings: Map[String, String]): Seq[FooterLook] = {
    val format = SettingInternals.conf.getAllConfs
    onExecutors(files.map(_.path), settings)((path, configuration) => FooterReader.read(path, configuration, format))
  }

  /** Of each file, whether it is a Parquet file with all of these columns. */
  def haveColumns(paths: Seq[Path], names: Seq[String], settings: Map[String, String]): Seq[Boolean] =
    onExecutors(paths, settings)((path, configuration) => FooterReader.hasColumns(path, configuration, names))

  /** What executors make of each of these files. */
  def onExecutors[T: ClassTag](paths: Seq[Path], settings: Map[String, String])(
      work: (String, Configuration) => T): Seq[T] =
    paths.headOption.toSeq.flatMap(onExecutors(paths.map(_.toString), _, settings, TasksPerCore)(work))

  /** What executors make of each of these, in their order, with the configuration for files at a place. */
  def onExecutors[I: ClassTag, T: ClassTag](
      each: Seq[I],
      at: Path,
      settings: Map[String, String],
      tasksPerCore: Int,
      tasksMax: Int = Int.MaxValue)(work: (I, Configuration) => T): Seq[T] = {
    val context = session.sparkContext
    val broadcast = context.broadcast(new SerializableConfiguration(SettingInternals.hadoopConf(at.toString, settings)))
    val tasks = Seq(each.length, context.defaultParallelism * tasksPerCore, tasksMax).min
    try context.parallelize(each, tasks).map(one => work(one, broadcast.value.value)).collect().toSeq
    finally broadcast.unpersist()
  }

  private val TasksPerCore = 4

  /** Spark does not hide `_metadata`, which repeats what the files beside it hold. */
  private val SummaryPrefix = "_"
}

/** Reads the footer of a Parquet file, on an executor. */
private[lakelog] object FooterReader {

  private val Magic = "PAR1"
  private val TrailerBytes = 8

  def hasColumns(path: String, configuration: Configuration, names: Seq[String]): Boolean =
    try {
      val place = HadoopInputFile.fromPath(new Path(path), configuration)
      val reader = ParquetFileReader.open(place, HadoopReadOptions.builder(configuration).build())
      try names.forall(reader.getFileMetaData.getSchema.containsField(_))
      finally reader.close()
    } catch { case NonFatal(_) => false }

  def read(path: String, configuration: Configuration, format: Map[String, String]): FooterLook =
    try look(new Path(path), configuration, format)
    catch {
      case NonFatal(error) => FooterLook("", "", Some(s"${error.getClass.getSimpleName}: ${error.getMessage}"))
    }

  /** A reader of a file, by the settings that are given: without them, Parquet reads Hadoop's from their files each time. */
  def opened(file: HadoopInputFile): ParquetFileReader =
    ParquetFileReader.open(file, HadoopReadOptions.builder(file.getConfiguration).build())

  private def look(path: Path, configuration: Configuration, format: Map[String, String]): FooterLook = {
    val file = HadoopInputFile.fromPath(path, configuration)
    val crc = footerCrc(file)
    val reader = opened(file)
    try {
      val footer = reader.getFooter
      val settings = new SQLConf()
      format.foreach { case (key, value) => settings.setConfString(key, value) }
      val message = footer.getFileMetaData.getSchema
      val columns = SQLConf.withExistingConf(settings)(new ParquetToSparkSchemaConverter(settings).convert(message))
      val leaves = leavesOf(columns, message, Nil).zipWithIndex
      val types = leaves.map { case ((path, dataType), i) => path -> (i.toLong, dataType) }.toMap
      val stats = FooterStatistics.of(footer, types)
      val found = wire.FooterFound(
        path = "", size = file.getLength, rows = footer.getBlocks.asScala.map(_.getRowCount).sum, footer = crc,
        schema = 0, partition = Map.empty,
        stats = leaves.flatMap { case ((path, _), i) => stats.get(i.toLong).map(path -> _) },
        oldCalendar = hasOldCalendar(footer))
      FooterLook(found.asText, columns.json, None)
    } finally reader.close()
  }

  /** The bytes from where the footer begins to the end of the file, as the log knows them. */
  private def footerCrc(file: InputFile): Long = {
    val stream = file.newStream()
    try {
      val trailer = new Array[Byte](TrailerBytes)
      stream.seek(file.getLength - TrailerBytes)
      stream.readFully(trailer)
      if (new String(trailer.drop(4), "US-ASCII") != Magic) {
        throw new IllegalArgumentException("it does not end as a Parquet file does")
      }
      val length = trailer.take(4).zipWithIndex.map { case (byte, i) => (byte & 0xff) << (8 * i) }.sum + TrailerBytes
      if (length < TrailerBytes || length > file.getLength) {
        throw new IllegalArgumentException("its footer is longer than the file")
      }
      val footer = new Array[Byte](length)
      stream.seek(file.getLength - length)
      stream.readFully(footer)
      val crc = new CRC32()
      crc.update(footer)
      crc.getValue
    } finally stream.close()
  }

  /** Columns and fields of structs with the type of their bounds: NullType if these are not what lakelog writes. */
  private def leavesOf(struct: StructType, group: GroupType, above: Seq[String]): Seq[(Seq[String], DataType)] =
    struct.fields.toSeq.flatMap { field =>
      val (path, there) = (above :+ field.name, group.getType(field.name))
      field.dataType match {
        case nested: StructType => leavesOf(nested, there.asGroupType, path)
        case leaf if there.isPrimitive =>
          Seq(path -> (if (meansTheSame(there.asPrimitiveType, leaf)) leaf else NullType))
        case _ => Nil
      }
    }

  private def meansTheSame(there: PrimitiveType, dataType: DataType): Boolean =
    (dataType, there.getLogicalTypeAnnotation) match {
      case (BooleanType | DateType, _) => true
      case (_: IntegralType, null) => true
      case (_: IntegralType, whole: IntLogicalTypeAnnotation) => whole.isSigned
      case (TimestampType | TimestampNTZType, time: TimestampLogicalTypeAnnotation) =>
        time.getUnit == LogicalTypeAnnotation.TimeUnit.MICROS
      case (_: StringType, _: StringLogicalTypeAnnotation) => true
      case (BinaryType, null) => there.getPrimitiveTypeName == PrimitiveType.PrimitiveTypeName.BINARY
      case (decimal: DecimalType, digits: DecimalLogicalTypeAnnotation) => digits.getScale == decimal.scale
      case _ => false
    }

  private def hasOldCalendar(footer: ParquetMetadata): Boolean = {
    val written = footer.getFileMetaData.getKeyValueMetaData.asScala
    val version = written.get("org.apache.spark.version").map(_.takeWhile(_ != '.'))
    version.exists(Set("1", "2")) ||
    written.contains("org.apache.spark.legacyDateTime") || written.contains("org.apache.spark.legacyINT96")
  }
}
