package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.catalog.{CatalogFunction, SessionCatalog, SQLFunction, UserDefinedFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.CreateUserDefinedFunction
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, UnboundFunction}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType}

/** A function of SQL, to be changed by what extends it. */
private[lakelog] abstract class CopiedSqlFunction(function: SQLFunction) extends SQLFunction(
    function.name, function.inputParam, function.returnType, function.exprText, function.queryText, function.comment,
    function.deterministic, function.containsSQL, function.isTableFunc, function.properties, function.owner,
    function.createTimeMs)

/** A function whose calls are replaced by what `builder` makes of their arguments, as newer Sparks do by themselves. */
private[lakelog] final class BuiltFunction(val info: ExpressionInfo, val builder: Seq[Expression] => Expression)
  extends UnboundFunction {
  override def name: String = info.getName
  override def description: String = info.getUsage
  override def bind(arguments: StructType): BoundFunction = throw new UnsupportedOperationException(
    s"It is called with lakelog's session extension only: start the session with it in spark.sql.extensions.")
}

/** Functions of SQL, and where Spark looks for functions. */
private[lakelog] object Functions {

  /** Spark's own names for the places of built-in and temporary functions. */
  val SystemNamespaces: Seq[String] = Seq("builtin", CatalogManager.SESSION_NAMESPACE)

  def isBuiltin(catalog: SessionCatalog, name: String): Boolean = catalog.isBuiltinFunction(FunctionIdentifier(name))

  /** Marks the column that stands for a parameter of a function while its body is analysed. */
  val ParameterKey: Option[String] = None

  /** Whether names of one part in a body are looked up by a path that the function keeps. */
  val keepPaths: Boolean = false

  def unbound(info: ExpressionInfo, builder: Seq[Expression] => Expression): UnboundFunction =
    new BuiltFunction(info, builder)

  def ofInfo(info: ExpressionInfo, parser: ParserInterface): SQLFunction = {
    val stored = UserDefinedFunction.mapper.readValue(info.getUsage, classOf[Map[String, String]])
    val name = FunctionIdentifier(info.getName, Option(info.getDb))
    SQLFunction.fromCatalogFunction(
      CatalogFunction(name, info.getClassName, UserDefinedFunction.propertiesToFunctionResources(stored, name)), parser)
  }

  def hasPath(function: SQLFunction): Boolean = false

  /** The function that a statement states, without types and settings. */
  def stated(
      statement: CreateUserDefinedFunction, name: FunctionIdentifier, parameters: Option[StructType],
      returns: Either[DataType, StructType]): SQLFunction = SQLFunction(
    name, parameters, returns, statement.exprText, statement.queryText, statement.comment, statement.isDeterministic,
    statement.containsSQL, statement.isTableFunc, Map.empty)

  def parameters(statement: CreateUserDefinedFunction, parser: ParserInterface): Option[StructType] =
    statement.inputParamText.map(UserDefinedFunction.parseRoutineParam(_, parser))

  def returns(statement: CreateUserDefinedFunction, parser: ParserInterface): Option[Either[DataType, StructType]] =
    SQLFunction.parseReturnTypeText(statement.returnTypeText, statement.isTableFunc, parser)

  /** The type that a function with such a body gives. */
  def returned(body: DataType, statement: CreateUserDefinedFunction): DataType = body

  /** The properties by which a function has this path: here it has none. */
  def path(catalogAndNamespace: Seq[String]): Map[String, String] = Map.empty

  /** The properties by which a function keeps the path of its session. */
  def pathOf(manager: CatalogManager, conf: SQLConf): Map[String, String] = Map.empty

  /** The namespaces in which a function of one part is looked for, with their catalogs. */
  def places(manager: CatalogManager): Seq[Seq[String]] = {
    val context = AnalysisContext.get.catalogAndNamespace
    val own = if (context.isEmpty) manager.currentCatalog.name +: manager.currentNamespace.toSeq else context
    SystemNamespaces.map(Seq(CatalogManager.SYSTEM_CATALOG_NAME, _)) :+ own
  }
}
