package org.apache.spark.sql.lakelog.internals.shows

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ShowCreateTable}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources.v2.{ShowCreateTableExec, V2CommandExec}
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.unsafe.types.UTF8String

/**
 * SHOW CREATE TABLE as Spark prints it, with what it leaves out: how values are generated or made, and by what rows are
 * ordered.
 */
private[lakelog] object ShowCreateTables extends (SparkSession => SparkStrategy) {

  override def apply(session: SparkSession): SparkStrategy = new SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case ShowCreateTable(resolved @ ResolvedTable(_, _, table: LakeTable, _), false, output) =>
        Seq(ShowCreateLakeTableExec(output, resolved, table))
      case _ => Nil
    }
  }
}

private[lakelog] case class ShowCreateLakeTableExec(output: Seq[Attribute], resolved: ResolvedTable, table: LakeTable)
  extends V2CommandExec with LeafExecNode {

  override protected def run(): Seq[InternalRow] = {
    table.refuseOnRef("SHOW CREATE TABLE")
    val marked = new MarkedTable(table)
    val printed = ShowCreateTableExec(output, resolved.copy(table = marked)).executeCollect().head.getString(0)
    Seq(InternalRow(UTF8String.fromString(marked.replaced(printed) + marked.order(resolved.name))))
  }
}
