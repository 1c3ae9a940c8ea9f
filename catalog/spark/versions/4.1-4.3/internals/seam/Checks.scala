package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.catalyst.expressions.{CheckInvariant, Expression}

/** Conditions that rows are held against. */
private[lakelog] object Checks {

  /** Whether Spark holds the rows of a write against the CHECKs of its table. */
  val areHeldBySpark: Boolean = true

  /** True for a row for which the condition is not false; else an error that names the values of the columns. */
  def invariant(condition: Expression, columns: Seq[(String, Expression)], name: String, sql: String): Expression =
    CheckInvariant(condition, columns, name, sql)

  def isInvariant(expression: Expression): Boolean = expression.isInstanceOf[CheckInvariant]
}
