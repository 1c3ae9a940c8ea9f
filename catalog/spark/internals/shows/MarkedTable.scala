package org.apache.spark.sql.lakelog.internals.shows

import java.util.UUID

import org.apache.spark.sql.connector.catalog.Column
import org.apache.spark.sql.lakelog.columns.{GeneratedColumns, IdentityColumns}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.session.SparkTable
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.{MetadataBuilder, StructType}

/**
 * The table as Spark is to print it: if a column's values are generated or made, a text that stands nowhere else is its
 * default, which such a column cannot have.
 */
private[lakelog] final class MarkedTable(table: LakeTable) extends SparkTable(table.access, table.facts) {

  private val mark: String = UUID.randomUUID.toString

  private val clauses: Seq[Option[String]] =
    facts.schema.fields.toSeq.map(field => GeneratedColumns.clause(field).orElse(IdentityColumns.clause(field)))

  private def default(index: Int): String = s"'$mark-$index'"

  override def columns: Array[Column] = SchemaInternals.columnsOf(StructType(
      physical.logical.fields.zip(clauses).zipWithIndex.map { case ((field, clause), index) =>
      if (clause.isEmpty) field
      else field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata)
        .putString("CURRENT_DEFAULT", default(index)).putString("EXISTS_DEFAULT", "NULL").build())
    }))

  def replaced(text: String): String = clauses.zipWithIndex.foldLeft(text) {
    case (text, (Some(clause), index)) => text.replace(s"DEFAULT ${default(index)}", clause)
    case (text, _) => text
  }

  /**
   * The statement for the order, which CREATE TABLE has no words for, as a comment: all that is printed can be run as it is.
   */
  def order(name: String): String = {
    val fields = facts.sortFields.map { field =>
      val of = if (field.transform.isIdentity) SchemaInternals.quoted(field.column)
      else field.transform.toSpark(field.column).describe
      s"$of ${if (field.ascending) "ASC" else "DESC"} NULLS ${if (field.nullsFirst) "FIRST" else "LAST"}"
    }
    if (fields.isEmpty) ""
    else {
      val statement = s"ALTER TABLE $name WRITE ORDERED BY ${fields.mkString(", ")}"
      s"/* and then: ${statement.replace("*/", "* /")} */\n"
    }
  }
}
