package org.apache.spark.sql.lakelog.views

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{SchemaEvolution, SchemaTypeEvolution}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan, View}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.names.EntranceNames

/**
 * Lets a view that was made WITH SCHEMA EVOLUTION or TYPE EVOLUTION have the columns that its query has now.
 *
 * If they are others than the catalog says, Spark itself writes them into the session catalog, whichever catalog the view
 * is of: that fails if no view of that name is there, and spoils the one that is. So Spark sees them as the
 * same, and nothing is written: a reader changes no catalog.
 */
private[lakelog] final class EvolvingViews(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = AnalysisHelper.allowInvokingTransformsInAnalyzer {
    plan.transformUpWithSubqueries {
      case view: View if evolves(view) && view.child.resolved && view.desc.schema != view.child.schema =>
        view.copy(desc = view.desc.copy(schema = view.child.schema))
    }
  }

  private def evolves(view: View): Boolean = !view.isTempView && isOfLake(view.desc) && (
    view.desc.viewSchemaMode match {
      case SchemaEvolution | SchemaTypeEvolution => true
      case _ => false
    })

  private def isOfLake(view: CatalogTable): Boolean = view.identifier.catalog.exists { name =>
    Try(spark.sessionState.catalogManager.catalog(name)).toOption.exists(_.isInstanceOf[CatalogAccess])
  }
}

private[lakelog] object EvolvingViews {

  /** Refuses a view that evolves in a session where Spark would spoil the session catalog for it. */
  def check(mode: Option[String], name: => String): Unit =
    if (mode.exists(_.endsWith("EVOLUTION")) && !EntranceNames.hasExtension) throw Failures.unsupported(
      s"The view $name is made WITH SCHEMA ${mode.get}, which needs lakelog's session extension: start the session with " +
        s"spark.sql.extensions=${EntranceNames.Extensions}.")
}
