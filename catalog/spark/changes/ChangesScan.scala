package org.apache.spark.sql.lakelog.changes

import java.util.OptionalLong

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.files.PlannedFiles
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.read.{FileReading, LakeStream, StreamOptions}
import org.apache.spark.sql.lakelog.table.FileNames
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Collects what a query wants of changes. Spark hands down only filters that do not part changes which it has yet to
 * compare; each is given back too.
 */
private[lakelog] final class ChangesScanBuilder(changes: TableChanges, options: CaseInsensitiveStringMap)
  extends ScanBuilder with SupportsPushDownV2Filters with SupportsPushDownRequiredColumns {

  private var predicates: Array[Predicate] = Array.empty
  private var required: StructType = changes.schema

  override def pushPredicates(pushed: Array[Predicate]): Array[Predicate] = {
    predicates = pushed
    pushed
  }

  override def pushedPredicates(): Array[Predicate] = predicates

  override def pruneColumns(columns: StructType): Unit = required = columns

  override def build(): Scan = new ChangesScan(changes, required, predicates.toSeq, options)
}

/** A scan of changes, whose files are planned once, when Spark first needs them. Equal ones read the same. */
private[lakelog] final class ChangesScan(
    val changes: TableChanges, required: StructType, val predicates: Seq[Predicate], options: CaseInsensitiveStringMap)
  extends Scan with Batch with SupportsReportStatistics {

  private val table = changes.table
  @volatile private var isStream = false

  override def readSchema(): StructType = required

  override def description(): String = {
    val filters = if (predicates.isEmpty) "" else predicates.mkString(", filters: ", " AND ", "")
    s"lakelog $changes$filters"
  }

  override def toBatch: Batch = {
    StreamOptions.refuseInBatch(options, StreamOptions.Limits)
    if (StreamOptions.startsLatest(changes.asked.range)) throw Failures.unsupported(
      "Changes from the latest version on can be read by streams only: give a version, or use spark.readStream.")
    this
  }

  override def toMicroBatchStream(checkpoint: String): MicroBatchStream = {
    if (ChangesOptions.areCompared(changes.asked)) throw Failures.unsupported(
      s"A stream compares changes of ${table.name} with lakelog's session extension only: add " +
        s"${EntranceNames.Extensions} to spark.sql.extensions, or set the option deduplicationMode to none.")
    isStream = true
    new LakeStream(table, required, StreamOptions.ofChanges(options, table, changes.asked.range, changes.end))
  }

  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (reading.readsColumns) Scan.ColumnarSupportMode.SUPPORTED
    else Scan.ColumnarSupportMode.UNSUPPORTED

  override def planInputPartitions(): Array[InputPartition] = reading.partitions(files)

  override def createReaderFactory(): PartitionReaderFactory = reading.factory(files)

  /** Of a stream, nothing: what it began with says nothing of a batch, may be all that ever changed, and may have expired. */
  override def estimateStatistics(): Statistics = if (isStream) ChangesScan.Unknown
  else {
    val share = (8.0 + required.defaultSize) / (8.0 + changes.schema.defaultSize)
    val (rows, bytes) = (files.totalRows, (files.totalBytes * math.min(share, 1.0)).toLong)
    new Statistics {
      override def sizeInBytes(): OptionalLong = OptionalLong.of(bytes)
      override def numRows(): OptionalLong = OptionalLong.of(rows)
    }
  }

  private lazy val reading = new FileReading(table, required, predicates)

  private lazy val files: PlannedFiles = table.access.failures.table(table.access.ident) {
    val ofRows = predicates.filterNot(FileNames.areIn(_, table.physical.metadata))
    val request = wire.PlanChanges(table.facts.reference, changes.first, changes.last, Predicates.toPython(ofRows))
    table.access.channel.files(request, table.facts.location)
  }

  override def equals(other: Any): Boolean = other match {
    case that: ChangesScan =>
      changes == that.changes && required == that.readSchema() && predicates.toSet == that.predicates.toSet
    case _ => false
  }

  override def hashCode(): Int = (changes, required, predicates.toSet).hashCode
}

private[lakelog] object ChangesScan {
  private val Unknown: Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.empty
    override def numRows(): OptionalLong = OptionalLong.empty
  }
}
