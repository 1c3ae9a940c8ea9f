package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.catalyst.expressions.{Cast, Coalesce, Concat, Expression, If, Literal, RaiseError}
import org.apache.spark.sql.types.{BooleanType, StringType}

/** Conditions that rows are held against. */
private[lakelog] object Checks {

  /** Whether Spark holds the rows of a write against the CHECKs of its table. */
  val areHeldBySpark: Boolean = false

  /** True for a row for which the condition is not false; else an error that names the values of the columns. */
  def invariant(condition: Expression, columns: Seq[(String, Expression)], name: String, sql: String): Expression = {
    def text(words: String): Expression = Literal.create(words, StringType)
    val values = columns.flatMap { case (column, value) =>
      Seq(text(s"\n - $column : "), Coalesce(Seq(Cast(value, StringType), text("null"))))
    }
    val message = Concat(
      text(s"[CHECK_CONSTRAINT_VIOLATION] CHECK constraint $name $sql violated by row with values:") +: values)
    If(
      Coalesce(Seq(condition, Literal.TrueLiteral)), Literal.TrueLiteral,
      Cast(new RaiseError(message), BooleanType))
  }

  def isInvariant(expression: Expression): Boolean = expression.isInstanceOf[RaiseError]
}
