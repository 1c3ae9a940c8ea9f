package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JBool, JInt, JNull, JValue}

import org.apache.spark.sql.connector.catalog.{Changelog, ChangelogContext, ChangelogRange, Column}
import org.apache.spark.sql.connector.catalog.ChangelogContext.DeduplicationMode
import org.apache.spark.sql.connector.catalog.ChangelogRange.{TimestampRange, VersionRange}
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Changes of a table. `table` has its columns as of the last of the versions, and those that tell of each change: Python
 * tells what there is, and which files it is in. Which rows were updated or only copied, and what is left of several
 * changes, Spark finds out, where there may be such a thing.
 */
private[lakelog] final class LakeChangelog(val table: LakeTable, val asked: ChangelogContext) extends Changelog {

  private val facts = table.facts.json
  private val metadata = table.physical.metadata

  /** The versions whose changes these are; of a range without an end, up to the newest one. */
  val first: Long = Json.long(facts, "first")
  val last: Long = Json.long(facts, "last")

  /** Where a stream of them ends, in Python's words: at a version, a time, or nowhere. */
  def end: JValue = facts \ "end"

  /** Whether Spark compares the changes of a row with each other. */
  val isCompared: Boolean = asked.computeUpdates || asked.deduplicationMode != DeduplicationMode.NONE

  /** What a change is read as. */
  val schema: StructType = StructType(SchemaInternals.withoutCharVarchar(table.schema).fields ++ LakeChangelog.Ids.map(field))

  override def name(): String = table.name

  override def columns(): Array[Column] = table.columns ++ SchemaInternals.columnsOf(StructType(LakeChangelog.Ids.map(field)))

  override def containsCarryoverRows(): Boolean = Json.bool(facts, "may_carry")

  override def representsUpdateAsDeleteAndInsert(): Boolean = Json.bool(facts, "may_update")

  override def containsIntermediateChanges(): Boolean = Json.bool(facts, "may_repeat")

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
    case that: LakeChangelog => table == that.table
    case _ => false
  }

  override def hashCode(): Int = (table, first, last).hashCode

  override def toString: String = s"$name, changes of versions $first to $last"
}

private[lakelog] object LakeChangelog {

  private val Ids: Seq[RowFact] = Seq(RowIds.Id, RowIds.Version)

  /** Which changes are asked for, as Python takes it. */
  def toJson(range: ChangelogRange): Seq[(String, JValue)] = {
    val ends = range match {
      case versions: VersionRange => Seq(
        if (startsLatest(versions)) "start_latest" -> JBool(true) else "start_version" -> version(versions.startingVersion),
        "end_version" -> Some(versions.endingVersion).filter(_.isPresent).map(end => version(end.get)).getOrElse(JNull))
      case times: TimestampRange => Seq(
        "start_us" -> JInt(times.startingTimestamp),
        "end_us" -> Some(times.endingTimestamp).filter(_.isPresent).map(end => JInt(end.get.longValue)).getOrElse(JNull))
      case _ => Nil
    }
    // One without ends has no answer to whether they count.
    if (ends.isEmpty) Nil
    else ends ++ Seq(
      "with_start" -> JBool(range.startingBoundInclusive), "with_end" -> JBool(range.endingBoundInclusive))
  }

  /** Whether changes begin with the next version, which is for streams. */
  def startsLatest(range: ChangelogRange): Boolean = range match {
    case versions: VersionRange => versions.startingVersion.trim.equalsIgnoreCase("latest")
    case _ => false
  }

  private def version(text: String): JValue = JInt(text.trim.toLongOption.getOrElse(
    throw Failures.invalid(s"'$text' is not a version of a table: versions are numbers.")))
}

/** Options by which changes are asked for, which Spark has obeyed before it asks for a scan. In lower case. */
private[lakelog] object ChangesOptions {

  val Names: Set[String] = Set(
    "startingversion", "endingversion", "startingtimestamp", "endingtimestamp", "startingboundinclusive",
    "endingboundinclusive", "deduplicationmode", "computeupdates")
}
