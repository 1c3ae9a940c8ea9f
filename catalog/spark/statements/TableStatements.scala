package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.statements.LakeCommand
import org.apache.spark.sql.lakelog.table.LakeTable

/** What one of lakelog's own statements does to the table that it names. */
private[lakelog] trait TableStatement {
  def run(table: LakeTable): Unit
}

/** One of lakelog's own statements; `child` names the table. */
private[lakelog] case class StatementOnTable(child: LogicalPlan, statement: TableStatement) extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): StatementOnTable = copy(child = newChild)
}

private[lakelog] object ResolveTableStatements extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case StatementOnTable(ResolvedTable(_, _, table: LakeTable, _), statement) => RunOnTable(table.itself, statement)
      case StatementOnTable(resolved: ResolvedTable, _) => throw Failures.unsupported(
          s"${resolved.table.name} is not a lakelog table: this statement is for lakelog tables only.")
    }
  }
}

private[lakelog] case class RunOnTable(table: LakeTable, statement: TableStatement) extends LakeCommand {
  override def run(session: SparkSession): Seq[Row] = {
    statement.run(table)
    Nil
  }
}
