package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.connector.catalog.CatalogV2Util
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.internals.seam.{ChangelogTable, Changes}
import org.apache.spark.sql.lakelog.internals.statements.LakeNames

/** Finds the tables whose changes a statement reads. */
private[lakelog] object ChangesFound extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.ChangesFound"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case changes @ Changes.Named(named, asked) =>
        LakeNames.tableCatalog(ViewPlans.whole(named.multipartIdentifier)).fold[LogicalPlan](changes) {
          case (catalog, ident) =>
            val table = new ChangelogTable(Changes.load(catalog, ident, asked, named.options))
            val relation = if (named.isStreaming) {
              val output = DataTypeUtils.toAttributes(CatalogV2Util.v2ColumnsToStructType(table.columns))
              StreamingRelationV2(None, table.name, table, named.options, output, Some(catalog), Some(ident), None)
            } else DataSourceV2Relation.create(table, None, None, named.options)
            SubqueryAlias(catalog.name +: ident.namespace.toSeq :+ ident.name, relation)
        }
    }
  }
}
