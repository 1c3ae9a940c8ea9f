package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.CapturesConfig
import org.apache.spark.sql.catalyst.analysis.LiteralFunctionResolution
import org.apache.spark.sql.catalyst.catalog.UserDefinedFunction
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{NamedParameterContext, ParameterContext, ParseException, PositionalParameterContext}
import org.apache.spark.sql.catalyst.plans.logical.{FunctionSignature, NamedParametersSupport}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.internal.SQLConf

/** Errors that Spark has for its own catalogs. */
private[lakelog] object Errors {

  def analysis(
      message: String, cause: Option[Throwable] = None, condition: Option[String] = None,
      parameters: Map[String, String] = Map.empty): AnalysisException =
    new AnalysisException(message, None, None, cause, condition, parameters, Array.empty[QueryContext])

  def parse(text: Option[String], origin: Origin, condition: String, parameters: Map[String, String]): ParseException =
    new ParseException(text, origin, condition, parameters)

  def checkViolated(condition: String, table: String): Throwable =
    QueryExecutionErrors.newCheckViolation(condition, table)
}

/** What Spark's parser and its rules about names have. */
private[lakelog] object Names extends CapturesConfig {

  /** Whether a name without parentheses is a function, such as current_date. */
  def isFunction(name: Seq[String]): Boolean = LiteralFunctionResolution.resolve(name).isDefined

  /** Whether these are the parameters of a statement, and whether there are any; None for anything else. */
  def areParameters(argument: Any): Option[Boolean] = Some(argument).collect {
    case named: NamedParameterContext => named.params.nonEmpty
    case positional: PositionalParameterContext => positional.params.nonEmpty
    case _: ParameterContext => true
  }

  /** The settings of a session that a function keeps, as properties. */
  def settings(conf: SQLConf): Map[String, String] = sqlConfigsToProps(conf, UserDefinedFunction.SQL_CONFIG_PREFIX)

  def arranged(signature: FunctionSignature, arguments: Seq[Expression], function: String): Seq[Expression] =
    NamedParametersSupport.defaultRearrange(signature, arguments, function, SQLConf.get.resolver)
}
