package org.apache.spark.sql.lakelog.show

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.connector.catalog.{Column, Identifier, TableCapability, TableCatalog}
import org.apache.spark.sql.lakelog.internals.{LakelogException, StatementInternals}
import org.apache.spark.sql.lakelog.internals.seam.{NewerTable, Relation}

/**
 * A table that cannot be read, in a list of tables: it is there, and its comment says what is the matter with it.
 *
 * All statements but lists fail with what is the matter.
 */
private[lakelog] final class UnreadableTable(ident: Identifier, why: Throwable) extends NewerTable {
  override def name: String = ident.name
  override def columns: Array[Column] = Array.empty
  override def properties: JMap[String, String] =
    JMap.of(TableCatalog.PROP_COMMENT, s"cannot be read: ${why.getMessage}")
  override def capabilities: JSet[TableCapability] = JSet.of()
}

private[lakelog] object UnreadableTable {

  /** What `load` gives; while tables are only listed, a table that cannot be read is one of them all the same. */
  def orElse(ident: Identifier)(load: => Relation): Relation =
    try load
    catch {
      case why: LakelogException if StatementInternals.isShowingTables => new UnreadableTable(ident, why)
    }
}
