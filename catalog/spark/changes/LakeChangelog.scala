package org.apache.spark.sql.lakelog

import scala.jdk.OptionConverters._

import org.apache.spark.sql.connector.catalog.{Changelog, ChangelogContext, ChangelogRange, Column}
import org.apache.spark.sql.connector.catalog.ChangelogRange.{TimestampRange, VersionRange}
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Changes of a table. `table` has its columns as of the last of the versions, and those that describe each change: Python
 * reports which changes there are, and in which files. Which rows were updated or only copied, and what is left of
 * several changes, Spark finds out, where the facts say that there may be such rows.
 */
private[lakelog] final class LakeChangelog(
    val table: LakeTable, val facts: wire.ChangesFacts, val asked: ChangelogContext) extends Changelog {
  private val metadata = table.physical.metadata

  /** The versions whose changes these are; of a range without an end, up to the newest one. */
  val first: Long = facts.first
  val last: Long = facts.last

  /** Where a stream of them ends. */
  def end: wire.ChangesEnd = facts.end

  /** What a change is read as. */
  val schema: StructType = withIds(table.schema)

  override def name(): String = table.name

  /** Spark takes CHAR and VARCHAR for texts in all relations but streams. */
  override def columns(): Array[Column] = SchemaInternals.columnsOf(withIds(table.physical.identified))

  private def withIds(columns: StructType): StructType =
    StructType(SchemaInternals.withoutCharVarchar(columns).fields ++ LakeChangelog.Ids.map(field))

  /** What may be among them. */
  def among: wire.StreamBatchFiles = wire.StreamBatchFiles(facts.mayCarry, facts.mayUpdate, facts.mayRepeat)

  override def containsCarryoverRows(): Boolean = facts.mayCarry

  override def representsUpdateAsDeleteAndInsert(): Boolean = facts.mayUpdate

  override def containsIntermediateChanges(): Boolean = facts.mayRepeat

  override def rowId(): Array[NamedReference] = Array(reference(RowIds.Id))

  override def rowVersion(): NamedReference = reference(RowIds.Version)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    table.refuseUnknown(options, "read", ChangesOptions.Names ++ StreamOptions.Limits)
    table.refuseStreaming()
    new ChangesScanBuilder(this, options)
  }

  /** Rows whose ids are not known are refused, so that there are none here. */
  private def field(fact: RowFact): StructField = StructField(metadata.name(fact), LongType, nullable = false)

  private def reference(fact: RowFact): NamedReference = SchemaInternals.reference(Seq(metadata.name(fact)))

  /** Those of the same versions are equal: Spark finds what it has cached of one when it has loaded the other. */
  override def equals(other: Any): Boolean = other match {
    case that: LakeChangelog => table == that.table && facts == that.facts
    case _ => false
  }

  override def hashCode(): Int = (table, first, last).hashCode

  override def toString: String = s"$name, changes of versions $first to $last"
}

private[lakelog] object LakeChangelog {

  private val Ids: Seq[RowFact] = Seq(RowIds.Id, RowIds.Version)

  /** Which changes of a table are asked for. A range without ends has no answer to whether they count. */
  def wanted(of: wire.Named, range: ChangelogRange): wire.LoadChanges = range match {
    case versions: VersionRange =>
      val isLatest = startsLatest(versions)
      wire.LoadChanges(
        of,
        startVersion = if (isLatest) None else Some(version(versions.startingVersion)),
        startLatest = isLatest,
        endVersion = versions.endingVersion.toScala.map(version),
        withStart = range.startingBoundInclusive,
        withEnd = range.endingBoundInclusive)
    case times: TimestampRange => wire.LoadChanges(
        of,
        startUs = Some(times.startingTimestamp),
        endUs = times.endingTimestamp.toScala.map(_.longValue),
        withStart = range.startingBoundInclusive,
        withEnd = range.endingBoundInclusive)
    case _ => wire.LoadChanges(of)
  }

  /** Whether changes begin with the next version, which is for streams. */
  def startsLatest(range: ChangelogRange): Boolean = range match {
    case versions: VersionRange => versions.startingVersion.trim.equalsIgnoreCase("latest")
    case _ => false
  }

  private def version(text: String): Long = text.trim.toLongOption.getOrElse(
    throw Failures.invalid(s"'$text' is not a version of a table: versions are numbers."))
}

/** Options by which changes are asked for, which Spark has obeyed before it asks for a scan. In lower case. */
private[lakelog] object ChangesOptions {

  val Names: Set[String] = Set(
    "startingversion", "endingversion", "startingtimestamp", "endingtimestamp", "startingboundinclusive",
    "endingboundinclusive", "deduplicationmode", "computeupdates")
}
