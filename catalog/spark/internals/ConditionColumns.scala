package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.lakelog.internals.seam.Names
import org.apache.spark.sql.types.StructType

/** The columns that constraints name. */
private[lakelog] object ConditionColumns {

  /** The columns, and fields of structs, whose names stand in a condition. Spark has resolved it before. */
  def in(sql: String, schema: StructType): Seq[Seq[String]] = {
    val condition = PlanInternals.expression(sql)
    if (condition.exists(_.isInstanceOf[SubqueryExpression])) {
      throw Failures.invalid(s"The condition $sql has a subquery: a CHECK can use the columns of its own row only.")
    }
    val names = condition.collect { case attribute: UnresolvedAttribute => attribute.nameParts }
    // Some functions, such as current_date, go without parentheses.
    val columns = names.filter(name => isColumn(name.head, schema) || !Names.isFunction(name))
    columns.foreach { name =>
      if (!isColumn(name.head, schema)) {
        val there = schema.fieldNames.map(column => SchemaInternals.quoted(Seq(column))).mkString(", ")
        throw Failures.invalid(
          s"The condition $sql has ${SchemaInternals.quoted(name)}, which is not a column of the table: in a CHECK, " +
            s"name columns without the table. They are $there.")
      }
    }
    columns.distinct
  }

  /** Refuses, as Spark refuses it in a query, a key on a column that is not there. */
  def require(name: Seq[String], schema: StructType): Unit =
    if (!isColumn(name.head, schema)) {
      throw ErrorInternals.unresolvedColumn(name, schema.fieldNames)
    }

  private def isColumn(name: String, schema: StructType): Boolean =
    schema.fieldNames.exists(SettingInternals.resolver(_, name))
}
