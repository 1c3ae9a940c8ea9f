package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.wire

/** A function that a user has created, as Python keeps it. */
private[lakelog] final class StoredFunction(
    val catalog: String, val name: FunctionIdentifier, val ident: Identifier, val definition: wire.FunctionDefinition) {

  def isSql: Boolean = definition.language == "sql"

  /** Whether it is a function of SQL that gives a table. */
  def isTable: Boolean = isSql && definition.isTable

  /** The text of a function of SQL, the class of one of Java. */
  def body: String = definition.body
}
