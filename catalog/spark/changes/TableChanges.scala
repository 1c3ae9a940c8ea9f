package org.apache.spark.sql.lakelog.changes

import org.apache.spark.sql.lakelog.files.{RowFact, RowIds}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.seam.{ChangelogContext, DeduplicationMode}
import org.apache.spark.sql.lakelog.table.{LakeTable, MetadataColumns}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** The changes of a table that were asked for, and what Python has found of them. */
private[lakelog] final class TableChanges(
    val table: LakeTable, val facts: wire.ChangesFacts, val asked: ChangelogContext) {

  val metadata: MetadataColumns = table.physical.metadata

  /** The versions whose changes these are; of a range without an end, up to the newest one. */
  val first: Long = facts.first
  val last: Long = facts.last

  /** Where a stream of them ends. */
  def end: wire.ChangesEnd = facts.end

  /** What a change is read as. */
  val schema: StructType = withIds(table.schema)

  def withIds(columns: StructType): StructType =
    StructType(SchemaInternals.withoutCharVarchar(columns).fields ++ TableChanges.Ids.map(field))

  /** Rows whose ids are not known are refused, so that there are none here. */
  private def field(fact: RowFact): StructField = StructField(metadata.name(fact), LongType, nullable = false)

  /** What may be among them. */
  def among: wire.StreamBatchFiles = wire.StreamBatchFiles(facts.mayCarry, facts.mayUpdate, facts.mayRepeat)

  override def equals(other: Any): Boolean = other match {
    case that: TableChanges => table == that.table && facts == that.facts
    case _ => false
  }

  override def hashCode(): Int = (table, first, last).hashCode

  override def toString: String = s"${table.name}, changes of versions $first to $last"
}

private[lakelog] object TableChanges {
  private val Ids: Seq[RowFact] = Seq(RowIds.Id, RowIds.Version)
}

/** Options by which changes are asked for, which Spark has obeyed before it asks for a scan. In lower case. */
private[lakelog] object ChangesOptions {

  val Names: Set[String] = Set(
    "startingversion", "endingversion", "startingtimestamp", "endingtimestamp", "startingboundinclusive",
    "endingboundinclusive", "deduplicationmode", "computeupdates")

  /** Whether changes are wanted in another way than they are stored. */
  def areCompared(asked: ChangelogContext): Boolean =
    asked.computeUpdates || asked.deduplicationMode != DeduplicationMode.NONE
}
