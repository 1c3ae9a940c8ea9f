package org.apache.spark.sql.lakelog.internals.shows

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{DescribeColumn, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.catalogs.LakeCatalogs
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.views.ViewDefinitions

/** Shows the columns of views with the lengths of their texts, which queries of a view do not see in its types. */
private[lakelog] object DescribedViews extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case named @ ResolvedPersistentView(catalog, _, view)
          if LakeCatalogs.of(catalog).isDefined && SchemaInternals.withCharVarchar(view.schema) != view.schema =>
        named.copy(info = ViewDefinitions.declared(view, catalog.name))
      // Spark may have resolved the column before the view got these types, which makes other columns of the same names.
      case described @ DescribeColumn(view: ResolvedPersistentView, column: Attribute, _, _)
          if LakeCatalogs.of(view.catalog).isDefined && !view.outputSet.contains(column) =>
        described.copy(column = view.output.find(_.name == column.name).getOrElse(column))
    }
  }
}
