package org.apache.spark.sql.lakelog.files

import scala.collection.immutable.ListMap

import org.apache.spark.sql.types.{DataType, LongType, StringType, StructField}

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
