package org.apache.spark.sql.lakelog.procedures

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals}
import org.apache.spark.sql.lakelog.table.LakeTable

/** The tables that jobs of procedures are about, by their names in SQL. */
private[lakelog] object ProcedureTables {

  def load(name: String): LakeTable = of(name, PlanInternals.ofTable(name))

  def of(name: String, plan: LogicalPlan): LakeTable = plan.collectFirst {
    case PlanInternals.TableOf(table: LakeTable) => table
  }.getOrElse(throw Failures.invalid(s"$name is not a lakelog table."))
}
