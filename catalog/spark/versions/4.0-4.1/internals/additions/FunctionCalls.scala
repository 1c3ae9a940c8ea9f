package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ExpressionWithUnresolvedIdentifier, UnresolvedException, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, Unevaluable}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction, Complete}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.lakelog.functions.LakeFunctions
import org.apache.spark.sql.lakelog.internals.seam.BuiltFunction
import org.apache.spark.sql.lakelog.internals.statements.LakeNames
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Calls of functions that users have created in a catalog, and that are expressions rather than classes of Spark's
 * interface for functions of catalogs. Spark refuses them while it resolves functions, so they are taken out of its
 * sight before.
 */
private[lakelog] object FunctionCalls extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.FunctionCalls"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveExpressions {
      case call: UnresolvedFunction => ofLake(call).getOrElse(call)
      case named @ ExpressionWithUnresolvedIdentifier(Literal(name: UTF8String, _), _, builder) =>
        builder(CatalystSqlParser.parseMultipartIdentifier(name.toString), named.otherExprs) match {
          case call: UnresolvedFunction => ofLake(call).getOrElse(named)
          case _ => named
        }
    }
  }

  private def ofLake(call: UnresolvedFunction): Option[Expression] =
    found(call.nameParts).map(LakeCall(call, _, call.arguments))

  private def found(name: Seq[String]): Option[BuiltFunction] =
    if (name.length == 1 && LakeNames.isFunctionOfSpark(name.head)) None
    else LakeNames.functionPlaces(name).flatMap(LakeFunctions.among(_)).find {
      case (catalog, ident) => catalog.functionExists(ident)
    }.map { case (catalog, ident) => catalog.loadFunction(ident) }.collect { case built: BuiltFunction => built }

  /** Puts what a function makes of its arguments in the place of its call, once they are resolved. */
  object Resolution extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "org.apache.spark.sql.lakelog.FunctionCalls.Resolution"

      override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveExpressions {
        case LakeCall(call, function, arguments) if arguments.forall(_.resolved) =>
          made(call, function.builder(arguments))
      }
    }
  }

  private def made(call: UnresolvedFunction, body: Expression): Expression = body match {
    case aggregate: AggregateFunction => AggregateExpression(aggregate, Complete, call.isDistinct, call.filter)
    case _ if call.isDistinct => throw refused(call, "DISTINCT")
    case _ if call.filter.isDefined => throw refused(call, "FILTER clause")
    case _ if call.ignoreNulls => throw refused(call, "IGNORE NULLS")
    case other => other
  }

  private def refused(call: UnresolvedFunction, words: String): Throwable =
    QueryCompilationErrors.functionWithUnsupportedSyntaxError(call.nameParts.mkString("."), words)
}

/** A call whose arguments are not resolved yet. */
private[lakelog] case class LakeCall(call: UnresolvedFunction, function: BuiltFunction, arguments: Seq[Expression])
  extends Expression with Unevaluable {

  override def children: Seq[Expression] = arguments
  override lazy val resolved: Boolean = false
  override def dataType: DataType = throw new UnresolvedException("dataType")
  override def nullable: Boolean = throw new UnresolvedException("nullable")
  override def prettyName: String = call.nameParts.mkString(".")
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): LakeCall =
    copy(arguments = newChildren)
}
