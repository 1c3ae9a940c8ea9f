package org.apache.spark.sql.lakelog.internals.seam

import java.util.{Map => JMap}

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{Column, Dependency, DependencyList, View}

/** Makes views of a catalog, and reads them. */
private[lakelog] object Views {

  def view(
      columns: Array[Column], properties: JMap[String, String], text: String, catalog: String, namespace: Array[String],
      configs: JMap[String, String], queryColumns: Array[String], schemaMode: Option[String],
      dependencies: Option[Seq[Dependency]]): View = {
    val builder = new View.Builder()
      .withColumns(columns)
      .withProperties(properties)
      .withQueryText(text)
      .withCurrentNamespace(namespace)
      .withSqlConfigs(configs)
      .withQueryColumnNames(queryColumns)
      .withCurrentCatalog(catalog)
    schemaMode.foreach(builder.withSchemaMode)
    dependencies.foreach(used => builder.withViewDependencies(new DependencyList(used.toArray)))
    builder.build()
  }

  def dependencies(view: View): Option[Seq[Dependency]] =
    Option(view.viewDependencies).map(_.dependencies.toSeq)

  def table(parts: Array[String]): Dependency = Dependency.table(parts)

  def function(parts: Array[String]): Dependency = Dependency.function(parts)

  /** The whole name of a view in a plan. */
  def name(view: CatalogTable): Seq[String] = view.fullIdent
}
