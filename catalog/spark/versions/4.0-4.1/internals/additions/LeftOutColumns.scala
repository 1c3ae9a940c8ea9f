package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedRelation, UnresolvedStar}
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan, Project}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types.StructField

/**
 * Columns that an INSERT with a list of columns leaves out: they get their defaults, or NULL. Spark 4.0 does so for its own
 * tables only, and Spark 4.1 writes a default that is shorter than its CHAR column without the blanks behind it.
 */
private[lakelog] object LeftOutColumns extends EarlyRewrite {

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case insert @ InsertIntoStatement(named: UnresolvedRelation, partition, columns, query, _, _, byName)
        if columns.nonEmpty && partition.isEmpty && !byName && !namesDefault(query) =>
      LakeNames.table(named.multipartIdentifier).fold[LogicalPlan](insert) { table =>
        val missing = table.toBeFilled.columns.zip(fields(table)).collect {
          case (column, field) if !columns.exists(SettingInternals.resolver(_, column.name)) => field
        }
        if (missing.isEmpty) insert
        else insert.copy(
          userSpecifiedCols = columns ++ missing.map(_.name),
          query = Project(UnresolvedStar(None) +: missing.toSeq.map(value), query))
      }
  }

  private def fields(table: LakeTable): Array[StructField] = table.toBeFilled.schema.fields

  private def value(field: StructField): Alias = {
    val default = field.getCurrentDefaultValue().map(CatalystSqlParser.parseExpression)
    Alias(default.getOrElse(Literal(null)), field.name)()
  }

  /** Spark finds DEFAULT among the values of a statement only right below it. */
  private def namesDefault(query: LogicalPlan): Boolean = query.exists(_.expressions.exists(_.exists {
    case attribute: UnresolvedAttribute => attribute.nameParts.length == 1 && attribute.name.equalsIgnoreCase("DEFAULT")
    case _ => false
  }))
}
