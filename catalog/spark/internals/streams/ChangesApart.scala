package org.apache.spark.sql.lakelog.internals.streams

import org.apache.spark.sql.lakelog.internals.seam.Changes
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.changes.LakeChangelog
import org.apache.spark.sql.lakelog.internals.SparkAbilities

/**
 * The changes of a table apart from the table itself, for a Spark that takes them for it.
 *
 * Spark 4.2 knows both by the table's name. If it looks at a DataFrame again, in a temporary view or as the rows of
 * a write, it finds the table under that name, without the columns that say what has changed, and fails. What was found
 * stays as it is, as in a DataFrame that is executed.
 */
private[lakelog] object ChangesApart extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = if (SparkAbilities.knowsChangesApart) plan
    else plan.resolveOperators {
      case relation: DataSourceV2Relation if relation.identifier.isDefined && isOfLake(relation) =>
        relation.copy(catalog = None, identifier = None)
    }
  }

  private def isOfLake(relation: DataSourceV2Relation): Boolean = relation match {
    case Changes.Read(_: LakeChangelog) => true
    case _ => false
  }
}
