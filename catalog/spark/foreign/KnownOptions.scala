package org.apache.spark.sql.lakelog.foreign

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan, OverwriteByExpression, OverwritePartitionsDynamic}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.PlanInternals
import org.apache.spark.sql.lakelog.read.StreamOptions
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Refuses options that reads, writes and streams do not know when the statement is analysed, and not once its first task or
 * batch is planned.
 */
private[lakelog] object KnownOptions extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.KnownOptions"

    override def apply(plan: LogicalPlan): LogicalPlan = {
      plan.foreach {
        case PlanInternals.StreamedFrom(table: LakeTable, options) =>
          table.refuseUnknownInRead(options)
          StreamOptions.of(options, table)
        case PlanInternals.LoadedFrom(table: LakeTable, _, options) =>
          table.refuseUnknownInRead(options)
          StreamOptions.refuseInBatch(options)
        case write: AppendData => check(write.table, write.writeOptions)
        case write: OverwriteByExpression => check(write.table, write.writeOptions)
        case write: OverwritePartitionsDynamic => check(write.table, write.writeOptions)
        case _ =>
      }
      plan
    }
  }

  private def check(target: LogicalPlan, options: Map[String, String]): Unit = target match {
    case PlanInternals.TableOf(table: LakeTable) =>
      table.refuseUnknownInWrite(new CaseInsensitiveStringMap(options.asJava))
    case _ =>
  }
}
