package org.apache.spark.sql.lakelog

import java.io.ByteArrayInputStream
import java.time.{LocalDateTime, ZoneOffset}
import java.time.format.DateTimeFormatter

import scala.jdk.CollectionConverters._

import org.antlr.v4.runtime.{CharStreams, Token}
import org.apache.arrow.vector.ipc.ArrowStreamReader
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapreduce.Job
import org.apache.hadoop.util.VersionInfo
import org.apache.parquet.hadoop.{ParquetFileWriter, ParquetInputFormat, ParquetOutputFormat, ParquetWriter}
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.io.OutputFile
import org.json4s.JsonAST.{JNull, JObject, JString}
import org.roaringbitmap.RoaringBitmap

import org.apache.spark.{QueryContext, SparkEnv}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow, QueryPlanningTracker}
import org.apache.spark.sql.catalyst.expressions.{Add, BoundReference, Coalesce, Expression, GetStructField, UnsafeProjection}
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer
import org.apache.spark.sql.catalyst.plans.logical.{AlterTableCommand, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}
import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, DateTimeUtils, QuotingUtils, ResolveDefaultColumns}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, Table}
import org.apache.spark.sql.connector.expressions.{FieldReference, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions, ParquetUtils, ParquetWriteSupport}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FilePartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.v2.parquet.{ParquetPartitionReaderFactory, ParquetScan}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.internal.connector.PredicateUtils
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.{DataType, LongType, MetadataBuilder, StructType, TimestampType}
import org.apache.spark.sql.util.{ArrowUtils, CaseInsensitiveStringMap}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}
import org.apache.spark.util.{SerializableConfiguration, Utils}

/**
 * Every call into what Spark does not promise to keep: the rest of the adapter uses public interfaces only.
 *
 * All but [[parquetWriter]] and [[partitionOf]] run on the driver, in a thread with an active session.
 */
private[lakelog] object SparkInternals {

  private def session: SparkSession = SparkSession.active

  def conf: SQLConf = session.sessionState.conf

  /** Whether a statement that changes rows finds out first where such rows are. */
  def looksFirst: Boolean = conf.runtimeRowLevelOperationGroupFilterEnabled

  def sparkSetting(key: String): Option[String] = Option(SparkEnv.get).flatMap(_.conf.getOption(key))

  /** Where the session is in the catalog of that name; the root where it is in another one. */
  def currentNamespace(catalog: String): Seq[String] = {
    val manager = session.sessionState.catalogManager
    if (manager.currentCatalog.name == catalog) manager.currentNamespace.toSeq else Nil
  }

  /** What Spark makes of a plan that it has not seen yet; AnalysisException where it refuses it. */
  def analyzed(session: org.apache.spark.sql.SparkSession, plan: LogicalPlan): LogicalPlan =
    session.asInstanceOf[SparkSession].sessionState.analyzer.executeAndCheck(plan, new QueryPlanningTracker)

  /** A time in microseconds, as Spark reads it: in the session's time zone where the text names none. */
  def timestamp(text: String): Option[Long] =
    DateTimeUtils.stringToTimestamp(UTF8String.fromString(text), DateTimeUtils.getZoneId(conf.sessionLocalTimeZone))

  /** A size in bytes, such as 64m. */
  def size(text: String): Option[Long] = scala.util.Try(JavaUtils.byteStringAsBytes(text.trim)).toOption

  /** What stands for the statement that this thread analyses or optimises. */
  def statementTracker: Option[AnyRef] = QueryPlanningTracker.get

  /**
   * Whether a schema is changed by the analysis of a statement, for data to follow, rather than by an ALTER TABLE: that
   * is executed, be it within the analysis of an EXECUTE IMMEDIATE.
   */
  def isEvolution: Boolean =
    statementTracker.isDefined && !running.exists(_.logical match {
      case _: AlterTableCommand | _: SetNotNull.Command => true
      case _ => false
    })

  /** The command that this thread executes. */
  def running: Option[QueryExecution] =
    Option(session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
      .flatMap(id => Option(SQLExecution.getQueryExecution(id.toLong)))

  /** The tables that the command reads which this thread executes. */
  def tablesRead: Seq[Table] = running.toSeq.flatMap(_.logical.collectWithSubqueries {
    case relation: DataSourceV2Relation => relation.table
  })

  /** Whether this thread runs a streaming query. */
  def isStreaming: Boolean = streamingQuery.isDefined

  /** The id of the streaming query that this thread runs. */
  def streamingQuery: Option[String] =
    SparkSession.getActiveSession.flatMap(s => Option(s.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY)))

  /**
   * Who runs the statement under way, and its words where it has any.
   *
   * A command runs under the id of its execution, which leads to its plan; a CALL runs while it is analysed, when its
   * words are those of the tree node at hand.
   */
  def statement: wire.Statement = {
    val context = session.sparkContext
    val query = Option(context.getLocalProperty(SQLExecution.QUERY_ID_KEY))
    val text = running.map(query => words(query.logical)).getOrElse(CurrentOrigin.get.sqlText)
      .orElse(running.map(query => s"DataFrame: ${query.logical.nodeName}"))
    wire.Statement(
      context.sparkUser, s"${context.appName} ${context.applicationId}", query, text.map(_.take(StatementLimit)))
  }

  /**
   * The words of a command: its plan keeps them, or a part of it where Spark has made the plan anew. The part may also be
   * a query that somebody else's words made, and a DataFrame writes to the table.
   */
  private def words(command: LogicalPlan): Option[String] = {
    val parts = command.children ++ command.innerChildren.collect { case part: LogicalPlan => part }
    own(command.origin).orElse(parts.flatMap(_.collectFirst(Function.unlift(part => creation(part.origin)))).headOption)
  }

  /** A statement of a script has the words of the whole script, and its place in them. */
  private def own(origin: Origin): Option[String] = origin.sqlText.map { text =>
    if (isScript(text)) new ScriptText(text, tokens(text)).statementFrom(origin.startIndex.getOrElse(0)) else text
  }

  /** The statement that creates a table of the query which is there. */
  private def creation(origin: Origin): Option[String] = origin.sqlText.flatMap { text =>
    if (isScript(text)) new ScriptText(text, tokens(text)).creationAround(origin.startIndex.getOrElse(0))
    else Some(text).filter(ScriptText.beginsWith(_, Set("create", "replace")))
  }

  private def isScript(text: String): Boolean = ScriptText.beginsWith(text, Set("begin"))

  /** What Spark's own lexer, which knows capitals only, makes of a text; comments and spaces are left out. */
  private def tokens(text: String): IndexedSeq[ScriptText.Token] = {
    val points = text.codePoints.map(Character.toUpperCase(_: Int)).toArray
    val lexer = new SqlBaseLexer(CharStreams.fromString(new String(points, 0, points.length)))
    lexer.removeErrorListeners()
    lexer.getAllTokens.asScala.filter(_.getChannel == Token.DEFAULT_CHANNEL)
      .map(token => ScriptText.Token(lexer.getVocabulary.getSymbolicName(token.getType), token.getStartIndex)).toIndexedSeq
  }

  /** Python keeps less, and a statement may hold millions of values. */
  private val StatementLimit = 256 * 1024

  def externalTableWithoutLocation: Throwable = QueryCompilationErrors.createExternalTableWithoutLocationError()

  /** An error of analysis that is in none of Spark's error classes. */
  def analysisException(message: String): AnalysisException = new AnalysisException(
    message, None, None, None, None, Map.empty[String, String], Array.empty[QueryContext])

  def noSuchRoutine(name: Seq[String]): AnalysisException =
    new AnalysisException("ROUTINE_NOT_FOUND", Map("routineName" -> name.map(QuotingUtils.quoteIdentifier).mkString(".")))

  /** The session's Hadoop configuration with `settings` on top, for files of the table at `location`. */
  def hadoopConf(location: String, settings: Map[String, String]): Configuration = {
    if (location.startsWith("s3://") && !Utils.classIsLoadable("org.apache.hadoop.fs.s3a.S3AFileSystem")) {
      throw Failures.invalid(
        s"The data of $location is read and written through Hadoop's S3A, which this Spark lacks: start it " +
          s"with spark.jars.packages=org.apache.hadoop:hadoop-aws:${VersionInfo.getVersion}, or with the smaller set " +
          "of jars that lakelog's README names.")
    }
    val configuration = session.sessionState.newHadoopConf()
    settings.foreach { case (key, value) => configuration.set(key, value) }
    configuration
  }

  /** The columns with their defaults and how their values are made as metadata; a time in EXISTS_DEFAULT means the same in every time zone. */
  def schemaOf(columns: Array[Column]): StructType =
    StructType(CatalogV2Util.v2ColumnsToStructType(columns).zip(columns).map { case (plain, column) =>
      val field = IdentityColumns.defined(plain, column)
      Option(column.defaultValue).flatMap(default => Option(default.getValue)).map(_.value) match {
        case Some(micros: Long) if field.dataType == TimestampType =>
          val metadata = new MetadataBuilder().withMetadata(field.metadata)
            .putString(ResolveDefaultColumns.EXISTS_DEFAULT_COLUMN_METADATA_KEY, timestampSql(micros)).build()
          field.copy(metadata = metadata)
        case _ => field
      }
    })

  /** Spark writes such a literal in the session's time zone, without its name. */
  private def timestampSql(micros: Long): String = {
    val nanos = Math.floorMod(micros, 1000000L).toInt * 1000
    val time = LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1000000L), nanos, ZoneOffset.UTC)
    s"TIMESTAMP '${DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSS").format(time)}Z'"
  }

  /** The names by which Spark keeps provider, comment, location and so on among a table's properties. */
  def reservedProperties: Set[String] = CatalogV2Util.TABLE_RESERVED_PROPERTIES.toSet

  def columnsOf(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema, keepIds = false)

  def withoutCharVarchar(schema: StructType): StructType =
    CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema)

  def quoted(parts: Seq[String]): String = parts.map(QuotingUtils.quoteIfNeeded).mkString(".")

  def reference(path: Seq[String]): NamedReference = FieldReference(path)

  /** Of a predicate that is neither AND, OR nor NOT: of an OR, Spark drops a side that it has no filter for. */
  def v1Filter(predicate: Predicate): Option[Filter] = PredicateUtils.toV1(predicate)

  /** Whether Parquet files of that schema are read in columns, by the session's settings. */
  def readsColumns(schema: StructType): Boolean =
    ParquetUtils.isBatchReadSupportedForSchema(conf, schema) && conf.wholeStageEnabled &&
      !org.apache.spark.sql.execution.WholeStageCodegenExec.isTooManyFields(conf, schema)

  /**
   * Spark's own Parquet reader for `schema`, which names columns as the files do. `constants` come with each file, and
   * after the columns. `position` is the column with the positions of the rows, which files need that have deleted ones.
   *
   * Files that Python wrote do not say which calendar they use, and then Spark would take the session's setting. Checksums
   * of pages are compared unless a setting says otherwise, and then nothing is read past them: whoever filters by a
   * dictionary does not look at its checksum.
   */
  def parquetReader(
      schema: StructType, filters: Array[Filter], configuration: Configuration,
      constants: StructType, position: Option[Int]): PartitionReaderFactory = {
    configuration.setIfUnset(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, "true")
    if (configuration.getBoolean(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, true)) {
      configuration.setIfUnset(ParquetInputFormat.DICTIONARY_FILTERING_ENABLED, "false")
    }
    val scan = ParquetScan(
      session, configuration, null, schema, schema, constants, filters,
      new CaseInsensitiveStringMap(properCalendar.asJava))
    scan.createReaderFactory() match {
      case files: ParquetPartitionReaderFactory =>
        val broadcast = session.sparkContext.broadcast(new SerializableConfiguration(configuration))
        new KnownFilesReaderFactory(files, broadcast, position)
    }
  }

  /** In a schema to read, the position of each row in its file, where filters pass over rows too. */
  val RowPositionColumn: String = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME

  /** Reads a file only when it has the size and the footer that the log says, and none of its deleted rows. */
  private final class KnownFilesReaderFactory(
      files: ParquetPartitionReaderFactory, configuration: Broadcast[SerializableConfiguration], position: Option[Int])
    extends FilePartitionReaderFactory {

    override def options: FileSourceOptions = files.options

    override def supportColumnarReads(partition: InputPartition): Boolean = files.supportColumnarReads(partition)

    override def buildReader(file: PartitionedFile): PartitionReader[InternalRow] = {
      check(file)
      deleted(file).fold(files.buildReader(file))(new LiveRows(files.buildReader(file), position.get, _))
    }

    override def buildColumnarReader(file: PartitionedFile): PartitionReader[ColumnarBatch] = {
      check(file)
      deleted(file).fold(files.buildColumnarReader(file))(
        new LiveBatches(files.buildColumnarReader(file), position.get, _))
    }

    private def deleted(file: PartitionedFile): Option[RoaringBitmap] =
      file.otherConstantMetadataColumnValues.get(Deletes)
        .map(_.asInstanceOf[DeletionVector].load(configuration.value.value))

    private def check(file: PartitionedFile): Unit = {
      val footer = file.otherConstantMetadataColumnValues.get(FooterCrc).map(_.asInstanceOf[Long])
      Footers.check(file.toPath, file.fileSize, footer, configuration.value.value)
    }
  }

  private val FooterCrc = "lakelog.footer"
  private val Deletes = "lakelog.deletes"

  private val properCalendar: Map[String, String] = Map(
    ParquetOptions.DATETIME_REBASE_MODE -> LegacyBehaviorPolicy.CORRECTED.toString,
    ParquetOptions.INT96_REBASE_MODE -> LegacyBehaviorPolicy.CORRECTED.toString)

  /** Files of these sizes, with these constants, split and packed by Spark's own rules. */
  def inputPartitions(
      paths: Array[Path], sizes: Array[Long], footers: Array[Option[Long]], deletes: Array[Option[DeletionVector]],
      constants: Int => InternalRow): Array[InputPartition] = {
    val openCost = conf.filesOpenCostInBytes
    val splitBytes = FilePartition.maxSplitBytes(session, sizes.iterator.map(_ + openCost).sum)
    val parts = paths.indices.flatMap { i =>
      val path = SparkPath.fromPath(paths(i))
      val values = constants(i)
      val known = footers(i).map(FooterCrc -> _).toMap[String, Any] ++ deletes(i).map(Deletes -> _)
      (0L until sizes(i) by splitBytes).map { start =>
        val length = math.min(splitBytes, sizes(i) - start)
        PartitionedFile(values, path, start, length, Array.empty, 0L, sizes(i), known)
      }
    }
    FilePartition.getFilePartitions(session, parts.sortBy(-_.length), splitBytes).toArray
  }

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
  def parquetWrite(schema: StructType, codec: String, configuration: Configuration): ParquetWriteSettings = {
    val format = conf.clone()
    val job = Job.getInstance(configuration)
    // In both places: Spark asks the one for some of them and the other one for others.
    tableFormat.foreach { case (key, value) =>
      format.setConfString(key, value)
      job.getConfiguration.set(key, value)
    }
    val parquet = new ParquetOptions(Map(ParquetOptions.PARQUET_COMPRESSION -> codec), format)
    ParquetUtils.prepareWrite(format, job, schema, parquet)
    new ParquetWriteSettings(
      session.sparkContext.broadcast(new SerializableConfiguration(job.getConfiguration)),
      parquet.compressionCodecClassName, format.getAllConfs)
  }

  /** A writer of rows to `file`, on an executor, in the format that [[parquetWrite]] fixed. */
  def parquetWriter(file: OutputFile, settings: ParquetWriteSettings): ParquetWriter[InternalRow] = {
    val format = new SQLConf()
    settings.format.foreach { case (key, value) => format.setConfString(key, value) }
    val configuration = settings.configuration.value.value
    SQLConf.withExistingConf(format) {
      new RowWriterBuilder(file)
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
        .build()
    }
  }

  private final class RowWriterBuilder(file: OutputFile)
    extends ParquetWriter.Builder[InternalRow, RowWriterBuilder](file) {
    override protected def self: RowWriterBuilder = this
    override protected def getWriteSupport(configuration: Configuration): WriteSupport[InternalRow] =
      new ParquetWriteSupport
  }

  /** Computes the partition of rows of `schema`, on an executor: one value for each field. */
  def partitionOf(fields: Seq[PartitionField], schema: StructType): UnsafeProjection =
    UnsafeProjection.create(fields.map(partitionValue(_, schema)))

  def partitionTypes(fields: Seq[PartitionField], schema: StructType): Seq[DataType] =
    fields.map(partitionValue(_, schema).dataType)

  private def partitionValue(field: PartitionField, schema: StructType): Expression =
    transformed(field.transform, field.column, name => {
      val index = schema.fieldIndex(name)
      BoundReference(index, schema(index).dataType, nullable = true)
    })

  /** A transform of the column at that path, where `top` stands for a top-level column. */
  def transformed(transform: PartitionTransform, path: Seq[String], top: String => Expression): Expression = {
    val column = path.tail.foldLeft(top(path.head)) { (parent, name) =>
      GetStructField(parent, parent.dataType.asInstanceOf[StructType].fieldIndex(name), Some(name))
    }
    if (transform.isIdentity) column else TransformExpression(transform, column)
  }

  /**
   * Rows of `schema` with values in those of its columns, of type BIGINT, that are at `places`: the ones that stand behind
   * a row take the place of NULLs.
   */
  def filling(schema: StructType, places: Array[Int]): UnsafeProjection =
    UnsafeProjection.create(schema.indices.map { i =>
      val column = BoundReference(i, schema(i).dataType, nullable = true)
      places.indexOf(i) match {
        case -1 => column
        case made => Coalesce(Seq(column, BoundReference(schema.length + made, LongType, nullable = false)))
      }
    })

  /** Puts columns of these types into another order. */
  def reordering(order: Array[Int], types: Array[DataType]): UnsafeProjection =
    UnsafeProjection.create(order.toSeq.map(i => BoundReference(i, types(i), nullable = true)))

  /** Makes wanted columns of those of these types that are read. */
  def projection(wanted: Array[ReadColumn], types: Array[DataType]): UnsafeProjection = {
    def column(place: Int): Expression = BoundReference(place, types(place), nullable = true)
    UnsafeProjection.create(wanted.toSeq.map {
      case ReadColumn.AsItIs(place) => column(place)
      case ReadColumn.OwnOrFiles(own, file, position) =>
        Coalesce(own.map(column).toSeq :+ position.map(column).foldLeft(column(file))(Add(_, _)))
    })
  }

  /**
   * Reads an Arrow stream of the columns path, size, rows and, where any file has some, footer, names, constants, deletes,
   * first_row and version.
   */
  def plannedFiles(arrow: Array[Byte], location: String): PlannedFiles = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("lakelog-plan", 0, Long.MaxValue)
    try {
      val reader = new ArrowStreamReader(new ByteArrayInputStream(arrow), allocator)
      try {
        val (paths, sizes, rows) = (Array.newBuilder[String], Array.newBuilder[Long], Array.newBuilder[Long])
        val (footers, ids, versions) =
          (Array.newBuilder[Option[Long]], Array.newBuilder[Option[Long]], Array.newBuilder[Option[Long]])
        val (names, constants, deletes) =
          (Array.newBuilder[String], Array.newBuilder[String], Array.newBuilder[String])
        while (reader.loadNextBatch()) {
          val root = reader.getVectorSchemaRoot
          val path = root.getVector("path")
          val size = root.getVector("size").asInstanceOf[org.apache.arrow.vector.BigIntVector]
          val count = root.getVector("rows").asInstanceOf[org.apache.arrow.vector.BigIntVector]
          val numbers = Seq("footer" -> footers, "first_row" -> ids, "version" -> versions).map { case (column, found) =>
            (root.getVector(column).asInstanceOf[org.apache.arrow.vector.BigIntVector], found)
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
        }
        new PlannedFiles(
          paths.result(), sizes.result(), rows.result(), footers.result(), names.result(), constants.result(),
          deletes.result(), ids.result(), versions.result(), location)
      } finally reader.close()
    } finally allocator.close()
  }

  /** Reads the rows of an Arrow stream whose columns have these types. */
  def rows(arrow: Array[Byte], schema: StructType): Array[InternalRow] = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("lakelog-rows", 0, Long.MaxValue)
    try {
      val reader = new ArrowStreamReader(new ByteArrayInputStream(arrow), allocator)
      try {
        val toUnsafe = UnsafeProjection.create(schema)
        val found = Array.newBuilder[InternalRow]
        while (reader.loadNextBatch()) {
          val root = reader.getVectorSchemaRoot
          val columns = root.getFieldVectors.asScala.map(new ArrowColumnVector(_): ColumnVector).toArray
          val batch = new ColumnarBatch(columns, root.getRowCount)
          batch.rowIterator.asScala.foreach(row => found += toUnsafe(row).copy())
        }
        found.result()
      } finally reader.close()
    } finally allocator.close()
  }
}
