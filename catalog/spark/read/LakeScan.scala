package org.apache.spark.sql.lakelog

import java.util.{Map => JMap, OptionalLong}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.types.StructType

/**
 * A scan of one version of a table. Its files are planned once, when Spark first needs them.
 *
 * Two scans are equal when they read the same from the same version, so that Spark reads it once.
 */
private[lakelog] final class LakeScan(
    val table: LakeTable, together: ReadTogether, required: StructType, val predicates: Seq[Predicate], val limit: Option[Int])
  extends Scan with Batch with SupportsReportStatistics with SupportsRuntimeV2Filtering {

  private val facts = table.facts
  private val schema = table.physical.forRead(required)

  @volatile private var runtimePredicates: Seq[Predicate] = Nil
  private var planned: Option[(Long, Seq[Predicate], PlannedFiles)] = None

  override def readSchema(): StructType = required

  override def description(): String = {
    val filters = if (predicates.isEmpty) "" else predicates.mkString(", filters: ", " AND ", "")
    s"lakelog ${table.name}, version ${facts.version}$filters${limit.map(", limit " + _).getOrElse("")}"
  }

  override def toBatch: Batch = this

  /** The same for the whole scan, and known without planning. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (SparkInternals.readsColumns(schema)) Scan.ColumnarSupportMode.SUPPORTED
    else Scan.ColumnarSupportMode.UNSUPPORTED

  override def planInputPartitions(): Array[InputPartition] = {
    val all = filesOf(together.version(table))
    val files = limit.map(all.first).getOrElse(all)
    files.shapes.toArray.flatMap { case (shape, places) => partitionsOf(files, shape, places) }
  }

  private def partitionsOf(files: PlannedFiles, shape: FileShape, places: Array[Int]): Array[InputPartition] = {
    val (paths, sizes) = (places.map(i => Locations.file(facts.location, files.paths(i))), places.map(files.sizes(_)))
    val footers = places.map(files.footers(_))
    if (shape == FileShape.Own) SparkInternals.inputPartitions(paths, sizes, footers)
    else {
      val schema = table.physical.forRead(required, shape)
      val rows = scala.collection.mutable.Map.empty[String, InternalRow]
      SparkInternals.inputPartitions(paths, sizes, footers, i => Option(files.constants(places(i))).fold(InternalRow.empty)(
        text => rows.getOrElseUpdate(text, Constants.row(text, schema)))).map(new ShapedPartition(shape, _))
    }
  }

  /** For the files of the plan, and for those of earlier plans, which had fewer filters. */
  override def createReaderFactory(): PartitionReaderFactory = synchronized {
    filesOf(together.version(table)).shapes.keys.filterNot(_ == FileShape.Own).foreach { shape =>
      shaped.getOrElseUpdate(shape, {
        val schema = table.physical.forRead(required, shape)
        (reader(schema.columns, table.physical.path(_, shape), schema.constants), schema)
      })
    }
    if (shaped.isEmpty) readerFactory else new ShapedReaderFactory(readerFactory, shaped.toMap)
  }

  private val shaped = scala.collection.mutable.Map.empty[FileShape, (PartitionReaderFactory, ShapedSchema)]

  /** Made once: Spark asks several times, and each one broadcasts Hadoop's configuration. */
  private lazy val readerFactory: PartitionReaderFactory = reader(schema, table.physical.path(_), new StructType())

  private def reader(
      columns: StructType, path: Seq[String] => Option[Seq[String]], constants: StructType): PartitionReaderFactory = {
    val filters = predicates.flatMap(Predicates.physical(_, path)).flatMap(SparkInternals.v1Filter(_))
    val configuration = SparkInternals.hadoopConf(facts.location, table.access.hadoopSettings)
    SparkInternals.parquetReader(columns, filters.toArray, configuration, constants)
  }

  /**
   * Rows of the files that are left after pruning; bytes in proportion to the columns that are read. Spark asks while it
   * still finds out what else the statement reads, so they may be of a version that is not read in the end.
   */
  override def estimateStatistics(): Statistics = {
    val files = filesOf(together.versionIfSettled(table))
    val share = (8.0 + required.defaultSize) / (8.0 + table.schema.defaultSize)
    val (rows, bytes) = (files.totalRows, (files.totalBytes * math.min(share, 1.0)).toLong)
    new Statistics {
      override def sizeInBytes(): OptionalLong = OptionalLong.of(bytes)
      override def numRows(): OptionalLong = OptionalLong.of(rows)
      override def columnStats(): JMap[NamedReference, ColumnStatistics] = ColumnEstimates.of(facts, required, rows)
    }
  }

  /** A join can tell while it runs which partitions matter. */
  override def filterAttributes(): Array[NamedReference] = {
    val read = required.fieldNames.toSet
    facts.partitionFields.filter(f => f.column.length == 1 && read(f.column.head))
      .map(f => SparkInternals.reference(f.column)).distinct.toArray
  }

  override def filter(more: Array[Predicate]): Unit = runtimePredicates = more.toSeq

  private def filesOf(version: Long): PlannedFiles = synchronized {
    val wanted = predicates ++ runtimePredicates
    planned match {
      case Some((`version`, `wanted`, files)) => files
      case _ =>
        val files = plan(version, wanted)
        planned = Some((version, wanted, files))
        files
    }
  }

  private def plan(version: Long, wanted: Seq[Predicate]): PlannedFiles =
    table.access.failures.table(table.access.ident) {
      val params = Json.merge(facts.referenceOf(version), "predicate" -> Predicates.toJson(wanted))
      SparkInternals.plannedFiles(table.access.channel.ask("plan", params).body)
    }

  override def equals(other: Any): Boolean = other match {
    case that: LakeScan =>
      facts.id == that.table.facts.id && facts.version == that.table.facts.version &&
        facts.step == that.table.facts.step &&
        table.access.channel.transactionId == that.table.access.channel.transactionId && required == that.readSchema() &&
        predicates.toSet == that.predicates.toSet && limit == that.limit
    case _ => false
  }

  override def hashCode(): Int = (facts.id, facts.version, required, predicates.toSet, limit).hashCode
}
