package org.apache.spark.sql.lakelog

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** The tables that jobs of procedures are about, by their names in SQL. */
private[lakelog] object ProcedureTables {

  def load(name: String): LakeTable = of(name, plan(name))

  def plan(name: String): LogicalPlan = SparkSession.active.table(name).queryExecution.analyzed

  def of(name: String, plan: LogicalPlan): LakeTable = plan.collectFirst {
    case relation: DataSourceV2Relation if relation.table.isInstanceOf[LakeTable] =>
      relation.table.asInstanceOf[LakeTable]
  }.getOrElse(throw Failures.invalid(s"$name is no table of lakelog's."))
}
