package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog, TableInfo}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** What Spark asks a catalog of tables for since version 4.2, and lakelog's session extension before. */
private[lakelog] trait NewerTableCatalog extends TableCatalog {
  def loadChangelog(ident: Identifier, context: ChangelogContext, options: CaseInsensitiveStringMap): Changelog
  def createTableLike(ident: Identifier, info: TableInfo, source: Table): Table
}
