package org.apache.spark.sql.lakelog

import scala.jdk.CollectionConverters._

import org.json4s.JsonAST.{JArray, JBool, JNothing, JNull, JObject, JString, JValue}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.types.DataType

/**
 * A view as Python keeps it (see `lakelog.catalog.definition`), and back.
 *
 * A view whose names are those of its own catalog is kept without that catalog's name, which is another one in other
 * sessions, and in those that look at the past.
 */
private[lakelog] object ViewJson {

  def of(view: View, own: String): JObject = Json.obj(
    "kind" -> JString("view"),
    "text" -> JString(view.queryText),
    "columns" -> JArray(view.columns.toList.map(column)),
    "query_columns" -> texts(view.queryColumnNames),
    "catalog" -> Json.text(if (view.currentCatalog == own) null else view.currentCatalog),
    "namespace" -> texts(view.currentNamespace),
    "configs" -> Json.strings(view.sqlConfigs),
    "schema_mode" -> Json.text(view.schemaMode),
    "properties" -> Json.strings(view.properties),
    "dependencies" -> dependencies(view.viewDependencies))

  private def column(column: Column): JObject = Json.obj(
    "name" -> JString(column.name),
    "type" -> JsonMethods.parse(column.dataType.json),
    "nullable" -> JBool(column.nullable),
    "comment" -> Json.text(column.comment),
    "metadata" -> Option(column.metadataInJSON).map(JsonMethods.parse(_)).getOrElse(JObject(Nil)))

  private def texts(values: Array[String]): JArray =
    if (values == null) JArray(Nil) else Json.texts(values.toSeq)

  private def dependencies(list: DependencyList): JValue =
    if (list == null) JNull
    else JArray(list.dependencies.toList.map {
      case table: TableDependency => Json.obj("table" -> Json.texts(table.nameParts))
      case function: FunctionDependency => Json.obj("function" -> Json.texts(function.nameParts))
      case other => throw Failures.unsupported(s"A view cannot depend on ${other.getClass.getSimpleName} yet.")
    })

  def toSpark(json: JObject, own: String): View = {
    val builder = new View.Builder()
      .withColumns(Json.objects(withDefault(json, "columns", JArray(Nil)), "columns").map(toColumn).toArray)
      .withProperties(Json.stringMap(withDefault(json, "properties", JObject(Nil)), "properties").asJava)
      .withQueryText(Json.string(json, "text"))
      .withCurrentNamespace(texts(json, "namespace"))
      .withSqlConfigs(Json.stringMap(withDefault(json, "configs", JObject(Nil)), "configs").asJava)
      .withQueryColumnNames(texts(json, "query_columns"))
      .withCurrentCatalog(Json.optionalString(json, "catalog").getOrElse(own))
    Json.optionalString(json, "schema_mode").foreach(builder.withSchemaMode)
    Json.get(json, "dependencies").foreach {
      case JArray(values) =>
        val found = values.collect { case JObject(List((kind, names))) => dependency(kind, names) }
        builder.withViewDependencies(new DependencyList(found.toArray))
      case _ =>
    }
    builder.build()
  }

  private def dependency(kind: String, names: JValue): Dependency =
    if (kind == "table") Dependency.table(Json.stringList(names).toArray)
    else Dependency.function(Json.stringList(names).toArray)

  private def toColumn(json: JObject): Column = {
    val metadata = Json.get(json, "metadata").filterNot(value => value == JNothing || value == JObject(Nil))
    Column.create(
      Json.string(json, "name"),
      DataType.fromJson(JsonMethods.compact(JsonMethods.render(Json.get(json, "type").get))),
      Json.get(json, "nullable").forall(_ == JBool(true)),
      Json.optionalString(json, "comment").orNull,
      metadata.map(value => JsonMethods.compact(JsonMethods.render(value))).orNull)
  }

  private def texts(json: JObject, name: String): Array[String] =
    Json.get(json, name).map(Json.stringList(_).toArray).getOrElse(Array.empty)

  /** Python leaves out what is empty. */
  private def withDefault(json: JObject, name: String, value: JValue): JObject =
    if (Json.get(json, name).isDefined) json else Json.merge(json, name -> value)
}
