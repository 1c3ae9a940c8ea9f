package org.apache.spark.sql.lakelog.views

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.Column
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Dependency, FunctionDependency, TableDependency, View, Views}
import org.apache.spark.sql.lakelog.wire

/**
 * A view as Python keeps it (see `lakelog.catalog.core.schema.definition`), and back.
 *
 * A view whose names are those of its own catalog is kept without that catalog's name, which is another one in other
 * sessions, and in those that look at the past.
 */
private[lakelog] object ViewDefinitions {

  def of(view: View, own: String): wire.ViewDefinition = wire.ViewDefinition(
    text = view.queryText,
    columns = SchemaInternals.columnsOf(SchemaInternals.withCharVarchar(view.schema)).toSeq.map(column),
    queryColumns = texts(view.queryColumnNames),
    catalog = Option(view.currentCatalog).filter(_ != own),
    namespace = texts(view.currentNamespace),
    configs = view.sqlConfigs.asScala.toMap,
    schemaMode = Option(view.schemaMode),
    properties = view.properties.asScala.toMap,
    dependencies = Views.dependencies(view).map(_.map(dependency)))

  private def column(column: Column): wire.ViewColumn = wire.ViewColumn(
    column.name, wire.FreeJson.of(SchemaInternals.withoutIds(column.dataType)), column.nullable, Option(column.comment),
    Option(column.metadataInJSON).fold(wire.FreeJson.empty)(wire.FreeJson.parsed))

  private def texts(values: Array[String]): Seq[String] = Option(values).fold(Seq.empty[String])(_.toSeq)

  private def dependency(used: Dependency): wire.Dependency = used match {
    case table: TableDependency => wire.Dependency(table = Some(table.nameParts.toSeq))
    case function: FunctionDependency => wire.Dependency(function = Some(function.nameParts.toSeq))
    case other => throw Failures.unsupported(s"A view cannot depend on ${other.getClass.getSimpleName} yet.")
  }

  /**
   * A view as queries read it. Spark casts the columns to these types, and would compare a real CHAR or VARCHAR byte by byte: a
   * text with its length beside it is what it has in its own catalog, and for the columns of tables.
   */
  def toSpark(definition: wire.ViewDefinition, own: String): View = {
    val schema = SchemaInternals.schemaOf(definition.columns.map(toColumn).toArray)
    toSpark(definition, own, SchemaInternals.columnsOf(SchemaInternals.withoutCharVarchar(schema)))
  }

  /** A view with the types of its columns as they were declared, to be described. */
  def declared(view: View, own: String): View = {
    val definition = of(view, own)
    toSpark(definition, own, definition.columns.map(toColumn).toArray)
  }

  private def toSpark(definition: wire.ViewDefinition, own: String, columns: Array[Column]): View = Views.view(
    columns, definition.properties.asJava, definition.text, definition.catalog.getOrElse(own),
    definition.namespace.toArray, definition.configs.asJava, definition.queryColumns.toArray, definition.schemaMode,
    definition.dependencies.map(_.map(toDependency)))

  private def toDependency(used: wire.Dependency): Dependency =
    used.table.map(name => Views.table(name.toArray)).getOrElse(Views.function(used.function.get.toArray))

  private def toColumn(column: wire.ViewColumn): Column = Column.create(
    column.name, column.`type`.dataType, column.nullable, column.comment.orNull,
    Some(column.metadata).filter(_ != wire.FreeJson.empty).map(_.text).orNull)
}
