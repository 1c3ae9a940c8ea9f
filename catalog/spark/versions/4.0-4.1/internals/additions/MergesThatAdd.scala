package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.write.AddingMerges

/**
 * Finds MERGEs that only add rows, before Spark asks for their writes. This Spark makes appends of them, which look into the
 * very relation that they add to: an INSERT that reads its table has a relation of its own for that.
 */
private[lakelog] object MergesThatAdd extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.MergesThatAdd"

    override def apply(plan: LogicalPlan): LogicalPlan = {
      plan.foreach {
        case append: AppendData => append.table match {
            case relation: DataSourceV2Relation if append.query.exists(looksInto(_, relation)) =>
              relation.table match {
                case table: LakeTable => AddingMerges.add(table)
                case _ =>
              }
            case _ =>
          }
        case _ =>
      }
      plan
    }
  }

  private def looksInto(plan: LogicalPlan, relation: DataSourceV2Relation): Boolean = plan match {
    case Join(_, right, LeftAnti, _, _) => right.exists {
        case read: DataSourceV2Relation => read.outputSet == relation.outputSet
        case _ => false
      }
    case _ => false
  }
}
