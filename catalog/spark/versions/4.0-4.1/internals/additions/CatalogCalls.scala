package org.apache.spark.sql.lakelog.internals.additions

import scala.util.matching.Regex

import org.antlr.v4.runtime.Token

import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, UnresolvedFunction, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.parser.{CatalystSqlParser, SqlBaseParser}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, UnresolvedWith}
import org.apache.spark.sql.lakelog.internals.SqlTokens

/**
 * Calls in FROM of functions whose names have several parts, which this Spark's parser refuses. It is given a name of one part,
 * in which the others are.
 */
private[lakelog] object CatalogCalls {
  import SqlBaseParser._

  private val Mark = "lakelog: "
  private val Replaced: Regex = s"`$Mark((?:[^`]|``)*)`".r
  private val Before = Set(FROM, JOIN, COMMA, LATERAL, USING)

  private final case class Word(kind: Int, start: Int, end: Int)

  /** Marked names in the place of those behind which a parenthesis opens, and which may be in FROM. */
  def replacements(text: String): Seq[Replacement] = {
    val words = SqlTokens.of(text)((_, token) => word(text, token))
    words.indices.flatMap { at =>
      if (!Before(words(at).kind)) None
      else {
        val dots = Iterator.iterate(at + 2)(_ + 2).takeWhile(words.lift(_).exists(_.kind == DOT)).length
        val last = at + 1 + 2 * dots
        if (dots < 1 || !words.lift(last + 1).exists(_.kind == LEFT_PAREN)) None
        else {
          val (start, end) = (words(at + 1).start, words(last).end)
          Some(Replacement(start, end, s"`$Mark${text.substring(start, end).replace("`", "``")}`"))
        }
      }
    }
  }

  private def word(text: String, token: Token): Word = Word(
    token.getType, text.offsetByCodePoints(0, token.getStartIndex), text.offsetByCodePoints(0, token.getStopIndex + 1))

  /** The text as it was written. */
  def restored(text: String): String =
    Replaced.replaceAllIn(text, found => Regex.quoteReplacement(found.group(1).replace("``", "`")))

  /** The plan with names as they were written. */
  def restored(plan: LogicalPlan): LogicalPlan = plan match {
    case tables: UnresolvedWith =>
      val relations = tables.cteRelations.map(relation =>
        relation.copy(_2 = restored(relation._2).asInstanceOf[SubqueryAlias]))
      tables.copy(child = restored(tables.child), cteRelations = relations)
    case other =>
      val named = other match {
        case call: UnresolvedTableValuedFunction => call.copy(name = nameParts(call.name))
        case named: PlanWithUnresolvedIdentifier =>
          named.copy(planBuilder = (name, children) => restored(named.planBuilder(name, children)))
        case rest => rest
      }
      named.mapChildren(restored(_: LogicalPlan)).transformExpressions(inExpression)
  }

  def restored(expression: Expression): Expression = expression.transformDown(inExpression)

  private val inExpression: PartialFunction[Expression, Expression] = {
    case call: UnresolvedFunction => call.copy(nameParts = nameParts(call.nameParts))
    case query: SubqueryExpression => query.withNewPlan(restored(query.plan))
  }

  private def nameParts(name: Seq[String]): Seq[String] = name match {
    case Seq(single) if single.startsWith(Mark) =>
      CatalystSqlParser.parseMultipartIdentifier(single.stripPrefix(Mark))
    case other => other
  }
}
