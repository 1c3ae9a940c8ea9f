package org.apache.spark.sql.lakelog

import java.util.{Map => JMap, OptionalLong}

import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.{Or, Predicate}
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.connector.read.partitioning.Partitioning
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** What rows are read for. */
private[lakelog] sealed abstract class ScanUse(val looksFirst: Boolean)
private[lakelog] object ScanUse {

  case object Query extends ScanUse(false)

  /** To be deleted or updated, each by its place. With `firstLook`, Spark finds out which partitions have rows that match. */
  final case class Places(firstLook: Boolean) extends ScanUse(firstLook)

  /**
   * To be rewritten, all that are left of each file: filters may leave out files and nothing else. With `firstLook`, Spark
   * finds out which ones have rows that match.
   */
  final case class WholeFiles(firstLook: Boolean) extends ScanUse(firstLook)
}

/**
 * A scan of one version of a table. Its files are planned once, when Spark first needs them.
 *
 * Of rows that a MERGE may change, only those matter that have one of its `keys`. These are known once the scan is read.
 *
 * Two scans are equal when they read the same from the same version, so that Spark reads it once.
 */
private[lakelog] final class LakeScan(
    val table: LakeTable, together: ReadTogether, required: StructType, val predicates: Seq[Predicate],
    val limit: Option[Int], options: CaseInsensitiveStringMap, val use: ScanUse,
    val top: Option[TopRows], keys: Option[MergeKeys] = None)
  extends Scan with Batch with SupportsReportStatistics with SupportsReportPartitioning
  with SupportsRuntimeV2Filtering {

  private val facts = table.facts
  private val metadata = table.physical.metadata

  @volatile private var runtimePredicates: Seq[Predicate] = Nil
  private var planned: Option[(Long, Seq[Predicate], PlannedFiles)] = None

  override def readSchema(): StructType = required

  override def description(): String = {
    val filters = if (predicates.isEmpty) "" else predicates.map(Predicates.words).mkString(", filters: ", " AND ", "")
    val on = facts.ref.fold("")(ref => s" on the ${ref.kind} ${ref.name}")
    s"lakelog ${table.name}$on, version ${facts.version}$filters${limit.map(", limit " + _).getOrElse("")}" +
      top.map(", first " + _).getOrElse("") + metrics.words.map(", " + _).getOrElse("")
  }

  private val metrics = new PlanMetrics

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
    if (!StatementInternals.isExplained) useKeys()
    val all = files
    val read = limited(all)
    val splitBytes = splitBytesAtFirst(read)
    keyed.partitions(read, packedOf(read))(reading.partitions(_, splitBytes))
  }

  /** Those of the files that have as many rows as are wanted. */
  private def limited(files: PlannedFiles): PlannedFiles = limit.fold(files)(files.first)

  /**
   * For files of one key, the same with filters at run time as before: these leave out files, and Spark fails where the
   * rest of a key's files are more parts than all of them were. Fewer files in the same order are never packed into more.
   */
  private def splitBytesAtFirst(files: PlannedFiles): Long = synchronized {
    splitBytes = splitBytes.orElse(Some(FileReading.splitBytes(files)))
    splitBytes.get
  }

  private var splitBytes: Option[Long] = None

  /** The files as tasks read them, whatever keys they have. Of many files that takes a while, and Spark wants it twice. */
  private def packedOf(files: PlannedFiles): Array[InputPartition] = synchronized {
    packed match {
      case Some((`files`, partitions)) => partitions
      case _ =>
        val partitions = reading.partitions(files)
        packed = Some((files, partitions))
        partitions
    }
  }

  private var packed: Option[(PlannedFiles, Array[InputPartition])] = None

  override def createReaderFactory(): PartitionReaderFactory = keyed.factory(reading.factory(files))

  private lazy val reading = new FileReading(table, required,
    use match {
      case _: ScanUse.WholeFiles => Nil
      case _ => predicates
    }, () => if (use.isInstanceOf[ScanUse.WholeFiles]) Nil else ofKeys ++ runtimePredicates)

  /** A statement that changes rows has an order of its own for them. */
  private lazy val keyed = new KeyedFiles(facts, required, isWanted = use == ScanUse.Query)

  /** As [[estimateStatistics]], of a version that is perhaps not read in the end. */
  override def outputPartitioning(): Partitioning = {
    val files = filesOf(together.versionIfSettled(table))
    keyed.partitioning(files, packedOf(files).length)
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

  /** How large the files are that are left after pruning; as [[estimateStatistics]]. */
  def meanFileBytes: Long = {
    val files = filesOf(together.versionIfSettled(table))
    files.totalBytes / math.max(files.length, 1)
  }

  /**
   * A join can report while it runs which partitions matter, and a first scan of the rows which files are to be rewritten, or
   * which partitions have rows to be changed.
   */
  override def filterAttributes(): Array[NamedReference] = use match {
    case ScanUse.WholeFiles(firstLook) =>
      metadata.find(required, RowPlace.File).filter(_ => firstLook)
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
    runtimePredicates = more.toSeq.filterNot(asksForMany).map(LakeScan.orNull)

  /** Of so many values, some are likely to be in any file; the values of partitions are few. */
  private def asksForMany(predicate: Predicate): Boolean = predicate.children.length > LakeScan.ValuesMost &&
    predicate.references.forall(column => table.hasBloomFilter(column.fieldNames.toSeq))

  @volatile private var ofKeys: Seq[Predicate] = Nil

  /** Spark makes the partitions only when it executes the statement: what it has planned before is the same then. */
  private def useKeys(): Unit = ofKeys = keys.toSeq.flatMap(_.predicates)

  /** The version that is read. */
  def version: Long = together.version(table)

  /** The files that are read, by all filters that are known by now. */
  def files: PlannedFiles = filesOf(version)

  private def filesOf(version: Long): PlannedFiles = synchronized {
    val wanted = predicates ++ runtimePredicates ++ ofKeys
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
      val (ofFiles, ofRows) = wanted.partition(FileNames.areIn(_, metadata))
      val request =
        wire.Plan(facts.referenceOf(version), Predicates.toPython(ofRows), top.map(_.asked), keyed.fieldIds)
      val begun = System.nanoTime()
      val (answer, found) = table.access.channel.withFiles(request, facts.location, keyed.types)
      val files = ofFiles.foldLeft(found)((files, predicate) => FileNames.matching(files, predicate, metadata))
      metrics.planned(answer, found.length, files.length, limited(files).length, System.nanoTime() - begun)
      files
    }

  override def equals(other: Any): Boolean = other match {
    case that: LakeScan =>
      facts.ownId == that.table.facts.ownId && facts.version == that.table.facts.version &&
      facts.step == that.table.facts.step && facts.past == that.table.facts.past &&
      table.access.channel.transactionId == that.table.access.channel.transactionId && required == that.readSchema() &&
      predicates.toSet == that.predicates.toSet && limit == that.limit && use == that.use && top == that.top
    case _ => false
  }

  override def hashCode(): Int = (facts.ownId, facts.version, required, predicates.toSet, limit).hashCode
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
