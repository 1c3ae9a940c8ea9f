package org.apache.spark.sql.lakelog.internals.plans

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, PredicateHelper, PythonUDF}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OverwriteByExpression}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2Strategy, V2Writes}

/** Overwrites by a condition, as Spark has them before it asks a table whether it can replace the rows. */
private[lakelog] object OverwriteInternals extends PredicateHelper {

  /** What of a condition Spark can hand down, of its parts that all have to be true, and which parts it cannot. */
  def handedDown(condition: Expression): (Seq[Predicate], Seq[Expression]) = {
    val parts = splitConjunctivePredicates(condition).map(part => part -> DataSourceV2Strategy.translateFilterV2(part))
    (parts.flatMap(_._2), parts.collect { case (part, None) => part })
  }

  /**
   * A plan in which overwrites are writes to another table in the place of their own, if there is one for table and
   * condition: as if all rows of that were replaced, so that Spark hands nothing down. Those that do replace all rows stay
   * as they are: Spark has a word for these, and the table may be one that does not exist yet.
   */
  def replaced(plan: LogicalPlan)(other: (Table, Expression) => Option[Table]): LogicalPlan = plan.transformDown {
    case overwrite: OverwriteByExpression if overwrite.write.isEmpty && overwrite.deleteExpr != Literal.TrueLiteral =>
      overwrite.table match {
        case relation: DataSourceV2Relation => other(relation.table, overwrite.deleteExpr) match {
            case None => overwrite
            case Some(table) =>
              V2Writes(overwrite.copy(table = relation.copy(table = table), deleteExpr = Literal.TrueLiteral)) match {
                case ready: OverwriteByExpression =>
                  ready.copy(table = relation, deleteExpr = kept(overwrite.deleteExpr))
                case unchanged => unchanged
              }
          }
        case _ => overwrite
      }
  }

  /** Nothing looks at the condition from here on but what takes functions in Python out of plans, to run them on the query. */
  private def kept(condition: Expression): Expression =
    if (condition.exists(_.isInstanceOf[PythonUDF])) Literal.TrueLiteral else condition
}
