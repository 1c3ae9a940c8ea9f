package org.apache.spark.sql.lakelog.procedures

import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.JobInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.DataType

/** Computes a table's statistics in the way of ANALYZE TABLE … FOR COLUMNS. */
private[lakelog] object StatisticsJob {

  def run(job: wire.ComputeStatistics, catalog: String): wire.StatisticsResult = {
    val name = SchemaInternals.quoted(catalog +: job.table)
    val plan = PlanInternals.ofTable(name)
    val table = ProcedureTables.of(name, plan)
    val columns = job.columns.map(column =>
      plan.output.find(_.name == column).getOrElse(
        throw Failures.invalid(s"There is no column $column in $name.")))
    val (rows, found) = JobInternals.statistics(plan, columns)
    wire.StatisticsResult(
      table.facts.version, table.facts.id, rows,
      columns.map(column => computed(column.name, found(column), column.dataType)))
  }

  private def computed(name: String, stat: ColumnStat, dataType: DataType): wire.ColumnComputed = wire.ColumnComputed(
    name, stat.distinctCount.map(_.toLong), stat.nullCount.map(_.toLong),
    stat.min.map(Predicates.encode(_, dataType)), stat.max.map(Predicates.encode(_, dataType)), stat.avgLen, stat.maxLen)
}
