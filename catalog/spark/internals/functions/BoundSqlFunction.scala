package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, UnresolvedFunction, UnresolvedRelation, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.catalog.SQLFunction
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, UnresolvedWith}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.lakelog.internals.seam.CopiedSqlFunction
import org.apache.spark.sql.lakelog.internals.statements.LakeNames

/**
 * A function of SQL whose body's names are those of the catalog and namespace of its creation, wherever it is used.
 *
 * Spark itself looks for them where the session is when the function is used, unless the body has a path of its own,
 * which is asked for names of one part only. So it is given one, and names of more parts are given the catalog.
 */
private[lakelog] final class BoundSqlFunction(function: SQLFunction, catalog: String) extends CopiedSqlFunction(function) {

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
