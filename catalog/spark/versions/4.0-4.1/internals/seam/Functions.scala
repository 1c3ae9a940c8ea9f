package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.catalog.{CatalogFunction, SessionCatalog, SQLFunction, UserDefinedFunction}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{CreateUserDefinedFunction, LogicalPlan}
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, UnboundFunction}
import org.apache.spark.sql.execution.command.{DescribeFunctionCommand, LeafRunnableCommand}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StringType, StructType}

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

/** What DESCRIBE FUNCTION shows of a function of SQL, as newer Sparks do. */
private[lakelog] final case class DescribeSqlFunction(function: SQLFunction, isExtended: Boolean)
  extends LeafRunnableCommand {

  override val output: Seq[Attribute] = Seq(AttributeReference("function_desc", StringType, nullable = false)())

  override def run(session: SparkSession): Seq[Row] = {
    val returns = function.returnType match {
      case Left(dataType) => Seq(dataType.sql)
      case Right(columns) => fields(columns)
    }
    val facts = Seq(
      "Function" -> Seq(function.name.unquotedString),
      "Type" -> Seq(if (function.isTableFunc) "TABLE" else "SCALAR"),
      "Input" -> function.inputParam.fold(Seq("()"))(fields),
      "Returns" -> returns)
    val more = if (!isExtended) Nil
    else Seq(
      "Comment" -> function.comment.toSeq,
      "Deterministic" -> function.deterministic.map(_.toString).toSeq,
      "Data Access" -> function.containsSQL.map(if (_) "CONTAINS SQL" else "READS SQL DATA").toSeq,
      "Configs" -> settings,
      "Body" -> function.exprText.orElse(function.queryText).toSeq)
    val shown = facts ++ more.filter(_._2.nonEmpty)
    val width = shown.map(_._1.length).max + 2
    shown.flatMap { case (name, lines) =>
      lines.zipWithIndex.map { case (line, i) => Row((if (i == 0) s"$name:" else "").padTo(width, ' ') + line) }
    }
  }

  private def settings: Seq[String] = function.properties.toSeq.collect {
    case (key, value) if key.startsWith(UserDefinedFunction.SQL_CONFIG_PREFIX) =>
      s"${key.stripPrefix(UserDefinedFunction.SQL_CONFIG_PREFIX)}=$value"
  }.sorted

  private def fields(schema: StructType): Seq[String] = {
    val width = schema.fieldNames.map(_.length).maxOption.getOrElse(0)
    schema.fields.toSeq.map { field =>
      val more = if (!isExtended) Nil
      else field.getDefault().map(text => s"DEFAULT $text") ++ field.getComment().map(text => s"'$text'")
      (Seq(field.name.padTo(width, ' '), field.dataType.sql) ++ more).mkString(" ")
    }
  }
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

  /** DESCRIBE FUNCTION. Of a function of SQL, Spark itself shows here what is stored. */
  def describing(info: ExpressionInfo, isExtended: Boolean, parser: ParserInterface): LogicalPlan =
    if (SQLFunction.isSQLFunction(info.getClassName)) DescribeSqlFunction(ofInfo(info, parser), isExtended)
    else DescribeFunctionCommand(info, isExtended)

  /** A function of SQL cannot be called with what a lambda function is given. */
  def refusedInLambda(name: String): Throwable =
    Errors.analysis(s"The function $name is one of SQL, and a lambda function calls it: write its body in its place.")

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
