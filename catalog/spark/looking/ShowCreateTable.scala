package org.apache.spark.sql.lakelog

import java.util.UUID

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ShowCreateTable}
import org.apache.spark.sql.connector.catalog.Column
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.{ShowCreateTableExec, V2CommandExec}
import org.apache.spark.sql.types.{MetadataBuilder, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * SHOW CREATE TABLE as Spark prints it, with what it leaves out: how values are generated or made, and by what rows are
 * ordered.
 */
private[lakelog] object ShowCreateTables extends (SparkSession => SparkStrategy) {

  override def apply(session: SparkSession): SparkStrategy = new SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case ShowCreateTable(resolved @ ResolvedTable(_, _, table: LakeTable, _), false, output) =>
        Seq(ShowCreateLakeTableExec(output, resolved, table))
      case _ => Nil
    }
  }
}

private[lakelog] case class ShowCreateLakeTableExec(output: Seq[Attribute], resolved: ResolvedTable, table: LakeTable)
  extends V2CommandExec with LeafExecNode {

  override protected def run(): Seq[InternalRow] = {
    table.refuseOnRef("SHOW CREATE TABLE")
    val marked = new MarkedTable(table, UUID.randomUUID.toString)
    val Array(row) = ShowCreateTableExec(output, resolved.copy(table = marked)).executeCollect()
    Seq(InternalRow(UTF8String.fromString(marked.replaced(row.getString(0)) + order)))
  }

  /**
   * The statement for the order, which CREATE TABLE has no words for, as a comment: all that is printed can be run as it is.
   */
  private def order: String = {
    val fields = table.facts.sortFields.map { field =>
      val of = if (field.transform.isIdentity) SparkInternals.quoted(field.column)
        else field.transform.toSpark(field.column).describe
      s"$of ${if (field.ascending) "ASC" else "DESC"} NULLS ${if (field.nullsFirst) "FIRST" else "LAST"}"
    }
    if (fields.isEmpty) ""
    else {
      val statement = s"ALTER TABLE ${resolved.name} WRITE ORDERED BY ${fields.mkString(", ")}"
      s"/* and then: ${statement.replace("*/", "* /")} */\n"
    }
  }
}

/**
 * The table as Spark is to print it: where a column's values are generated or made, a text that stands nowhere else is its
 * default, which such a column cannot have.
 */
private final class MarkedTable(table: LakeTable, mark: String) extends LakeTable(table.access, table.facts) {

  private val clauses: Seq[Option[String]] =
    facts.schema.fields.toSeq.map(field => GeneratedColumns.clause(field).orElse(IdentityColumns.clause(field)))

  private def default(index: Int): String = s"'$mark-$index'"

  override def columns: Array[Column] = SparkInternals.columnsOf(StructType(
    physical.logical.fields.zip(clauses).zipWithIndex.map { case ((field, clause), index) =>
      if (clause.isEmpty) field
      else field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata)
        .putString("CURRENT_DEFAULT", default(index)).putString("EXISTS_DEFAULT", "NULL").build())
    }))

  def replaced(text: String): String = clauses.zipWithIndex.foldLeft(text) {
    case (text, (Some(clause), index)) => text.replace(s"DEFAULT ${default(index)}", clause)
    case (text, _) => text
  }
}
