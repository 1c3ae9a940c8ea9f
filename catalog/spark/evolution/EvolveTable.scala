package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JObject}

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.LeafRunnableCommand

/** A change of how a table's new files are written; `child` names the table. */
private[lakelog] case class EvolveTable(child: LogicalPlan, changes: Seq[JObject], isDistributed: Boolean)
  extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): EvolveTable = copy(child = newChild)
}

private[lakelog] object ResolveEvolveTable extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case EvolveTable(ResolvedTable(_, _, table: LakeTable, _), changes, isDistributed) =>
        EvolveLakeTable(table, changes, isDistributed)
      case EvolveTable(resolved: ResolvedTable, _, _) => throw Failures.unsupported(
        s"${resolved.table.name} is no table of lakelog, which alone has this statement.")
    }
  }
}

private[lakelog] case class EvolveLakeTable(table: LakeTable, changes: Seq[JObject], isDistributed: Boolean)
  extends LeafRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    if (isDistributed && table.facts.partitionFields.isEmpty) {
      throw Failures.invalid(
        s"${table.name} is not partitioned, so its rows cannot be distributed by partition: leave DISTRIBUTED BY PARTITION out.")
    }
    table.change("alter_table", "changes" -> JArray(changes.toList))
    Nil
  }
}
