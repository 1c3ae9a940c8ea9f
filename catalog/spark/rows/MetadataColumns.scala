package org.apache.spark.sql.lakelog

import java.util.Locale

import scala.collection.immutable.ListMap

import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.types.{DataType, LongType, StringType, StructField, StructType}

/**
 * What is known of a row beside its values: what Spark calls metadata columns, which no `*` shows, and which a query may
 * ask for by name.
 */
private[lakelog] sealed abstract class RowFact(
    val plain: String, val dataType: DataType, val nullable: Boolean, val comment: String)

/** Where a row is. */
private[lakelog] object RowPlace {

  /** The place of the row's data file, as Python spells it. */
  case object File extends RowFact("_file", StringType, false, "the data file that the row is in")

  /** Counts all rows of the file, those that are deleted too. */
  case object Position
    extends RowFact("_pos", LongType, false, "the position of the row in its data file, from 0")
}

/**
 * Which row it is, wherever it goes; see `lakelog.catalog.row_ids`. Neither is known of rows of before there were ids, nor
 * of those that a transaction has added before it has committed.
 */
private[lakelog] object RowIds {

  case object Id extends RowFact("_row_id", LongType, true, "the row's id, which it keeps when it is updated")

  case object Version extends RowFact("_version", LongType, true, "the version that last changed the row")

  /**
   * The columns of a file with ids and versions of rows that came from elsewhere; NULL for all others. Their field ids
   * are those that Iceberg reserves for the same.
   */
  val own: ListMap[RowFact, StructField] = ListMap(
    Id -> FieldIds.identified(StructField("_lakelog_row_id", LongType), 2147483540L),
    Version -> FieldIds.identified(StructField("_lakelog_row_version", LongType), 2147483539L))
}

/**
 * The metadata columns of a table with these columns.
 *
 * Spark takes a column for a metadata column of the same name wherever it looks for the latter, row-level operations
 * included. So where a table has a column that is called like one, in whatever case, that one gets more underscores.
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
