package org.apache.spark.sql.lakelog.functions

import java.util.Locale

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{FunctionAlreadyExistsException, NoSuchFunctionException}
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo
import org.apache.spark.sql.connector.catalog.{FunctionCatalog, Identifier}
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.expressions.TransformFunctions
import org.apache.spark.sql.lakelog.internals.SettingInternals
import org.apache.spark.sql.lakelog.internals.functions.{FunctionInfo, FunctionInternals, StoredFunction}
import org.apache.spark.sql.lakelog.internals.statements.LakeNames
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.wire

/**
 * The functions of a catalog: the partition transforms in its root, and those that users have created anywhere.
 *
 * What creates and drops them are statements of the session extension; Spark's interface has no methods for that. As in
 * Spark's own catalog, the names of functions are in small letters unless the session minds case.
 */
private[lakelog] trait LakeFunctions extends CatalogAccess with FunctionCatalog { self =>

  override def listFunctions(names: Array[String]): Array[Identifier] = {
    val transforms = if (names.isEmpty) TransformFunctions.names.map(Identifier.of(names, _)) else Nil
    val created = if (CatalogNames.isSystem(names)) Nil
    else failures.namespace(names) {
      ask(wire.ListFunctions(names.toSeq)).functions.map(CatalogNames.identifier)
    }
    (transforms ++ created).toArray
  }

  override def functionExists(ident: Identifier): Boolean = transform(ident).isDefined || stored(ident).isDefined

  /** Of SQL, or of one of Spark's older kinds, it is what Spark's own catalog would give. */
  override def loadFunction(ident: Identifier): UnboundFunction =
    transform(ident).getOrElse(
      FunctionInternals.unbound(toRun(ident).getOrElse(throw new NoSuchFunctionException(ident))))

  private[lakelog] def storedFunction(ident: Identifier): StoredFunction =
    stored(ident).getOrElse(throw new NoSuchFunctionException(ident))

  /** The function that a user has created, if there is one. */
  private[lakelog] def stored(ident: Identifier): Option[StoredFunction] = loaded(ident, runs = false)

  /** The same to be called, which the catalog's settings may forbid. */
  private[lakelog] def toRun(ident: Identifier): Option[StoredFunction] = loaded(ident, runs = true)

  private def loaded(ident: Identifier, runs: Boolean): Option[StoredFunction] = failures.function(ident) {
    ask(wire.LoadFunction(functionAt(ident), runs = runs)).function.map(new StoredFunction(self.name,
        functionName(ident), folded(ident), _))
  }

  /** What DESCRIBE FUNCTION shows. */
  private[lakelog] def describedFunction(ident: Identifier): ExpressionInfo = transform(ident) match {
    case Some(function) =>
      FunctionInfo.of(functionName(ident), function.getClass.getName, function.description)
    case None => FunctionInfo.of(storedFunction(ident))
  }

  private[lakelog] def createFunction(
      ident: Identifier, definition: wire.FunctionDefinition, replace: Boolean, ifNotExists: Boolean): Unit = {
    refuseSystem(ident.namespace)
    if (transform(ident).isDefined) {
      if (!ifNotExists) throw new FunctionAlreadyExistsException(functionParts(ident))
    } else failures.function(ident) {
      channel.changeOnce(wire.CreateFunction(
          functionAt(ident), definition = definition, orReplace = replace, ifNotExists = ifNotExists))
    }
  }

  /** Whether there was such a function. */
  private[lakelog] def dropFunction(ident: Identifier): Boolean = failures.function(ident) {
    channel.changeOnce(wire.DropFunction(functionAt(ident))).dropped
  }

  private[lakelog] def transform(ident: Identifier): Option[UnboundFunction] =
    Some(ident.name).filter(_ => ident.namespace.isEmpty).flatMap(TransformFunctions.named)

  /** As Spark's errors and DESCRIBE FUNCTION name it. Spark knows one namespace of a function; all of them are that. */
  private[lakelog] def functionName(ident: Identifier): FunctionIdentifier = {
    val name = folded(ident)
    if (name.namespace.isEmpty) FunctionIdentifier(name.name, Some(self.name))
    else FunctionIdentifier(name.name, Some(name.namespace.mkString(".")), Some(self.name))
  }

  private[lakelog] def functionParts(ident: Identifier): Seq[String] =
    (name +: ident.namespace.toSeq) :+ folded(ident).name

  private def folded(ident: Identifier): Identifier =
    if (SettingInternals.isCaseSensitive) ident
    else Identifier.of(ident.namespace, ident.name.toLowerCase(Locale.ROOT))

  private def functionAt(ident: Identifier): wire.FunctionRequest = wire.FunctionRequest(
    ident.namespace.toSeq :+ folded(ident).name, caseSensitive = SettingInternals.isCaseSensitive)
}

private[lakelog] object LakeFunctions {

  /** The lakelog catalog with the functions, and the name in it, of a name in a statement. */
  def find(parts: Seq[String]): Option[(LakeFunctions, Identifier)] = among(LakeNames.find(parts))

  /** The same, if it is one of those places where a function is looked for. */
  def among(place: Option[(CatalogAccess, Identifier)]): Option[(LakeFunctions, Identifier)] =
    place.collect { case (catalog: LakeFunctions, ident) => catalog -> ident }
}
