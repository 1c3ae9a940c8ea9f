package org.apache.spark.sql.lakelog.internals.plans

import org.apache.spark.sql.{SparkSession => Session}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.table.LakeTable

/**
 * Scans of which all rows become one row. Nothing is joined or grouped by the keys of their partitions, so they do not
 * report these: their files are packed into fewer tasks, and Spark 4.3 merges such scans, which it does for scans without
 * keys only. A DISTINCT in an aggregate groups by its values first, so these scans stay as they are.
 */
private[lakelog] object OneRowScans extends (Session => Rule[LogicalPlan]) {

  override def apply(session: Session): Rule[LogicalPlan] = Unkeyed

  private object Unkeyed extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
      case aggregate: Aggregate if aggregate.groupingExpressions.isEmpty && !hasDistinct(aggregate) =>
        aggregate.withNewChildren(Seq(unkeyed(aggregate.child)))
    }
  }

  private def hasDistinct(aggregate: Aggregate): Boolean =
    aggregate.aggregateExpressions.exists(_.exists {
      case function: AggregateExpression => function.isDistinct
      case _ => false
    })

  private def unkeyed(plan: LogicalPlan): LogicalPlan = plan match {
    case _: Project | _: Filter => plan.withNewChildren(plan.children.map(unkeyed))
    case relation: DataSourceV2Relation => relation.table match {
        case table: LakeTable if table.access.isKeyed => relation.copy(table = table.unkeyed)
        case _ => relation
      }
    case other => other
  }
}
