package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.catalog.{Identifier, StagedTable, StagingTableCatalog, Table, TableCatalog}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** What Spark asks a catalog of tables for since version 4.1 or 4.2, and lakelog's session extension before. */
private[lakelog] trait NewerTableCatalog extends TableCatalog {
  def loadChangelog(ident: Identifier, context: ChangelogContext, options: CaseInsensitiveStringMap): Changelog
  def listTableSummaries(names: Array[String]): Array[TableSummary]
  def createTable(ident: Identifier, info: TableInfo): Table
  def listProcedures(names: Array[String]): Array[Identifier]
  def createTableLike(ident: Identifier, info: TableInfo, source: Table): Table
}

/** The same for tables that are made together with their rows. */
private[lakelog] trait NewerStagingCatalog extends StagingTableCatalog {
  def stageCreate(ident: Identifier, info: TableInfo): StagedTable
  def stageReplace(ident: Identifier, info: TableInfo): StagedTable
  def stageCreateOrReplace(ident: Identifier, info: TableInfo): StagedTable
}
