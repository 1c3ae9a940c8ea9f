package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo
import org.apache.spark.sql.lakelog.wire

private[lakelog] object FunctionInfo {

  /** What DESCRIBE FUNCTION shows of it. */
  def of(stored: StoredFunction): ExpressionInfo =
    if (stored.isSql) {
      val written = wire.Json.written(FunctionDefinitions.toSpark(stored.definition))
      // By this class Spark knows a function of SQL, whose usage is what is written.
      of(stored.name, "sqlFunction.", written)
    } else of(stored.name, stored.body, null)

  /** The name has no namespace of its own, or Spark would take the function for one of its session catalog. */
  def of(name: FunctionIdentifier, className: String, usage: String): ExpressionInfo =
    new ExpressionInfo(className, null, name.unquotedString, usage, "", "", "", "", "", "", "hive")
}
