package org.apache.spark.sql.lakelog

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Reads tables as they are where a statement also writes to them.
 *
 * Spark takes the table that it has loaded to be written also for others of that name in the statement: in subqueries, and
 * for what a MERGE looks up. Before it reads them, it loads them again, and refuses what has changed: an identity column
 * that a row may leave out is nullable, and one that is read is not.
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
