package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, UnresolvedFunction, UnresolvedRelation, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.catalog.{SQLFunction, UserDefinedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, UnresolvedWith}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.lakelog.internals.statements.LakeNames

/**
 * A function of SQL whose body's names are those of the catalog and namespace of its creation, wherever it is used.
 *
 * Spark itself looks for them where the session is when the function is used, unless the body has a path of its own,
 * which is asked for names of one part only. So it is given one, and names of more parts are given the catalog.
 */
private[lakelog] final class BoundSqlFunction(function: SQLFunction, catalog: String) extends SQLFunction(
    function.name, function.inputParam, function.returnType, function.exprText, function.queryText, function.comment,
    function.collation, function.deterministic, function.containsSQL, function.isTableFunc, function.properties,
    function.owner, function.createTimeMs) {

  override def getExpressionAndQuery(
      parser: ParserInterface, isTableFunc: Boolean): (Option[Expression], Option[LogicalPlan]) = {
    val (expression, query) = super.getExpressionAndQuery(parser, isTableFunc)
    (expression.map(inCatalog), query.map(inCatalog))
  }

  private def inCatalog(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case relation: UnresolvedRelation =>
      relation.copy(multipartIdentifier = inCatalog(relation.multipartIdentifier))
    case call: UnresolvedTableValuedFunction => call.copy(name = inCatalog(call.name))
    case named: PlanWithUnresolvedIdentifier =>
      named.copy(planBuilder = (name, children) => inCatalog(named.planBuilder(name, children)))
    case tables: UnresolvedWith => tables.copy(cteRelations = tables.cteRelations.map { table =>
        table.copy(_2 = inCatalog(table._2).asInstanceOf[SubqueryAlias])
      })
  }.transformAllExpressions(expressionInCatalog)

  private def inCatalog(expression: Expression): Expression = expression.transformDown(expressionInCatalog)

  private def expressionInCatalog: PartialFunction[Expression, Expression] = {
    case call: UnresolvedFunction => call.copy(nameParts = inCatalog(call.nameParts))
    case subquery: SubqueryExpression => subquery.withNewPlan(inCatalog(subquery.plan))
  }

  private def inCatalog(name: Seq[String]): Seq[String] = {
    val manager = SparkSession.active.sessionState.catalogManager
    if (name.length == 1 || LakeNames.isOfSystem(name) || manager.isCatalogRegistered(name.head)) name
    else catalog +: name
  }
}

private[lakelog] object BoundSqlFunction {

  /** What gives a body this path, as properties of the function: that, and the setting that makes Spark obey it. */
  def path(catalogAndNamespace: Seq[String]): Map[String, String] = {
    val entries = Seq(
      Seq(CatalogManager.SYSTEM_CATALOG_NAME, CatalogManager.BUILTIN_NAMESPACE),
      Seq(CatalogManager.SYSTEM_CATALOG_NAME, CatalogManager.SESSION_NAMESPACE),
      catalogAndNamespace)
    Map(
      SQLFunction.FUNCTION_RESOLUTION_PATH -> CatalogManager.serializePathEntries(entries),
      (UserDefinedFunction.SQL_CONFIG_PREFIX + SQLConf.PATH_ENABLED.key) -> "true")
  }
}
