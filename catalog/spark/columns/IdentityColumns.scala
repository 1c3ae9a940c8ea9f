package org.apache.spark.sql.lakelog.columns

import org.apache.spark.sql.connector.catalog.{Column, IdentityColumnSpec}
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.Columns
import org.apache.spark.sql.types.{MetadataBuilder, StructField, StructType}

/** A column whose values are made: `start`, then each `step` further. To one of `always`, no row brings a value. */
private[lakelog] final case class IdentityColumn(id: Long, name: String, start: Long, step: Long, always: Boolean) {

  def refusal: String =
    s"The column ${SchemaInternals.quoted(Seq(name))} is GENERATED ALWAYS AS IDENTITY, so a statement cannot give values " +
      "for it: leave the column out, or write DEFAULT."
}

/**
 * Columns whose values are made as rows are written.
 *
 * Spark creates them and knows nothing of them when it writes. So a table that is loaded to be written shows them as
 * columns whose default is NULL, which is what a row has that brings no value; the writer puts one there.
 */
private[lakelog] object IdentityColumns {

  /** Spark's own keys, which Python uses too. */
  import SchemaInternals.Identity.{explicit, start, step}

  val Keys: Seq[String] = Seq(start, step, explicit)

  def of(internal: StructType): Seq[IdentityColumn] = internal.fields.toSeq.filter(isIdentity).map { field =>
    IdentityColumn(
      field.metadata.getLong("lakelog.id"), field.name, field.metadata.getLong(start), field.metadata.getLong(step),
      !field.metadata.getBoolean(explicit))
  }

  /** The columns with the definitions that Spark has a place for: they are what CREATE TABLE … LIKE copies. */
  def describe(columns: Array[Column], internal: StructType): Array[Column] =
    columns.zip(internal.fields).map { case (column, field) =>
      if (!isIdentity(field)) column
      else Columns.identity(column,
        new IdentityColumnSpec(
          field.metadata.getLong(start), field.metadata.getLong(step), field.metadata.getBoolean(explicit)))
    }

  /** The columns as rows may bring them: those whose values are made may be left out, or NULL. */
  def toBeFilled(columns: StructType, internal: StructType): StructType =
    StructType(columns.fields.zip(internal.fields).map { case (column, field) =>
      if (isIdentity(field)) mayBeNull(column) else column
    })

  /** A column that a row may leave out, with NULL for what its value will be. */
  def mayBeNull(column: StructField): StructField = {
    val metadata = new MetadataBuilder().withMetadata(column.metadata)
      .putString("CURRENT_DEFAULT", "NULL").putString("EXISTS_DEFAULT", "NULL")
    column.copy(nullable = true, metadata = metadata.build())
  }

  /** Refuses rows, before they are written, that bring a value for sure if none may be given. */
  def refuseGiven(identities: Seq[IdentityColumn], rows: StructType): Unit =
    identities.filter(_.always).foreach { column =>
      if (rows.exists(field => field.name == column.name && !field.nullable)) throw Failures.invalid(column.refusal)
    }

  /** The words in CREATE TABLE for how the values of a column of a table are made: from the start again. */
  def clause(field: StructField): Option[String] =
    if (!isIdentity(field)) None
    else {
      val which = if (field.metadata.getBoolean(explicit)) "BY DEFAULT" else "ALWAYS"
      val (first, by) = (field.metadata.getLong(start), field.metadata.getLong(step))
      Some(s"GENERATED $which AS IDENTITY (START WITH $first INCREMENT BY $by)")
    }

  private def isIdentity(field: StructField): Boolean = field.metadata.contains(start)
}
