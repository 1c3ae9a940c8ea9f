package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.{AnalyzeColumn, AnalyzeTable, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.statements.LakeCommand
import org.apache.spark.sql.lakelog.table.LakeTable

/** ANALYZE TABLE, which Spark has for its session catalog only, by the procedure compute_statistics. */
private[lakelog] object AnalyzeStatements extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case AnalyzeColumn(ResolvedTable(_, _, table: LakeTable, _), columns, _) => AnalyzeLakeTable(table, columns)
      case AnalyzeTable(ResolvedTable(_, _, table: LakeTable, _), partitions, _) if partitions.nonEmpty =>
        throw Failures.unsupported(
          s"Single partitions of ${table.name} cannot be analyzed: leave PARTITION out. Their numbers of files, rows and " +
            "bytes are always exact, see SHOW TABLE EXTENDED … PARTITION.")
      case AnalyzeTable(ResolvedTable(_, _, _: LakeTable, _), _, _) => AnalyzeNothing()
    }
  }
}

/** Counts the values of columns; None: of all that can be counted. */
private[lakelog] case class AnalyzeLakeTable(table: LakeTable, columns: Option[Seq[String]]) extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    table.refuseOnRef("ANALYZE TABLE")
    val wanted = columns.fold("NULL")(_.map(ProcedureCall.literal).mkString("array(", ", ", ")"))
    ProcedureCall(
      session, table.access.catalog, "compute_statistics",
      Seq("table" -> ProcedureCall.name(table.access.ident), "columns" -> wanted))
    Nil
  }
}

/** The numbers of rows and bytes of a table, which is all that is asked for, are exact in every version. */
private[lakelog] case class AnalyzeNothing() extends LakeCommand {
  override def run(session: SparkSession): Seq[Row] = Nil
}
