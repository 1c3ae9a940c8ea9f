package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * A DELETE of all rows of a table with columns of type CHAR.
 *
 * Spark leaves it to the table, and then pads these columns, as in each relation that it reads. It knows no way to carry out
 * a DELETE from what has become a projection of the table.
 */
private[lakelog] object PaddedDeletes extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case delete @ DeleteFromTable(table, Literal.TrueLiteral) => delete.copy(table = table.resolveOperators {
          case Project(_, relation @ PlanInternals.TableOf(_: LakeTable)) => relation
        })
    }
  }
}
