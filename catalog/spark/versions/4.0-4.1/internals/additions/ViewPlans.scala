package org.apache.spark.sql.lakelog.internals.additions

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, UnresolvedRelation}
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.seam.View
import org.apache.spark.sql.lakelog.internals.statements.LakeNames

/** Views of a catalog as Spark plans its own. */
private[lakelog] object ViewPlans {

  private def state = SparkSession.active.sessionState

  /** The lakelog catalog and the name in it that a name in a plan means, be it within another view. */
  def find(parts: Seq[String]): Option[(CatalogAccess, Identifier)] =
    if (isTemporary(parts)) None else LakeNames.find(whole(parts)).filter(_._2.namespace.nonEmpty)

  /** A name in a plan with what it leaves out, be it within another view. */
  def whole(parts: Seq[String]): Seq[String] = {
    val context = AnalysisContext.get.catalogAndNamespace
    if (context.isEmpty || state.catalogManager.isCatalogRegistered(parts.head)) parts
    else if (parts.length == 1) context ++ parts
    else context.head +: parts
  }

  /**
   * The plan of the view that a name in a plan means. Spark analyses its text at once, among the names of its creation: it
   * would be analysed among those around the view otherwise.
   */
  def analyzed(named: UnresolvedRelation, view: FoundView): LogicalPlan = {
    val key = (view.catalog.name +: view.ident.namespace.toSeq :+ view.ident.name, None)
    AnalysisContext.get.relationCache.update(key, plan(view.catalog, view.ident, view.view))
    // The rule passes over a node that it has seen in vain.
    state.analyzer.ResolveRelations(named.copy())
  }

  def isTemporary(parts: Seq[String]): Boolean = state.catalog.isTempView(parts)

  /** The plan of a view: Spark analyses its text among the names and with the settings of its creation. */
  def plan(catalog: CatalogAccess, ident: Identifier, view: View): LogicalPlan =
    state.catalog.getRelation(described(catalog, ident, view)) match {
      case SubqueryAlias(_, child) => SubqueryAlias(catalog.name +: ident.namespace.toSeq :+ ident.name, child)
      case other => other
    }

  /** A view as Spark's own catalog describes one. */
  def described(catalog: CatalogAccess, ident: Identifier, view: View): CatalogTable = {
    val properties = view.properties.asScala.toMap
    val queryColumns = Option(view.queryColumnNames).toSeq.flatten
    val output = if (queryColumns.isEmpty) Map.empty[String, String]
    else {
      queryColumns.zipWithIndex.map { case (name, i) =>
        s"${CatalogTable.VIEW_QUERY_OUTPUT_COLUMN_NAME_PREFIX}$i" -> name
      }.toMap + (CatalogTable.VIEW_QUERY_OUTPUT_NUM_COLUMNS -> queryColumns.length.toString)
    }
    val settings = view.sqlConfigs.asScala.map { case (key, value) =>
      s"${CatalogTable.VIEW_SQL_CONFIG_PREFIX}$key" -> value
    }
    CatalogTable(
      identifier = TableIdentifier(ident.name, Some(ident.namespace.quoted), Some(catalog.name)),
      tableType = CatalogTableType.VIEW,
      storage = CatalogStorageFormat.empty,
      schema = view.schema,
      comment = properties.get(TableCatalog.PROP_COMMENT),
      viewOriginalText = Some(view.queryText),
      viewText = Some(view.queryText),
      properties = properties ++ output ++ settings ++
        Option(view.schemaMode).map(CatalogTable.VIEW_SCHEMA_MODE -> _) ++
        CatalogTable.catalogAndNamespaceToProps(view.currentCatalog, Option(view.currentNamespace).toSeq.flatten))
  }
}
