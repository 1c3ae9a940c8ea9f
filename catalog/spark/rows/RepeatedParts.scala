package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{CommonExpressionRef, Expression, RuntimeReplaceable, With}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RowLevelWrite}
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Conditions of statements that change rows, with a part that Spark computes once and names in several places, as `BETWEEN`
 * and `nullif` have it of an expression.
 *
 * Spark computes the part in a column that it adds to the rows that are to be written. It then looks for the files that have
 * such rows by the same condition, in a scan that lacks the column, and the statement fails. So the condition gets the part
 * itself in each place. The rows keep theirs, which Spark computes once.
 */
private[lakelog] object RepeatedParts extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case write: RowLevelWrite if RowOperation.of(write).isDefined => write.mapExpressions(repeated)
    }
  }

  private def repeated(expression: Expression): Expression =
    if (expression.exists(hasNames)) inPlace(expression) else expression

  private def hasNames(expression: Expression): Boolean = expression match {
    case _: With => true
    case replaceable: RuntimeReplaceable => replaceable.replacement.exists(hasNames)
    case _ => false
  }

  private def inPlace(expression: Expression): Expression = expression match {
    case replaceable: RuntimeReplaceable => inPlace(replaceable.replacement)
    case common: With =>
      val parts = common.defs.map(part => part.id -> inPlace(part.child)).toMap
      inPlace(common.child.transform { case named: CommonExpressionRef if parts.contains(named.id) => parts(named.id) })
    case other => other.mapChildren(inPlace)
  }
}
