package org.apache.spark.sql.lakelog.functions

import org.apache.spark.sql.{AnalysisException, Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, UnresolvedFunctionName, UnresolvedIdentifier}
import org.apache.spark.sql.catalyst.plans.logical.{CreateFunction, CreateUserDefinedFunction, DescribeFunction, DropFunction, LogicalPlan, RefreshFunction}
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.ErrorInternals
import org.apache.spark.sql.lakelog.internals.functions.{FunctionDefinitions, FunctionInternals, SqlFunctionAnalysis}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeCommand, LakeNames}

/**
 * The statements about functions that Spark has for its session catalog only, as commands on a lakelog catalog.
 *
 * A statement is left to Spark unless its name leads into a lakelog catalog by Spark's own rules.
 */
private[lakelog] object FunctionStatements extends EarlyRewrite {

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case statement: CreateUserDefinedFunction => InLake.unapply(statement.child).fold[LogicalPlan](statement) {
        case (catalog, ident) => CreateSqlFunction(catalog, ident, statement)
      }
    case CreateFunction(InLake(catalog, ident), className, resources, ifNotExists, replace) =>
      val files = resources.map(resource => resource.resourceType.resourceType -> resource.uri)
      CreateClassFunction(catalog, ident, className, files, ifNotExists, replace)
    case DropFunction(Persistent(InLake(catalog, ident)), ifExists) => DropLakeFunction(catalog, ident, ifExists)
    case RefreshFunction(Persistent(InLake(catalog, ident))) => RefreshLakeFunction(catalog, ident)
    case DescribeFunction(Persistent(InLake(catalog, ident)), isExtended) if catalog.functionExists(ident) =>
      FunctionInternals.describing(catalog.describedFunction(ident), isExtended)
  }

  private object InLake {
    def unapply(name: LogicalPlan): Option[(LakeFunctions, Identifier)] = name match {
      case UnresolvedIdentifier(parts, _) => LakeFunctions.find(parts)
      case name: UnresolvedFunctionName => LakeFunctions.find(name.multipartIdentifier)
      case _ => None
    }
  }

  /** A name of one part that is a built-in or temporary function of Spark's is that first. */
  private object Persistent {
    def unapply(name: LogicalPlan): Option[LogicalPlan] = {
      val parts = name match {
        case UnresolvedIdentifier(parts, _) => parts
        case name: UnresolvedFunctionName => name.multipartIdentifier
        case _ => Nil
      }
      if (parts.length == 1 && LakeNames.isFunctionOfSpark(parts.head)) None else Some(name)
    }
  }
}

/** A statement about one function. */
private[lakelog] trait FunctionCommand extends LakeCommand {
  def catalog: LakeFunctions
  def ident: Identifier
  override def simpleString(maxFields: Int): String = s"$nodeName ${catalog.functionName(ident)}"
}

private[lakelog] case class CreateSqlFunction(
    catalog: LakeFunctions, ident: Identifier, statement: CreateUserDefinedFunction) extends FunctionCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val name = catalog.functionName(ident)
    // As Spark has it: a function of SQL does not take the place of a class.
    if (statement.replace && catalog.stored(ident).exists(!_.isSql)) {
      throw new AnalysisException(
        errorClass = "USER_DEFINED_FUNCTIONS.CANNOT_REPLACE_NON_SQL_UDF_WITH_SQL_UDF",
        messageParameters = Map("name" -> s"$name"))
    }
    val function = new SqlFunctionAnalysis(statement, catalog.name, name).result
    val definition = FunctionInternals.definition(function, catalog.name)
    catalog.createFunction(ident, definition, statement.replace, statement.ignoreIfExists)
    Nil
  }
}

private[lakelog] case class CreateClassFunction(
    catalog: LakeFunctions, ident: Identifier, className: String, files: Seq[(String, String)], ifNotExists: Boolean,
    replace: Boolean) extends FunctionCommand {

  override def run(session: SparkSession): Seq[Row] = {
    catalog.createFunction(ident, FunctionDefinitions.ofClass(className, files), replace, ifNotExists)
    Nil
  }
}

private[lakelog] case class DropLakeFunction(catalog: LakeFunctions, ident: Identifier, ifExists: Boolean)
  extends FunctionCommand {

  override def run(session: SparkSession): Seq[Row] = {
    if (catalog.transform(ident).isDefined) throw ErrorInternals.builtinFunctionIsNotDropped(ident.name)
    if (!catalog.dropFunction(ident) && !ifExists) {
      if (ident.namespace.nonEmpty && !catalog.namespaceExists(ident.namespace)) {
        throw new NoSuchNamespaceException(catalog.name +: ident.namespace)
      }
      throw ErrorInternals.noSuchRoutine(catalog.functionParts(ident))
    }
    Nil
  }
}

/** A function is looked up whenever it is used, so that there is nothing to be refreshed. */
private[lakelog] case class RefreshLakeFunction(catalog: LakeFunctions, ident: Identifier) extends FunctionCommand {

  override def run(session: SparkSession): Seq[Row] = {
    if (!catalog.functionExists(ident)) throw ErrorInternals.noSuchRoutine(catalog.functionParts(ident))
    Nil
  }
}
