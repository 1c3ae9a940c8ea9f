package org.apache.spark.sql.lakelog

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** Shows the columns of views with the lengths of their texts, which queries of a view do not see in its types. */
private[lakelog] object DescribedViews extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case named @ ResolvedPersistentView(catalog, _, view)
          if LakeCatalog.of(catalog).isDefined && SchemaInternals.withCharVarchar(view.schema) != view.schema =>
        named.copy(info = ViewDefinitions.declared(view, catalog.name))
    }
  }
}
