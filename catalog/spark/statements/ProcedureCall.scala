package org.apache.spark.sql.lakelog.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.names.Locations

/** A statement that is carried out as the CALL of a procedure. */
private[lakelog] object ProcedureCall {

  /** Calls a procedure with these arguments, each in SQL. */
  def apply(session: SparkSession, catalog: String, procedure: String, arguments: Seq[(String, String)]): Unit =
    session.sql(
      s"CALL ${SchemaInternals.quoted(Seq(catalog))}.system.$procedure(" +
        arguments.map { case (name, value) => s"$name => $value" }.mkString(", ") + ")")

  /** The name or place of a table, as an argument. */
  def name(ident: Identifier): String = literal(
    if (Locations.isPath(ident)) s"`${ident.name.replace("`", "``")}`"
    else SchemaInternals.quoted(ident.namespace.toSeq :+ ident.name))

  def literal(text: String): String = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
}
