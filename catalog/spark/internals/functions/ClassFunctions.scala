package org.apache.spark.sql.lakelog.internals.functions

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.catalyst.catalog.{FunctionExpressionBuilder, FunctionResource, FunctionResourceType}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, UnboundFunction}
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.hive.HiveUDFExpressionBuilder
import org.apache.spark.sql.internal.SparkUDFExpressionBuilder
import org.apache.spark.sql.lakelog.internals.seam.Functions
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/**
 * Functions that are classes: of Spark's interface for functions of catalogs (`UnboundFunction`, or a `BoundFunction`
 * that takes one kind of arguments only), or what Spark's own catalog takes (UDFs, UDAFs and UDTFs of Hive's, and
 * `UserDefinedAggregateFunction`).
 */
private[lakelog] object ClassFunctions {

  /** The class is not looked for before the function is used, as in Spark's own catalog. */
  def unbound(stored: StoredFunction): UnboundFunction = {
    load(stored.definition.resources)
    if (!Utils.classIsLoadable(stored.body)) missing(stored)
    else {
      val found = Utils.classForName[AnyRef](stored.body)
      if (classOf[UnboundFunction].isAssignableFrom(found)) {
        instance[UnboundFunction](found).getOrElse(missing(stored))
      } else if (classOf[BoundFunction].isAssignableFrom(found)) {
        instance[BoundFunction](found).map(new OnlyFunction(_)).getOrElse(missing(stored))
      } else Functions.unbound(
        FunctionInfo.of(stored),
        (arguments: Seq[Expression]) => builder(found).makeExpression(stored.name.unquotedString, found, arguments))
    }
  }

  private def missing(stored: StoredFunction): UnboundFunction = Functions.unbound(
    FunctionInfo.of(stored),
    (_: Seq[Expression]) =>
      throw QueryCompilationErrors.cannotLoadClassWhenRegisteringFunctionError(stored.body, stored.name))

  /** None if there is no constructor without parameters. */
  private def instance[T](found: Class[_]): Option[T] =
    Try(found.getDeclaredConstructor()).toOption.map(_.newInstance().asInstanceOf[T])

  /** Hive's kinds can be there only if Spark was built with Hive; it has no words for a class of no kind. */
  private def builder(found: Class[_]): FunctionExpressionBuilder = {
    val isOfHive = Iterator.iterate[Class[_]](found)(_.getSuperclass).takeWhile(_ != null)
      .exists(_.getName.startsWith("org.apache.hadoop.hive.ql."))
    if (isOfHive) HiveUDFExpressionBuilder else new SparkUDFExpressionBuilder
  }

  /** The files of functions that a session has loaded, each with its kind. */
  private val loadedFiles = new ProcessState.Slot(() => mutable.Set.empty[(String, String)])

  /** Gives the session the files of a function, once. */
  private def load(resources: Seq[(String, String)]): Unit = {
    val session = SparkSession.active
    val known = ProcessState.ofSession(session)(loadedFiles)
    known.synchronized {
      resources.filterNot(known.contains).foreach { case file @ (kind, url) =>
        val resource = FunctionResource(FunctionResourceType.fromString(kind), url)
        session.sessionState.catalog.loadFunctionResources(Seq(resource))
        known.add(file)
      }
    }
  }
}

/** A class that is bound already: Spark casts the arguments to the types that it takes. */
private final class OnlyFunction(function: BoundFunction) extends UnboundFunction {
  override def name: String = function.name
  override def description: String = function.canonicalName
  override def bind(arguments: StructType): BoundFunction = {
    if (arguments.length != function.inputTypes.length) {
      throw new UnsupportedOperationException(
        s"It takes ${function.inputTypes.length} arguments: ${function.inputTypes.map(_.sql).mkString(", ")}.")
    }
    function
  }
}
