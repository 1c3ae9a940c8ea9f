package org.apache.spark.sql.lakelog.internals.seam

import java.util.{Map => JMap}

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, Identifier, TableCatalog}
import org.apache.spark.sql.types.StructType

/** What a view depends on. */
private[lakelog] sealed trait Dependency
private[lakelog] final case class TableDependency(nameParts: Array[String]) extends Dependency
private[lakelog] final case class FunctionDependency(nameParts: Array[String]) extends Dependency

/** A view of a catalog. */
private[lakelog] final class View(
    val columns: Array[Column], val properties: JMap[String, String], val queryText: String,
    val currentCatalog: String, val currentNamespace: Array[String], val sqlConfigs: JMap[String, String],
    val schemaMode: String, val queryColumnNames: Array[String], val dependencies: Option[Seq[Dependency]]) {

  val schema: StructType = CatalogV2Util.v2ColumnsToStructType(columns)
}

/** A catalog in which tables and views have their names in common. lakelog's session extension asks it for views. */
private[lakelog] trait RelationCatalog extends TableCatalog {
  def loadRelation(ident: Identifier): Relation
  def listRelationSummaries(names: Array[String]): Array[TableSummary]
  def listViews(names: Array[String]): Array[Identifier]
  def viewExists(ident: Identifier): Boolean
  def createView(ident: Identifier, view: View): View
  def replaceView(ident: Identifier, view: View): View
  def createOrReplaceView(ident: Identifier, view: View): View
  def dropView(ident: Identifier): Boolean
  def renameView(from: Identifier, to: Identifier): Unit
}

/** Makes views of a catalog, and reads them. */
private[lakelog] object Views {

  def view(
      columns: Array[Column], properties: JMap[String, String], text: String, catalog: String, namespace: Array[String],
      configs: JMap[String, String], queryColumns: Array[String], schemaMode: Option[String],
      dependencies: Option[Seq[Dependency]]): View =
    new View(columns, properties, text, catalog, namespace, configs, schemaMode.orNull, queryColumns, dependencies)

  def dependencies(view: View): Option[Seq[Dependency]] = view.dependencies

  def table(parts: Array[String]): Dependency = TableDependency(parts)

  def function(parts: Array[String]): Dependency = FunctionDependency(parts)

  /** The whole name of a view in a plan: its namespace is a single text, in which names are quoted if needed. */
  def name(view: CatalogTable): Seq[String] = {
    val names = view.identifier.database.toSeq.flatMap(CatalystSqlParser.parseMultipartIdentifier)
    view.identifier.catalog.toSeq ++ names :+ view.identifier.table
  }
}
