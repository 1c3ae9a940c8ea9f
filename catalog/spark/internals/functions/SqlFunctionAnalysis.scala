package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{Analyzer, SQLScalarFunction, UnresolvedAlias, UnresolvedAttribute, UnresolvedFunction, UnresolvedRelation}
import org.apache.spark.sql.catalyst.catalog.{LanguageSQL, SQLFunction, UserDefinedFunctionErrors}
import org.apache.spark.sql.catalyst.expressions.{Alias, Cast, Expression, Generator, LateralSubquery, Literal, ScalarSubquery, SubqueryExpression, WindowExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{CreateUserDefinedFunction, LateralJoin, LocalRelation, LogicalPlan, OneRowRelation, Project, Range, SQLFunctionNode, UnresolvedWith, View}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.command.{CreateUserDefinedFunctionCommand, ViewHelper}
import org.apache.spark.sql.lakelog.internals.seam.{Functions, Names}
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.types.{DataType, MetadataBuilder, StructField, StructType}

/**
 * What CREATE FUNCTION … RETURN makes of its words: the function with the types that its body has, or one of the
 * errors that Spark has for its own catalog.
 */
private[lakelog] final class SqlFunctionAnalysis(
    statement: CreateUserDefinedFunction, catalog: String, name: FunctionIdentifier) {

  private val session = SparkSession.active
  private val parser = session.sessionState.sqlParser
  private val sessionCatalog = session.sessionState.catalog
  private def analyzer: Analyzer = session.sessionState.analyzer

  def result: SQLFunction = {
    if (statement.language != LanguageSQL) {
      throw UserDefinedFunctionErrors.unsupportedUserDefinedFunction(statement.language)
    }
    val parameters = Functions.parameters(statement, parser)
    val returns = Functions.returns(statement, parser)
    val stated = Functions.stated(
      statement, name, parameters, returns.getOrElse(if (statement.isTableFunc) Right(null) else Left(null)))
    parameters.foreach(check)
    val input = arguments(parameters)
    val (unresolved, analyzed, types) =
      if (statement.isTableFunc) table(stated, returns.map(_.toOption.get), input)
      else scalar(stated, returns.map(_.swap.toOption.get), input)
    refuseTemporary(unresolved, analyzed)
    val reads = readsData(analyzed)
    if (statement.containsSQL.contains(true) && reads) {
      throw new AnalysisException(errorClass = "INVALID_SQL_FUNCTION_DATA_ACCESS", messageParameters = Map.empty)
    }
    stated.copy(
      returnType = types,
      deterministic = Some(stated.deterministic.getOrElse(analyzed.deterministic)),
      containsSQL = Some(stated.containsSQL.getOrElse(!reads)),
      properties = settings)
  }

  private def check(parameters: StructType): Unit = {
    CreateUserDefinedFunctionCommand.checkParameterNotNull(parameters, statement.inputParamText.get)
    CreateUserDefinedFunctionCommand.checkParameterNameDuplication(parameters, SettingInternals.conf, name)
    CreateUserDefinedFunctionCommand.checkDefaultsTrailing(parameters, name)
  }

  // ---- what stands for the arguments of a call

  private def arguments(parameters: Option[StructType]): LogicalPlan = parameters match {
    case None => OneRowRelation()
    case Some(fields) =>
      val metadata = Functions.ParameterKey.filter(_ => !statement.isTableFunc)
        .map(new MetadataBuilder().putBoolean(_, true).build())
      Project(fields.map { field =>
          Alias(argument(field), field.name)(qualifier = Seq(name.funcName), explicitMetadata = metadata)
        }, OneRowRelation())
  }

  private def argument(field: StructField): Expression = field.getDefault() match {
    case None => Literal.create(null, field.dataType)
    case Some(text) =>
      val default = SQLFunction.parseDefault(text, parser)
      if (SubqueryExpression.hasSubquery(default)) {
        throw new AnalysisException(
          errorClass = "USER_DEFINED_FUNCTIONS.NOT_A_VALID_DEFAULT_EXPRESSION",
          messageParameters = Map("functionName" -> name.funcName, "parameterName" -> field.name))
      }
      default.foreach {
        case column: UnresolvedAttribute => throw QueryCompilationErrors.unresolvedAttributeError(
            "UNRESOLVED_COLUMN", column.sql, Nil, column.origin)
        case _ =>
      }
      Cast(default, field.dataType)
  }

  // ---- the two kinds of bodies

  private type Analyzed = (LogicalPlan, LogicalPlan, Either[DataType, StructType])

  private def scalar(function: SQLFunction, returns: Option[DataType], input: LogicalPlan): Analyzed = {
    val (expression, query) = function.getExpressionAndQuery(parser, isTableFunc = false)
    val body = query.map(ScalarSubquery(_)).orElse(expression).get
    val plan = Project(Seq(Alias(returns.map(Cast(body, _)).getOrElse(body), name.funcName)()), input)
    val analyzed = analyze(function, plan)
    val types = analyzed match {
      case Project(Seq(result), _) if result.resolved =>
        Left(Functions.returned(result.dataType, statement))
      case _ => function.returnType
    }
    if (analyzed.resolved) analyzed.transformAllExpressions {
      case _: WindowExpression | _: Generator | _: AggregateExpression => throw new AnalysisException(
          errorClass = "USER_DEFINED_FUNCTIONS.CANNOT_CONTAIN_COMPLEX_FUNCTIONS",
          messageParameters = Map("queryText" -> function.exprText.orElse(function.queryText).get))
    }
    analyzer.checkAnalysis(SQLFunctionNode(function, analyzed))
    (plan, analyzed, types)
  }

  private def table(function: SQLFunction, returns: Option[StructType], input: LogicalPlan): Analyzed = {
    val (_, parsed) = function.getExpressionAndQuery(parser, isTableFunc = true)
    val query = parsed.getOrElse(throw UserDefinedFunctionErrors.bodyIsNotAQueryForSqlTableUdf(name.funcName))
    val plan = LateralJoin(input, LateralSubquery(query), Inner, None)
    val analyzed = analyze(function, plan)
    val body = analyzed.collectFirst { case join: LateralJoin => join.right.plan }.getOrElse(
      throw new IllegalStateException(s"Spark analyses the body of a table function as\n$analyzed"))
    analyzer.checkAnalysis(SQLFunctionNode(function, body))
    val columns = returns.getOrElse(inferred(query, body))
    CreateUserDefinedFunctionCommand.checkParameterNotNull(columns, statement.returnTypeText)
    CreateUserDefinedFunctionCommand.checkReturnsColumnDuplication(columns, SettingInternals.conf, name)
    if (body.output.size != columns.size) {
      throw new AnalysisException(
        errorClass = "USER_DEFINED_FUNCTIONS.RETURN_COLUMN_COUNT_MISMATCH",
        messageParameters = Map(
          "outputSize" -> s"${body.output.size}", "returnParamSize" -> s"${columns.size}", "name" -> s"$name"))
    }
    (plan, analyzed, Right(columns))
  }

  private def inferred(query: LogicalPlan, body: LogicalPlan): StructType = {
    query match {
      case Project(columns, _) if columns.exists(_.isInstanceOf[UnresolvedAlias]) =>
        throw UserDefinedFunctionErrors.missingColumnNamesForSqlTableUdf(name.funcName)
      case _ =>
    }
    StructType(body.output.map { column =>
      StructField(column.name, Functions.returned(column.dataType, statement))
    })
  }

  private def analyze(function: SQLFunction, plan: LogicalPlan): LogicalPlan =
    FunctionsInUse.refusingCycles(catalog, function)(analyzer.execute(plan))

  // ---- what a body may use, and what it was understood with

  /** What lives as long as a session cannot be in a function that lives longer. */
  private def refuseTemporary(unresolved: LogicalPlan, analyzed: LogicalPlan): Unit = {
    val own = name.asMultipart
    everywhere(unresolved) {
      case relation: UnresolvedRelation if sessionCatalog.isTempView(relation.multipartIdentifier) =>
        throw UserDefinedFunctionErrors.invalidTempViewReference(own, relation.multipartIdentifier)
      case _ =>
    } {
      case function: UnresolvedFunction if isTemporary(function.nameParts) =>
        throw UserDefinedFunctionErrors.invalidTempFuncReference(own, function.nameParts.last)
      case _ =>
    }
    ViewHelper.collectTemporaryVariables(analyzed).foreach { variable =>
      throw UserDefinedFunctionErrors.invalidTempVarReference(own, variable)
    }
  }

  private def isTemporary(function: Seq[String]): Boolean = {
    val isOfSession = function.init match {
      case Seq() | Seq(CatalogManager.SESSION_NAMESPACE) => true
      case Seq(CatalogManager.SYSTEM_CATALOG_NAME, CatalogManager.SESSION_NAMESPACE) => true
      case _ => false
    }
    isOfSession && sessionCatalog.isTemporaryFunction(FunctionIdentifier(function.last))
  }

  /** Visits the plan with its subqueries and common table expressions. */
  private def everywhere(plan: LogicalPlan)(node: LogicalPlan => Unit)(expression: Expression => Unit): Unit =
    plan.foreach { part =>
      node(part)
      part match {
        case named: UnresolvedWith => named.innerChildren.foreach {
            case inner: LogicalPlan => everywhere(inner)(node)(expression)
            case _ =>
          }
        case _ =>
      }
      part.expressions.foreach(_.foreach {
        case subquery: SubqueryExpression => everywhere(subquery.plan)(node)(expression)
        case other => expression(other)
      })
    }

  private def readsData(plan: LogicalPlan): Boolean = plan.exists {
    case _: View => true
    case leaf if leaf.children.isEmpty =>
      leaf match {
        case _: OneRowRelation | _: LocalRelation | _: Range => false
        case _ => true
      }
    case node: SQLFunctionNode => node.function.containsSQL.contains(false)
    case node => node.expressions.exists(_.exists {
        case call: SQLScalarFunction => call.function.containsSQL.contains(false)
        case subquery: SubqueryExpression => readsData(subquery.plan)
        case _ => false
      })
  }

  private def settings: Map[String, String] = {
    val conf = SettingInternals.conf
    Names.settings(conf) ++
      Functions.pathOf(session.sessionState.catalogManager, conf)
  }
}
