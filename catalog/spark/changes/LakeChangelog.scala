package org.apache.spark.sql.lakelog.changes

import scala.jdk.OptionConverters._

import org.apache.spark.sql.connector.catalog.Column
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.lakelog.files.{RowFact, RowIds}
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Changelog, ChangelogRange, TimestampRange, VersionRange}
import org.apache.spark.sql.lakelog.read.StreamOptions
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Changes of a table. `table` has its columns as of the last of the versions, and those that describe each change: Python
 * reports which changes there are, and in which files. Which rows were updated or only copied, and what is left of
 * several changes, Spark finds out, if the facts say that there may be such rows.
 */
private[lakelog] final class LakeChangelog(val changes: TableChanges) extends Changelog {
  import changes.{metadata, table}

  override def name(): String = table.name

  /** Spark takes CHAR and VARCHAR for texts in all relations but streams. */
  override def columns(): Array[Column] = SchemaInternals.columnsOf(changes.withIds(table.physical.identified))

  override def containsCarryoverRows(): Boolean = changes.facts.mayCarry

  override def representsUpdateAsDeleteAndInsert(): Boolean = changes.facts.mayUpdate

  override def containsIntermediateChanges(): Boolean = changes.facts.mayRepeat

  override def rowId(): Array[NamedReference] = Array(reference(RowIds.Id))

  override def rowVersion(): NamedReference = reference(RowIds.Version)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    table.refuseUnknown(options, "read", ChangesOptions.Names ++ StreamOptions.Limits)
    table.refuseStreaming()
    new ChangesScanBuilder(changes, options)
  }

  private def reference(fact: RowFact): NamedReference = SchemaInternals.reference(Seq(metadata.name(fact)))

  /** Those of the same versions are equal: Spark finds what it has cached of one when it has loaded the other. */
  override def equals(other: Any): Boolean = other match {
    case that: LakeChangelog => changes == that.changes
    case _ => false
  }

  override def hashCode(): Int = changes.hashCode

  override def toString: String = changes.toString
}

private[lakelog] object LakeChangelog {

  /** Which changes of a table are asked for. A range without ends has no answer to whether they count. */
  def wanted(of: wire.NamedObject, range: ChangelogRange): wire.LoadChanges = range match {
    case versions: VersionRange =>
      val isLatest = StreamOptions.startsLatest(versions)
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

  private def version(text: String): Long = text.trim.toLongOption.getOrElse(
    throw Failures.invalid(s"'$text' is not a version of a table: versions are numbers."))
}
