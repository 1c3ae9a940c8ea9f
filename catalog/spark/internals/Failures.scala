package org.apache.spark.sql.lakelog.internals

import scala.annotation.tailrec

import org.apache.spark.sql.catalyst.analysis.{FunctionAlreadyExistsException, NamespaceAlreadyExistsException, NoSuchNamespaceException, NoSuchTableException, NoSuchViewException, NonEmptyNamespaceException, TableAlreadyExistsException, ViewAlreadyExistsException}
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.execution.QueryExecutionException

/** An error that Python reported, before it is known which of Spark's own exceptions it becomes. */
private[lakelog] final class LakelogFailure(
    val kind: String, message: String, outcomeKnown: Boolean = false) extends RuntimeException(message) {

  /** Whether the commit that failed may have happened all the same: then its files must stay. */
  def outcomeUnknown: Boolean = !outcomeKnown
}

/** An error that is not in the statement: a conflict, a store that fails, a format from the future. */
private[lakelog] final class LakelogException(message: String, cause: Throwable)
  extends QueryExecutionException(message, cause)

/** Turns Python's errors into the exceptions that Spark and its users know, with the catalog's name in place. */
private[lakelog] final class Failures(catalog: String) {

  /** Runs `ask`, which is about the table `ident`. */
  def table[T](ident: Identifier)(ask: => T): T =
    try ask
    catch { case failure: LakelogFailure => throw ofTable(failure, ident) }

  /** Runs `ask`, which is about the view `ident`. */
  def view[T](ident: Identifier)(ask: => T): T =
    try ask
    catch { case failure: LakelogFailure => throw ofView(failure, ident) }

  /** Runs `ask`, which is about the namespace. */
  def namespace[T](names: Array[String])(ask: => T): T =
    try ask
    catch { case failure: LakelogFailure => throw ofNamespace(failure, names) }

  /** Runs `ask`, which is about the function `ident`. */
  def function[T](ident: Identifier)(ask: => T): T =
    try ask
    catch { case failure: LakelogFailure => throw ofFunction(failure, ident) }

  /** Runs `ask`, whose message alone names its subject. */
  def procedure[T](ask: => T): T =
    try ask
    catch { case failure: LakelogFailure => throw plain(failure) }

  def ofTable(failure: LakelogFailure, ident: Identifier): Throwable = {
    val name = parts(ident.namespace :+ ident.name)
    failure.kind match {
      case "no-such-table" | "log-sealed" => new NoSuchTableException(name)
      case _ if Failures.isTaken(failure) => new TableAlreadyExistsException(name)
      case _ => ofNamespace(failure, ident.namespace)
    }
  }

  def ofView(failure: LakelogFailure, ident: Identifier): Throwable = {
    val parameters = Map("relationName" -> SchemaInternals.quoted(parts(ident.namespace :+ ident.name)))
    failure.kind match {
      case "no-such-view" => new NoSuchViewException("VIEW_NOT_FOUND", parameters)
      case _ if Failures.isTaken(failure) => new ViewAlreadyExistsException("VIEW_ALREADY_EXISTS", parameters)
      case _ => ofNamespace(failure, ident.namespace)
    }
  }

  private def ofFunction(failure: LakelogFailure, ident: Identifier): Throwable = failure.kind match {
    case "function-already-exists" => new FunctionAlreadyExistsException(parts(ident.namespace :+ ident.name))
    case _ => ofNamespace(failure, ident.namespace)
  }

  def ofNamespace(failure: LakelogFailure, names: Array[String]): Throwable = {
    val name = parts(names)
    failure.kind match {
      case "no-such-namespace" => new NoSuchNamespaceException(name.toArray)
      case "namespace-already-exists" => new NamespaceAlreadyExistsException(name.toArray)
      case "namespace-not-empty" => new NonEmptyNamespaceException(name.toArray)
      case _ => plain(failure)
    }
  }

  private def plain(failure: LakelogFailure): Throwable = failure.kind match {
    // PySpark cannot show an error of analysis that has a place in the statement, and no class of Spark's.
    case "unsupported" | "stored-code-refused" => Failures.unsupported(failure.getMessage)
    case "name-reassigned" => new LakelogException(failure.getMessage, failure)
    case "table-renamed" => ErrorInternals.analysisException(failure.getMessage, failure)
    case kind if Failures.OfStatement(kind) => Failures.invalid(failure.getMessage)
    case _ => new LakelogException(failure.getMessage, null)
  }

  private def parts(names: Array[String]): Seq[String] = catalog +: names.toSeq
}

private[lakelog] object Failures {

  /** The kinds that say that a statement cannot work as it stands. */
  private val OfStatement = Set(
    "invalid-input", "not-found", "already-exists", "no-such-table", "no-such-namespace", "no-such-column",
    "no-such-view", "no-such-function", "view-already-exists", "function-already-exists", "table-already-exists",
    "namespace-already-exists", "column-already-exists", "namespace-not-empty",
    "constraint-already-exists", "no-such-constraint", "multiple-primary-keys", "rows-unproven",
    "no-such-ref", "ref-already-exists", "no-such-warehouse", "clock-not-trusted", "source-diverged")

  /** The kinds that say that the name which was given leads to another table by now, or to none, and nothing was changed. */
  private val OfName = Set("table-renamed", "name-reassigned")

  /** Whether the error is of that kind, or was caused by one. */
  @tailrec
  def isOfName(error: Throwable): Boolean = error match {
    case null => false
    case failure: LakelogFailure => OfName(failure.kind) && !failure.outcomeUnknown
    case other => isOfName(other.getCause)
  }

  /** Whether the name of a table or view is another's already. */
  def isTaken(failure: LakelogFailure): Boolean = Set("table-already-exists", "view-already-exists")(failure.kind)

  /** Whether a rename failed for the new name: Spark has found the old one, and its namespace, just before. */
  def isOfTarget(failure: LakelogFailure): Boolean = isTaken(failure) || failure.kind == "no-such-namespace"

  /** A statement that can never work as it stands. */
  def invalid(message: String): Throwable = ErrorInternals.analysisException(message)

  /** Something that Spark can request and lakelog cannot do. */
  def unsupported(what: String): Throwable = new UnsupportedOperationException(what)
}
