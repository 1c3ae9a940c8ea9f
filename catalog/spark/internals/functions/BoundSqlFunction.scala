package org.apache.spark.sql.lakelog.internals.functions

import java.util.Locale

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, TableFunctionRegistry, UnresolvedFunction, UnresolvedRelation, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.catalog.SQLFunction
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, UnresolvedWith}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.lakelog.internals.seam.{CopiedSqlFunction, Functions}
import org.apache.spark.sql.lakelog.internals.statements.LakeNames

/**
 * A function of SQL whose body's names are those of the catalog and namespace of its creation, wherever it is used.
 *
 * Spark itself looks for them where the session is when the function is used. In some Sparks a body can have a path of
 * its own, which is asked for names of one part only: then it is given one, and names of more parts are given the
 * catalog. In others names of one part are given the catalog and the namespace, except for those that the body defines.
 */
private[lakelog] final class BoundSqlFunction(function: SQLFunction, place: Seq[String])
  extends CopiedSqlFunction(function) {

  override def getExpressionAndQuery(
      parser: ParserInterface, isTableFunc: Boolean): (Option[Expression], Option[LogicalPlan]) = {
    val (expression, query) = super.getExpressionAndQuery(parser, isTableFunc)
    (expression.map(inPlace(_, Set.empty)), query.map(inPlace(_, Set.empty)))
  }

  /** The plan, in which `known` are the names that the body defines around it. */
  private def inPlace(plan: LogicalPlan, known: Set[String]): LogicalPlan = plan match {
    case tables: UnresolvedWith =>
      val (relations, all) = tables.cteRelations.foldLeft((tables.cteRelations.take(0), known)) {
        case ((done, names), relation) =>
          val defined = relation.copy(_2 = inPlace(relation._2, names).asInstanceOf[SubqueryAlias])
          (done :+ defined, names + relation._1.toLowerCase(Locale.ROOT))
      }
      tables.copy(child = inPlace(tables.child, all), cteRelations = relations)
    case other =>
      val named = other match {
        case relation: UnresolvedRelation if !isKnown(relation.multipartIdentifier, known) =>
          relation.copy(multipartIdentifier = inPlace(relation.multipartIdentifier))
        case call: UnresolvedTableValuedFunction
            if !(call.name.length == 1 && isTableFunctionOfSpark(call.name.head)) =>
          call.copy(name = inPlace(call.name))
        case named: PlanWithUnresolvedIdentifier =>
          named.copy(planBuilder = (name, children) => inPlace(named.planBuilder(name, children), known))
        case rest => rest
      }
      named.mapChildren(inPlace(_, known)).transformExpressions(expressionInPlace(known))
  }

  private def inPlace(expression: Expression, known: Set[String]): Expression =
    expression.transformDown(expressionInPlace(known))

  private def expressionInPlace(known: Set[String]): PartialFunction[Expression, Expression] = {
    case call: UnresolvedFunction
        if !(call.nameParts.length == 1 && LakeNames.isFunctionOfSpark(call.nameParts.head)) =>
      call.copy(nameParts = inPlace(call.nameParts))
    case subquery: SubqueryExpression => subquery.withNewPlan(inPlace(subquery.plan, known))
  }

  private def isKnown(name: Seq[String], known: Set[String]): Boolean =
    name.length == 1 && known(name.head.toLowerCase(Locale.ROOT))

  private def isTableFunctionOfSpark(name: String): Boolean =
    TableFunctionRegistry.builtin.functionExists(FunctionIdentifier(name))

  private def inPlace(name: Seq[String]): Seq[String] =
    if (name.length == 1) { if (Functions.keepPaths) name else place ++ name }
    else {
      val manager = SparkSession.active.sessionState.catalogManager
      if (LakeNames.isOfSystem(name) || manager.isCatalogRegistered(name.head)) name else place.head +: name
    }
}
