package org.apache.spark.sql.lakelog.table

import org.apache.spark.sql.lakelog.columns.Constraints
import org.apache.spark.sql.lakelog.expressions.{Curve, PartitionField, PartitionTransform, SortField}
import org.apache.spark.sql.lakelog.internals.seam.Constraint
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType

/** One version of a table, or a staged table, as Python describes it: `own`, in Spark's types. */
private[lakelog] final case class TableFacts(own: wire.TableFacts) {

  def id: String = own.id
  def version: Long = own.version

  /** Whether the user asked for this version, rather than for the newest. */
  def past: Boolean = own.past

  /** The tag or branch that it is on; None for the table itself. */
  def ref: Option[wire.LoadedRef] = own.ref

  /** How far its transaction had come when it was loaded: there a table changes without a new version. */
  def step: Long = own.step

  /** The url of the table's place; data files' paths are relative to it. */
  def location: String = own.location
  def ownLocation: Boolean = own.ownLocation
  def provider: Option[String] = own.provider
  def comment: Option[String] = own.comment
  def properties: Map[String, String] = own.properties
  lazy val constraints: Seq[Constraint] = own.constraints.map(Constraints.toSpark)
  def specId: Int = own.specId.toInt

  /** What is known of whole columns, as estimates, each with the name of its column. */
  def estimates: Seq[wire.OptimizerEstimate] = own.estimates

  /** The schema with column ids and physical names in its metadata: never shown to users. */
  val schema: StructType = own.schema.schema

  val partitionFields: Seq[PartitionField] = own.partitioning.map { field =>
    PartitionField(
      field.fieldId.toInt, PartitionTransform(field.transform, field.args.map(_.toInt).toList), field.column,
      field.name,
      wire.FreeJson.named(field.result).dataType)
  }

  val sortFields: Seq[SortField] = own.sortOrder.map { field =>
    SortField(
      PartitionTransform(field.transform, field.args.map(_.toInt).toList), field.column,
      ascending = field.direction == "asc", nullsFirst = field.nulls == "first")
  }

  /** The columns by which writes cluster their rows. */
  def clustering: Seq[Seq[String]] = own.clustering

  /** Along what they order them, once the table has been clustered. */
  lazy val curve: Option[Curve] = own.curve.map(new Curve(_))

  /** Data files are closed when they reach about this size. */
  def targetFileBytes: Long = own.targetFileSizeBytes
  def compressionCodec: String = own.compressionCodec

  /** For DELETE, UPDATE and MERGE, in small letters: `merge-on-read` or `copy-on-write`. */
  def writeModes: Map[String, String] = own.writeModes

  /** What identifies the table, or the tag or branch of it that was loaded, whatever their names. */
  def ownId: String = ref.fold(id)(ref => s"$id/${ref.id}")

  /** How requests name this table once it is loaded: by its place and id, and by the name that it must still have to be changed. */
  def reference: wire.LoadedTable = referenceOf(version)

  /** The same table at another version. */
  def referenceOf(version: Long): wire.LoadedTable =
    wire.LoadedTable(location, id, version, past, step, ref, own.foundBy)
}
