package org.apache.spark.sql.lakelog.rows

import org.apache.spark.sql.lakelog.internals.seam.Checks
import org.apache.spark.sql.{SparkSession => Session}
import org.apache.spark.sql.catalyst.expressions.{EqualTo, If, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, WriteDelta}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.RowDeltaUtils

/**
 * Excepts rows that a MERGE on read deletes from the table's CHECKs.
 *
 * Spark has a row without values for each of them, and holds the CHECKs against that too: CHECK (a IS NOT NULL) would fail
 * over a row that goes.
 */
private[lakelog] object MergeChecks extends (Session => Rule[LogicalPlan]) {

  override def apply(session: Session): Rule[LogicalPlan] = Excepting

  private object Excepting extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case write: WriteDelta if RowOperation.of(write).isDefined =>
        write.query match {
          case filter @ Filter(condition, rows)
              if condition.exists(Checks.isInvariant) && !isExcepted(filter) =>
            rows.output.find(_.name == RowDeltaUtils.OPERATION_COLUMN).fold[LogicalPlan](write) { operation =>
              val isDeleted = EqualTo(operation, Literal(RowDeltaUtils.DELETE_OPERATION))
              write.withNewQuery(Filter(If(isDeleted, Literal.TrueLiteral, condition), rows))
            }
          case _ => write
        }
    }
  }

  private def isExcepted(filter: Filter): Boolean = filter.condition.isInstanceOf[If]
}
