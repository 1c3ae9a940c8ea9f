package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.table.TableToBeFilled

/**
 * Reads the table as it is in which a MERGE that only inserts looks for rows: the table that Spark has loaded to be written.
 *
 * Before Spark reads it, it loads it again, and refuses what has changed: an identity column that a row may leave out is
 * nullable, and one that is read is not. All that a statement names beside its target [[WriteTargets]] has loaded as it is.
 */
private[lakelog] object ReadFilled extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = AnalysisHelper.allowInvokingTransformsInAnalyzer {
      // This does not pass the target of a write, which is not a child of the plan.
      plan.transformUpWithSubqueries { case relation: DataSourceV2Relation => asRead(relation) }
    }
  }

  private def asRead(relation: DataSourceV2Relation): DataSourceV2Relation = relation.table match {
    case table: TableToBeFilled =>
      // The tables are equal: without another output, Spark would take this for no change.
      val read = table.toBeRead
      val required = read.schema.filterNot(_.nullable).map(_.name).toSet
      relation.copy(
        table = read,
        output = relation.output.map(column => if (required(column.name)) column.withNullability(false) else column))
    case _ => relation
  }
}
