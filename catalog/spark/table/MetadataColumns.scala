package org.apache.spark.sql.lakelog.table

import java.util.Locale

import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.lakelog.files.{RowFact, RowIds, RowPlace}
import org.apache.spark.sql.lakelog.internals.ColumnInternals
import org.apache.spark.sql.types.{DataType, StructField, StructType}

/**
 * The metadata columns of a table with these columns.
 *
 * Spark takes a column for a metadata column of the same name wherever it looks for the latter, row-level operations
 * included. So if a table has a column that is called like one, in whatever case, that one gets more underscores.
 */
private[lakelog] final class MetadataColumns(columns: StructType) {

  private val taken = columns.fieldNames.map(lower).toSet

  private val names: Map[RowFact, String] = MetadataColumns.all.map { fact =>
    fact -> Iterator.iterate(fact.plain)("_" + _).find(name => !taken(name) && !MetadataColumns.isOfSpark(name)).get
  }.toMap

  private val facts: Map[String, RowFact] = names.map(_.swap)

  def name(fact: RowFact): String = names(fact)

  /** What the name means in a scan of the table; None for a column. */
  def fact(name: String): Option[RowFact] = facts.get(lower(name))

  def find(schema: StructType, fact: RowFact): Option[StructField] =
    schema.fields.find(field => this.fact(field.name).contains(fact))

  /** Without the metadata columns. */
  def without(schema: StructType): StructType = StructType(schema.fields.filter(field => fact(field.name).isEmpty))

  def toSpark: Array[MetadataColumn] = MetadataColumns.all.map { each =>
    new MetadataColumn {
      override def name(): String = names(each)
      override def dataType(): DataType = each.dataType
      override def isNullable: Boolean = each.nullable
      override def comment(): String = each.comment
      override def metadataInJSON(): String =
        if (each == RowIds.Version) s"""{"${MetadataColumn.PRESERVE_ON_UPDATE}": false}""" else null
    }: MetadataColumn
  }.toArray

  private def lower(name: String): String = name.toLowerCase(Locale.ROOT)
}

private[lakelog] object MetadataColumns {
  val all: Seq[RowFact] = Seq(RowPlace.File, RowPlace.Position, RowIds.Id, RowIds.Version)

  /**
   * Whether Spark adds a column of that name to the rows of an UPDATE, MERGE or DELETE, and finds it by its name: what Python
   * calls `OF_SPARK`.
   */
  def isOfSpark(name: String): Boolean = {
    val lower = name.toLowerCase(Locale.ROOT)
    ColumnInternals.addedToRows(lower) || lower.startsWith(ColumnInternals.addedToRowsPrefix)
  }
}
