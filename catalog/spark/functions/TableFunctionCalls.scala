package org.apache.spark.sql.lakelog.functions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{UnresolvedLeafNode, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SupportsSubquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.ErrorInternals
import org.apache.spark.sql.lakelog.internals.functions.{FunctionInternals, StoredFunction}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}

/**
 * Calls of functions that give a table, in FROM: Spark looks for those in its own catalog only, and refuses all others
 * while it resolves functions. So they are taken out of its sight before.
 */
private[lakelog] object TableFunctionCalls extends EarlyRewrite {

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case call @ UnresolvedTableValuedFunction(name, arguments, false) => found(name) match {
        case Some(function) => LakeTableCall(function, arguments)
        case None => call
      }
  }

  /** The function, if it is in a lakelog catalog. None leaves the call to Spark. */
  private def found(name: Seq[String]): Option[StoredFunction] =
    if (name.length == 1 && LakeNames.isFunctionOfSpark(name.head)) None
    else {
      val places = LakeNames.functionPlaces(name).flatMap(LakeFunctions.among(_))
      val functions = places.iterator.flatMap { case (catalog, ident) => lookUp(catalog, ident) }
      // Spark would say that the catalog has no such functions at all.
      if (places.isEmpty) None else functions.nextOption().orElse(throw ErrorInternals.noTableFunction(name))
    }

  /** Whether a user has created a table function that a call of this name means. */
  def isCreated(name: Seq[String]): Boolean = LakeNames.functionPlaces(name).flatMap(LakeFunctions.among(_)).exists {
    case (catalog, ident) => catalog.toRun(ident).exists(_.isTable)
  }

  private def lookUp(catalog: LakeFunctions, ident: Identifier): Option[StoredFunction] =
    catalog.toRun(ident) match {
      case Some(function) if function.isTable => Some(function)
      case None if catalog.transform(ident).isEmpty => None
      case _ => throw ErrorInternals.notTableFunction(catalog.functionName(ident))
    }
}

/** A call whose arguments are not resolved yet. */
private[lakelog] case class LakeTableCall(function: StoredFunction, arguments: Seq[Expression])
  extends UnresolvedLeafNode with SupportsSubquery

/** Puts Spark's own call of a table function in the place of ours, once its arguments are resolved. */
private[lakelog] object ResolveTableFunctionCalls extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.ResolveTableFunctionCalls"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case LakeTableCall(function, arguments) if arguments.forall(_.resolved) =>
        FunctionInternals.table(function, arguments)
    }
  }
}
