package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.catalyst.analysis.{SQLFunctionExpression, SQLTableFunction}
import org.apache.spark.sql.catalyst.catalog.{SQLFunction, UserDefinedFunctionErrors}
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Cast, Expression, ExpressionInfo, NamedArgumentExpression, NamedLambdaVariable, UnresolvedNamedLambdaVariable}
import org.apache.spark.sql.catalyst.plans.logical.{FunctionSignature, InputParameter, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction
import org.apache.spark.sql.lakelog.internals.seam.{Functions, Names}
import org.apache.spark.sql.lakelog.wire

/** How Spark sees functions that users have created: what its own catalog makes of such definitions, made here too. */
private[lakelog] object FunctionInternals {

  private def parser = SparkSession.active.sessionState.sqlParser

  /** The function as Spark resolves calls of it. */
  def unbound(stored: StoredFunction): UnboundFunction =
    if (!stored.isSql) ClassFunctions.unbound(stored)
    else {
      val function = sqlFunction(stored)
      FunctionsInUse.note(stored, function)
      Functions.unbound(FunctionInfo.of(stored), if (function.isTableFunc) notScalar(function) else scalar(function))
    }

  private def notScalar(function: SQLFunction): Seq[Expression] => Expression =
    _ => throw UserDefinedFunctionErrors.notAScalarFunction(function.name.nameParts)

  private def scalar(function: SQLFunction): Seq[Expression] => Expression = arguments => {
    val isInLambda = arguments.exists(_.exists {
      case _: NamedLambdaVariable | _: UnresolvedNamedLambdaVariable => true
      case _ => false
    })
    if (isInLambda) throw Functions.refusedInLambda(function.name.unquotedString)
    SQLFunctionExpression(
      function.name.unquotedString, function, arranged(function, arguments), Some(function.getScalarFuncReturnType))
  }

  /** A call of a function that gives a table. Its body is put in its place by Spark. */
  def table(stored: StoredFunction, arguments: Seq[Expression]): LogicalPlan = {
    val function = sqlFunction(stored)
    FunctionsInUse.note(stored, function)
    val output = function.getTableFuncReturnCols.fields.toSeq.map { column =>
      AttributeReference(column.name, column.dataType, column.nullable)()
    }
    SQLTableFunction(function.name.unquotedString, function, arranged(function, arguments), output)
  }

  /** Arguments in the order of the parameters. */
  private def arranged(function: SQLFunction, arguments: Seq[Expression]): Seq[Expression] =
    if (!arguments.exists(_.isInstanceOf[NamedArgumentExpression])) arguments
    else {
      val parameters = function.inputParam.toSeq.flatten.map { parameter =>
        val default = parameter.getDefault().map(SQLFunction.parseDefault(_, parser)).map(Cast(_, parameter.dataType))
        InputParameter(parameter.name, default)
      }
      Names.arranged(FunctionSignature(parameters), arguments, function.name.toString)
    }

  def sqlFunction(stored: StoredFunction): SQLFunction = {
    val path = FunctionDefinitions.path(stored.definition, stored.catalog)
    val function = Functions.ofInfo(FunctionInfo.of(stored), parser)
    val names = if (Functions.hasPath(function)) Map.empty[String, String] else Functions.path(path)
    val properties = function.properties ++ names ++
      SQLFunction.catalogAndNamespaceToProps(path.head, path.tail) ++
      SQLFunction.referredTempNamesToProps(Nil, Nil, Nil)
    new BoundSqlFunction(function.copy(name = stored.name, properties = properties), path)
  }

  /** What is stored for a function that has just been analysed. */
  def definition(function: SQLFunction, catalog: String): wire.FunctionDefinition = {
    val manager = SparkSession.active.sessionState.catalogManager
    val written = wire.Json.read[Map[String, String]](function.toExpressionInfo.getUsage)
    FunctionDefinitions.toStored(written, manager.currentCatalog.name +: manager.currentNamespace.toSeq, catalog)
  }

  /** DESCRIBE FUNCTION of what is not in Spark's own catalog. */
  def describing(function: ExpressionInfo, isExtended: Boolean): LogicalPlan =
    Functions.describing(function, isExtended, parser)
}
