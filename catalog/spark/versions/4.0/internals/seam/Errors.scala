package org.apache.spark.sql.lakelog.internals.seam

import java.util.Locale

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{FunctionSignature, NamedParametersSupport}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.execution.command.CreateUserDefinedFunctionCommand
import org.apache.spark.sql.internal.SQLConf

/** An error of analysis with a text of its own: only a class of this kind may have one. */
private final class PlainAnalysisException(
    text: String, reason: Option[Throwable], condition: Option[String], parameters: Map[String, String])
  extends AnalysisException(text, None, None, reason, condition, parameters, Array.empty[QueryContext])

/** Errors that Spark has for its own catalogs. */
private[lakelog] object Errors {

  def analysis(
      message: String, cause: Option[Throwable] = None, condition: Option[String] = None,
      parameters: Map[String, String] = Map.empty): AnalysisException =
    new PlainAnalysisException(message, cause, condition, parameters)

  def parse(text: Option[String], origin: Origin, condition: String, parameters: Map[String, String]): ParseException =
    new ParseException(text, origin, origin, condition, parameters)

  def checkViolated(condition: String, table: String): Throwable =
    Errors.analysis(s"A row of $table does not match the condition $condition.")
}

/** What Spark's parser and its rules about names have. */
private[lakelog] object Names {

  private val functions = Set(
    "current_date", "current_timestamp", "localtimestamp", "current_user", "user", "session_user", "grouping__id")

  /** Whether a name without parentheses is a function, such as current_date. */
  def isFunction(name: Seq[String]): Boolean =
    name.length == 1 && functions(name.head.toLowerCase(Locale.ROOT))

  /** Whether these are the parameters of a statement, and whether there are any: here its parser knows of none. */
  def areParameters(argument: Any): Option[Boolean] = None

  /** The settings of a session that a function keeps, as properties. */
  def settings(conf: SQLConf): Map[String, String] =
    CreateUserDefinedFunctionCommand.sqlConfigsToProps(conf)

  def arranged(signature: FunctionSignature, arguments: Seq[Expression], function: String): Seq[Expression] =
    NamedParametersSupport.defaultRearrange(signature, arguments, function)
}
