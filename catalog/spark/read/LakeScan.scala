package org.apache.spark.sql.lakelog.read

import java.util.{Map => JMap, OptionalLong}

import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.{Or, Predicate}
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.connector.read.partitioning.Partitioning
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.lakelog.expressions.{PartitionField, Predicates}
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowPlace}
import org.apache.spark.sql.lakelog.internals.{SchemaInternals, StatementInternals}
import org.apache.spark.sql.lakelog.internals.plans.MergeKeys
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A scan of one version of a table. Its files are planned once, when Spark first needs them.
 *
 * Of rows that a MERGE may change, only those matter that have one of its `keys`. These are known once the scan is read.
 *
 * Two scans are equal when they read the same from the same version, so that Spark reads it once.
 */
private[lakelog] final class LakeScan(
    val table: LakeTable, together: ReadTogether, val wanted: RowsWanted, options: CaseInsensitiveStringMap,
    keys: Option[MergeKeys] = None)
  extends Scan with Batch with SupportsReportStatistics with SupportsReportPartitioning
  with SupportsRuntimeV2Filtering {

  import wanted.{columns => required, predicates, use}

  private val facts = table.facts
  private val metrics = new PlanMetrics

  override def readSchema(): StructType = required

  override def description(): String = {
    val filters = if (predicates.isEmpty) "" else predicates.map(Predicates.words).mkString(", filters: ", " AND ", "")
    val on = facts.ref.fold("")(ref => s" on the ${ref.kind} ${ref.name}")
    s"lakelog ${table.name}$on, version ${facts.version}$filters${wanted.limit.map(", limit " + _).getOrElse("")}" +
      wanted.top.map(", first " + _).getOrElse("") + metrics.words.map(", " + _).getOrElse("")
  }

  override def supportedCustomMetrics(): Array[CustomMetric] = PlanMetrics.all

  /** Spark asks once the files that are read are known. */
  override def reportDriverMetrics(): Array[CustomTaskMetric] = metrics.values

  override def toBatch: Batch = {
    StreamOptions.refuseInBatch(options)
    this
  }

  override def toMicroBatchStream(checkpoint: String): MicroBatchStream =
    new LakeStream(table, required, StreamOptions.of(options, table))

  /** The same for the whole scan, and known without planning. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (reading.readsColumns) Scan.ColumnarSupportMode.SUPPORTED
    else Scan.ColumnarSupportMode.UNSUPPORTED

  override def planInputPartitions(): Array[InputPartition] = {
    // Spark makes the partitions only when it executes the statement: what it has planned before is the same then.
    if (!StatementInternals.isExplained) planned.look(keys.toSeq.flatMap(_.predicates))
    val read = planned.limited(files)
    val splitBytes = tasks.splitBytesAtFirst(read)
    keyed.partitions(read, tasks.packedOf(read))(reading.partitions(_, splitBytes))
  }

  override def createReaderFactory(): PartitionReaderFactory = keyed.factory(reading.factory(files))

  private lazy val reading = new FileReading(table, required,
    use match {
      case _: ScanUse.WholeFiles => Nil
      case _ => predicates
    }, () => if (use.isInstanceOf[ScanUse.WholeFiles]) Nil else planned.later)

  private lazy val tasks = new ScanTasks(reading)

  /** A statement that changes rows has an order of its own for them. */
  private lazy val keyed =
    new KeyedFiles(facts, required, isWanted = use == ScanUse.Query && table.access.isKeyed)

  private lazy val planned = new ScanFiles(table, wanted, keyed, metrics)

  /** As [[estimateStatistics]], of a version that is perhaps not read in the end. */
  override def outputPartitioning(): Partitioning = {
    val files = planned.of(together.versionIfSettled(table))
    keyed.partitioning(files, tasks.packedOf(files).length)
  }

  /**
   * Rows of the files that are left after pruning; bytes in proportion to the columns that are read. Spark asks while it
   * still finds out what else the statement reads, so they may be of a version that is not read in the end.
   */
  override def estimateStatistics(): Statistics = {
    val files = planned.of(together.versionIfSettled(table))
    val share = (8.0 + required.defaultSize) / (8.0 + table.schema.defaultSize)
    val (rows, bytes) = (files.totalRows, (files.totalBytes * math.min(share, 1.0)).toLong)
    new Statistics {
      override def sizeInBytes(): OptionalLong = OptionalLong.of(bytes)
      override def numRows(): OptionalLong = OptionalLong.of(rows)
      override def columnStats(): JMap[NamedReference, ColumnStatistics] = ColumnEstimates.of(facts, required, rows)
    }
  }

  /** How large the files are that are left after pruning; as [[estimateStatistics]]. */
  def meanFileBytes: Long = {
    val files = planned.of(together.versionIfSettled(table))
    files.totalBytes / math.max(files.length, 1)
  }

  /**
   * A join can report while it runs which partitions matter, and a first scan of the rows which files are to be rewritten, or
   * which partitions have rows to be changed.
   */
  override def filterAttributes(): Array[NamedReference] = use match {
    case ScanUse.WholeFiles(firstLook) =>
      table.physical.metadata.find(required, RowPlace.File).filter(_ => firstLook)
        .map(field => SchemaInternals.reference(Seq(field.name))).toArray
    case ScanUse.Places(firstLook) =>
      if (firstLook) partitionColumns(facts.partitionFields.filter(_.transform.isIdentity)) else Array.empty
    case ScanUse.Query => (partitionColumns(facts.partitionFields) ++ filteredColumns).distinct
  }

  /** Columns of which tasks find out by Bloom filters whether a file has a value that a join looks for. */
  private def filteredColumns: Array[NamedReference] =
    required.fieldNames.filter(name => table.hasBloomFilter(Seq(name))).map(name => SchemaInternals.reference(Seq(name)))

  private def partitionColumns(fields: Seq[PartitionField]): Array[NamedReference] = {
    val read = required.fieldNames.toSet
    fields.filter(f => f.column.length == 1 && read(f.column.head)).map(f =>
      SchemaInternals.reference(f.column)).distinct
      .toArray
  }

  override def filter(more: Array[Predicate]): Unit =
    planned.filter(more.toSeq.filterNot(asksForMany).map(LakeScan.orNull))

  /** Of so many values, some are likely to be in any file; the values of partitions are few. */
  private def asksForMany(predicate: Predicate): Boolean = predicate.children.length > LakeScan.ValuesMost &&
    predicate.references.forall(column => table.hasBloomFilter(column.fieldNames.toSeq))

  /** The version that is read. */
  def version: Long = together.version(table)

  /** The files that are read, by all filters that are known by now. */
  def files: PlannedFiles = planned.of(version)

  override def equals(other: Any): Boolean = other match {
    case that: LakeScan => place == that.place && wanted == that.wanted
    case _ => false
  }

  override def hashCode(): Int = (place, wanted).hashCode

  /** Where it reads. A copy of a warehouse has tables of the same ids and versions. */
  private def place: Any = {
    val channel = table.access.channel
    (channel.source, channel.transactionId, facts.location, facts.ownId, facts.version, facts.step, facts.past)
  }
}

private[lakelog] object LakeScan {

  private val ValuesMost = 10000

  /** Spark lists the partitions whose rows are to be changed, NULL among them, which no IN finds. */
  private def orNull(predicate: Predicate): Predicate = (predicate.name, predicate.children.toList) match {
    case ("IN", column :: values) if values.exists(isNull) => new Or(predicate, new Predicate("IS_NULL", Array(column)))
    case _ => predicate
  }

  private def isNull(expression: Expression): Boolean = expression match {
    case literal: Literal[_] => literal.value == null
    case _ => false
  }
}
