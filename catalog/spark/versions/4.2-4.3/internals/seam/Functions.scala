package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.catalog.{SessionCatalog, SQLFunction, UserDefinedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{CreateUserDefinedFunction, LogicalPlan}
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction
import org.apache.spark.sql.execution.command.DescribeFunctionCommand
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.connector.V1Function
import org.apache.spark.sql.types.{DataType, StructType}

/** A function of SQL, to be changed by what extends it. */
private[lakelog] abstract class CopiedSqlFunction(function: SQLFunction) extends SQLFunction(
    function.name, function.inputParam, function.returnType, function.exprText, function.queryText, function.comment,
    function.collation, function.deterministic, function.containsSQL, function.isTableFunc, function.properties,
    function.owner, function.createTimeMs)

/** Functions of SQL, and where Spark looks for functions. */
private[lakelog] object Functions {

  /** Spark's own names for the places of built-in and temporary functions. */
  val SystemNamespaces: Seq[String] = Seq(CatalogManager.BUILTIN_NAMESPACE, CatalogManager.SESSION_NAMESPACE)

  def isBuiltin(catalog: SessionCatalog, name: String): Boolean = catalog.isBuiltinFunction(name)

  /** Marks the column that stands for a parameter of a function while its body is analysed. */
  val ParameterKey: Option[String] = Some(SessionCatalog.SQL_FUNCTION_PARAMETER_ALIAS_METADATA_KEY)

  /** Whether names of one part in a body are looked up by a path that the function keeps. */
  val keepPaths: Boolean = true

  def unbound(info: ExpressionInfo, builder: Seq[Expression] => Expression): UnboundFunction =
    V1Function(info, builder)

  /** DESCRIBE FUNCTION. */
  def describing(info: ExpressionInfo, isExtended: Boolean, parser: ParserInterface): LogicalPlan =
    DescribeFunctionCommand(info, isExtended)

  /** A function of SQL cannot be called with what a lambda function is given. */
  def refusedInLambda(name: String): Throwable = new AnalysisException(
    errorClass = "UNSUPPORTED_FEATURE.LAMBDA_FUNCTION_WITH_SQL_UDF", messageParameters = Map("funcName" -> name))

  def ofInfo(info: ExpressionInfo, parser: ParserInterface): SQLFunction = SQLFunction.fromExpressionInfo(info, parser)

  def hasPath(function: SQLFunction): Boolean = function.functionStoredResolutionPath.isDefined

  /** The function that a statement states, without types and settings. */
  def stated(
      statement: CreateUserDefinedFunction, name: FunctionIdentifier, parameters: Option[StructType],
      returns: Either[DataType, StructType]): SQLFunction = SQLFunction(
    name, parameters, returns, statement.exprText, statement.queryText, statement.comment, statement.collation,
    statement.isDeterministic, statement.containsSQL, statement.isTableFunc, Map.empty)

  def parameters(statement: CreateUserDefinedFunction, parser: ParserInterface): Option[StructType] =
    statement.inputParamText.map(UserDefinedFunction.parseRoutineParam(_, parser, statement.collation))

  def returns(statement: CreateUserDefinedFunction, parser: ParserInterface): Option[Either[DataType, StructType]] =
    SQLFunction.parseReturnTypeText(statement.returnTypeText, statement.isTableFunc, parser, statement.collation)

  /** The type that a function with such a body gives. */
  def returned(body: DataType, statement: CreateUserDefinedFunction): DataType =
    UserDefinedFunction.resolveReturnType(body, statement.collation)

  /** The properties by which a function has this path: the path, and the setting that makes Spark obey it. */
  def path(catalogAndNamespace: Seq[String]): Map[String, String] =
    stored(SystemNamespaces.map(Seq(CatalogManager.SYSTEM_CATALOG_NAME, _)) :+ catalogAndNamespace) +
      ((UserDefinedFunction.SQL_CONFIG_PREFIX + SQLConf.PATH_ENABLED.key) -> "true")

  /** The properties by which a function keeps the path of its session. */
  def pathOf(manager: CatalogManager, conf: SQLConf): Map[String, String] = {
    val path = CatalogManager.pathEntriesForPersistence(manager, conf, true)
    if (path.isEmpty) Map.empty else stored(path)
  }

  private def stored(path: Seq[Seq[String]]): Map[String, String] =
    Map(SQLFunction.FUNCTION_RESOLUTION_PATH -> CatalogManager.serializePathEntries(path))

  /** The namespaces in which a function of one part is looked for, with their catalogs. */
  def places(manager: CatalogManager): Seq[Seq[String]] = {
    val context = AnalysisContext.get
    manager.resolutionPathEntriesForAnalysis(context.resolutionPathEntries, context.catalogAndNamespace)
  }
}
