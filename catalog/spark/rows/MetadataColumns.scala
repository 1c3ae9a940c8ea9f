package org.apache.spark.sql.lakelog

import java.util.Locale

import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.types.{DataType, LongType, StringType, StructField, StructType}

/** Where a row is: what Spark calls metadata columns, which no `*` shows, and which a query may ask for by name. */
private[lakelog] sealed abstract class RowPlace(val plain: String, val dataType: DataType, val comment: String)

private[lakelog] object RowPlace {

  /** The place of the row's data file, as Python spells it. */
  case object File extends RowPlace("_file", StringType, "the data file that the row is in")

  /** Counts all rows of the file, those that are deleted too. */
  case object Position extends RowPlace("_pos", LongType, "the position of the row in its data file, from 0")

  val all: Seq[RowPlace] = Seq(File, Position)
}

/**
 * The metadata columns of a table with these columns.
 *
 * Spark takes a column for a metadata column of the same name wherever it looks for the latter, row-level operations
 * included. So where a table has a column that is called like one, in whatever case, that one gets more underscores.
 */
private[lakelog] final class MetadataColumns(columns: StructType) {

  private val taken = columns.fieldNames.map(lower).toSet

  private val names: Map[RowPlace, String] = RowPlace.all.map { place =>
    place -> Iterator.iterate(place.plain)("_" + _).find(name => !taken(name)).get
  }.toMap

  private val places: Map[String, RowPlace] = names.map(_.swap)

  def name(place: RowPlace): String = names(place)

  /** What the name means in a scan of the table; None for a column. */
  def place(name: String): Option[RowPlace] = places.get(lower(name))

  def find(schema: StructType, place: RowPlace): Option[StructField] =
    schema.fields.find(field => this.place(field.name).contains(place))

  /** Without the metadata columns. */
  def without(schema: StructType): StructType = StructType(schema.fields.filter(field => place(field.name).isEmpty))

  def toSpark: Array[MetadataColumn] = RowPlace.all.map { each =>
    new MetadataColumn {
      override def name(): String = names(each)
      override def dataType(): DataType = each.dataType
      override def isNullable: Boolean = false
      override def comment(): String = each.comment
    }: MetadataColumn
  }.toArray

  private def lower(name: String): String = name.toLowerCase(Locale.ROOT)
}
