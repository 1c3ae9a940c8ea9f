package org.apache.spark.sql.lakelog.show

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ShowTables}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess

/**
 * Hands the pattern of SHOW TABLES … LIKE down to the list, which Spark takes whole and then goes through: of a million
 * names that takes seconds, and hundreds of megabytes. Spark applies the pattern all the same.
 */
private[lakelog] object ShowsByPattern extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {

    override val ruleName: String = "lakelog.ShowsByPattern"

    // A plan with another object for the same catalog is equal to this one: if it is replaced inside, it would stay.
    override def apply(plan: LogicalPlan): LogicalPlan = plan match {
      case show @ ShowTables(namespace @ ResolvedNamespace(lake: CatalogAccess, _, _), Some(pattern), _)
          if lake.shown.isEmpty => show.copy(namespace = namespace.copy(catalog = lake.showing(pattern)))
      case other => other
    }
  }
}
