package org.apache.spark.sql.lakelog.columns

import org.apache.spark.sql.connector.catalog.{Column, TableCapability}
import org.apache.spark.sql.lakelog.internals.{ColumnInternals, Failures, SparkAbilities}
import org.apache.spark.sql.lakelog.internals.seam.Columns
import org.apache.spark.sql.types.{Metadata, MetadataBuilder, StructField, StructType}

/**
 * Columns whose values are generated from others of the same row.
 *
 * Spark computes them if a write does not give them, and checks those that are given against their expression, for
 * tables that request it: from 4.3 on. Before that, such tables are neither made nor written.
 */
private[lakelog] object GeneratedColumns {

  /** Under this key, Python and the adapter exchange the expression and the columns in it. */
  val Key = "lakelog.generated"

  private val SparkKey = "GENERATION_EXPRESSION"

  /** What a table asks Spark for, if Spark has it. */
  val capability: Option[TableCapability] = SparkAbilities.generatesColumns

  /** The schema of a new table as Python takes it. */
  def toPython(schema: StructType): StructType = StructType(schema.fields.map { field =>
    if (!field.metadata.contains(SparkKey)) field
    else {
      val sql = field.metadata.getString(SparkKey)
      val generated = new MetadataBuilder()
        .putString("sql", sql)
        .putStringArray("columns", ColumnInternals.columnsIn(sql, schema).toArray)
        .build()
      val metadata = new MetadataBuilder().withMetadata(field.metadata).remove(SparkKey).putMetadata(Key, generated)
      field.copy(metadata = metadata.build())
    }
  })

  def exist(internal: StructType): Boolean = internal.exists(field => isGenerated(field.metadata))

  /** The columns with their expressions, which stand in the schema that Python sends; for a Spark that computes them. */
  def describe(columns: Array[Column], internal: StructType): Array[Column] =
    if (capability.isEmpty) columns
    else columns.zip(internal.fields).map { case (column, field) =>
      if (!isGenerated(field.metadata)) column
      else Columns.generated(column, sql(field))
    }

  /** The columns and their expressions. */
  def of(
      internal: StructType): Seq[(String, String)] = internal.fields.toSeq.filter(field => isGenerated(field.metadata))
    .map(field => field.name -> sql(field))

  /** The columns as rows may bring them that an UPDATE or MERGE makes: what is generated may be left out, or NULL. */
  def toBeFilled(columns: StructType, internal: StructType): StructType =
    StructType(columns.fields.zip(internal.fields).map { case (column, field) =>
      if (isGenerated(field.metadata)) IdentityColumns.mayBeNull(column) else column
    })

  /** Refuses a write to a table with such columns if Spark would fill them with nulls. */
  def refuseUnlessComputed(table: String, internal: StructType): Unit = if (capability.isEmpty && exist(internal)) {
    throw Failures.unsupported(
      s"The table $table has generated columns, whose values Spark computes from version 4.3 on: write with Spark 4.3.")
  }

  /** The words in CREATE TABLE for how a column of a table is generated. */
  def clause(field: StructField): Option[String] =
    if (!isGenerated(field.metadata)) None
    else Some(s"GENERATED ALWAYS AS (${sql(field)})")

  private def sql(field: StructField): String = field.metadata.getMetadata(Key).getString("sql")

  private def isGenerated(metadata: Metadata): Boolean = metadata.contains(Key)
}
