package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.catalog.UserDefinedFunctionErrors
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.catalyst.util.QuotingUtils
import org.apache.spark.sql.errors.{DataTypeErrors, QueryCompilationErrors}
import org.apache.spark.sql.lakelog.internals.seam.Errors

/** Errors that Spark has for its own catalogs, for the same mistakes. */
private[lakelog] object ErrorInternals {

  /** An error of analysis that is in none of Spark's error classes. */
  def analysisException(message: String, cause: Throwable = null): AnalysisException =
    Errors.analysis(message, Option(cause))

  def externalTableWithoutLocation: Throwable = QueryCompilationErrors.createExternalTableWithoutLocationError()

  /** The root of a catalog stays, as Spark's own `default` does. */
  def rootIsNotDropped(catalog: String): Throwable =
    QueryCompilationErrors.cannotDropDefaultDatabaseError(Seq(catalog))

  def viewOnTable(name: Seq[String]): Throwable = viewNeeded(name, "CREATE OR REPLACE VIEW")

  def viewNotTable(name: Seq[String], operation: String): Throwable = new AnalysisException(
    errorClass = "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
    messageParameters = Map("viewName" -> SchemaInternals.quoted(name), "operation" -> operation))

  def viewNeeded(name: Seq[String], operation: String): Throwable = new AnalysisException(
    errorClass = "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
    messageParameters = Map("tableName" -> SchemaInternals.quoted(name), "operation" -> operation))

  def noSuchView(name: Seq[String]): Throwable = new AnalysisException(
    errorClass = "VIEW_NOT_FOUND", messageParameters = Map("relationName" -> SchemaInternals.quoted(name)))

  // ---- columns and constraints

  /** A column that is not there, as a query that names it fails. */
  def unresolvedColumn(name: Seq[String], columns: Array[String]): Throwable =
    QueryCompilationErrors.unresolvedColumnError(name, columns, CurrentOrigin.get)

  def multiplePrimaryKeys(columns: Seq[String]): Throwable = new AnalysisException(
    errorClass = "MULTIPLE_PRIMARY_KEYS", messageParameters = Map("columns" -> columns.mkString(", ")))

  def constraintExists(name: String): Throwable = new AnalysisException(
    errorClass = "CONSTRAINT_ALREADY_EXISTS", messageParameters = Map("constraintName" -> name, "oldConstraint" -> name))

  def checkViolated(condition: String, table: String): Throwable =
    Errors.checkViolated(condition, table)

  // ---- functions and procedures

  def noSuchRoutine(name: Seq[String]): AnalysisException =
    new AnalysisException("ROUTINE_NOT_FOUND", Map("routineName" -> name.map(QuotingUtils.quoteIdentifier).mkString(".")))

  /** The same, with what there is instead. */
  def noSuchRoutine(name: Seq[String], instead: String): AnalysisException = {
    val routine = name.map(QuotingUtils.quoteIdentifier).mkString(".")
    Errors.analysis(
      s"[ROUTINE_NOT_FOUND] The routine $routine cannot be found: $instead.",
      condition = Some("ROUTINE_NOT_FOUND"), parameters = Map("routineName" -> routine))
  }

  def noTableFunction(name: Seq[String]): Throwable = new AnalysisException(
    errorClass = "UNRESOLVABLE_TABLE_VALUED_FUNCTION", messageParameters = Map("name" -> DataTypeErrors.toSQLId(name)),
    origin = CurrentOrigin.get)

  def notTableFunction(name: FunctionIdentifier): Throwable = UserDefinedFunctionErrors.notATableFunction(name.nameParts)

  def builtinFunctionIsNotDropped(name: String): Throwable = QueryCompilationErrors.cannotDropBuiltinFuncError(name)
}
