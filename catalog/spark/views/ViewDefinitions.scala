package org.apache.spark.sql.lakelog

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog._

/**
 * A view as Python keeps it (see `lakelog.catalog.core.schema.definition`), and back.
 *
 * A view whose names are those of its own catalog is kept without that catalog's name, which is another one in other
 * sessions, and in those that look at the past.
 */
private[lakelog] object ViewDefinitions {

  def of(view: View, own: String): wire.ViewDefinition = wire.ViewDefinition(
    text = view.queryText,
    columns = view.columns.toSeq.map(column),
    queryColumns = texts(view.queryColumnNames),
    catalog = Option(view.currentCatalog).filter(_ != own),
    namespace = texts(view.currentNamespace),
    configs = view.sqlConfigs.asScala.toMap,
    schemaMode = Option(view.schemaMode),
    properties = view.properties.asScala.toMap,
    dependencies = Option(view.viewDependencies).map(_.dependencies.toSeq.map(dependency)))

  private def column(column: Column): wire.ViewColumn = wire.ViewColumn(
    column.name, wire.FreeJson.of(SchemaInternals.withoutIds(column.dataType)), column.nullable, Option(column.comment),
    Option(column.metadataInJSON).fold(wire.FreeJson.empty)(wire.FreeJson.parsed))

  private def texts(values: Array[String]): Seq[String] = Option(values).fold(Seq.empty[String])(_.toSeq)

  private def dependency(used: Dependency): wire.Dependency = used match {
    case table: TableDependency => wire.Dependency(table = Some(table.nameParts.toSeq))
    case function: FunctionDependency => wire.Dependency(function = Some(function.nameParts.toSeq))
    case other => throw Failures.unsupported(s"A view cannot depend on ${other.getClass.getSimpleName} yet.")
  }

  def toSpark(definition: wire.ViewDefinition, own: String): View = {
    val builder = new View.Builder()
      .withColumns(definition.columns.map(toColumn).toArray)
      .withProperties(definition.properties.asJava)
      .withQueryText(definition.text)
      .withCurrentNamespace(definition.namespace.toArray)
      .withSqlConfigs(definition.configs.asJava)
      .withQueryColumnNames(definition.queryColumns.toArray)
      .withCurrentCatalog(definition.catalog.getOrElse(own))
    definition.schemaMode.foreach(builder.withSchemaMode)
    definition.dependencies.foreach { used =>
      builder.withViewDependencies(new DependencyList(used.map(toDependency).toArray))
    }
    builder.build()
  }

  private def toDependency(used: wire.Dependency): Dependency =
    used.table.map(name => Dependency.table(name.toArray))
      .getOrElse(Dependency.function(used.function.get.toArray))

  private def toColumn(column: wire.ViewColumn): Column = Column.create(
    column.name, column.`type`.dataType, column.nullable, column.comment.orNull,
    Some(column.metadata).filter(_ != wire.FreeJson.empty).map(_.text).orNull)
}
