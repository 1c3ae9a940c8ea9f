package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.table.{LakeTable, PhysicalSchema}

/**
 * Keeps the columns that a relation was analysed with.
 *
 * Before it executes a DataFrame, Spark loads its tables again. Spark 4.1 compares their columns by names and types only, so it
 * would read another column that has got the name since.
 */
private[lakelog] object ColumnsAsAnalysed extends (SparkSession => Rule[LogicalPlan]) {

  private val Columns = TreeNodeTag[PhysicalSchema]("lakelog.columns")

  private object OfLake {
    def unapply(plan: LogicalPlan): Option[(DataSourceV2Relation, LakeTable)] = plan match {
      case relation: DataSourceV2Relation => Some(relation.table).collect { case table: LakeTable => (relation, table) }
      case _ => None
    }
  }

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.ColumnsAsAnalysed"

    override def apply(plan: LogicalPlan): LogicalPlan = {
      plan.foreach {
        case OfLake(relation, table) if relation.getTagValue(Columns).isEmpty =>
          relation.setTagValue(Columns, table.physical)
        case _ =>
      }
      plan
    }
  }

  /** Refuses to read another column. */
  object Check extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "org.apache.spark.sql.lakelog.ColumnsAsAnalysed.Check"

      override def apply(plan: LogicalPlan): LogicalPlan = {
        plan.foreach {
          case OfLake(relation, table) =>
            for (before <- relation.getTagValue(Columns); column <- table.physical.renewedSince(before)) {
              throw QueryCompilationErrors.columnsChangedAfterAnalysis(table.name,
                Seq(s"`$column` column ID has changed"))
            }
          case _ =>
        }
        plan
      }
    }
  }
}
