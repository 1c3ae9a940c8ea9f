package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.{JArray, JBool, JObject, JString, JValue}

/**
 * Between a function of SQL as Spark writes it down, a map of texts, and its definition as lakelog stores it.
 *
 * What only Spark understands stays in `properties` under Spark's own names. A body that was written with the
 * function's own catalog as the current one says so by naming no catalog: so it means the same in a session that has
 * given the catalog another name, and in a catalog as of an earlier time.
 */
private[lakelog] object FunctionDefinitions {

  private val Expression = "sqlFunction.expression"
  private val Query = "sqlFunction.query"
  private val IsTable = "sqlFunction.isTableFunc"
  private val Configs = "sqlConfig."
  private val Path = "catalogAndNamespace."
  private val Referred = "referredTemp"

  private val texts = Seq(
    "sqlFunction.inputParam" -> "parameters", "sqlFunction.returnType" -> "returns", "sqlFunction.comment" -> "comment")

  /** What is stored for a function of SQL of the catalog of that name. */
  def toStored(spark: Map[String, String], path: Seq[String], catalog: String): JObject = {
    val own = texts.flatMap { case (key, member) => spark.get(key).map(text => member -> JString(text)) }
    val configs = spark.collect { case (key, value) if key.startsWith(Configs) => key.drop(Configs.length) -> value }
    val rest = spark.removedAll(Expression :: Query :: IsTable :: texts.map(_._1).toList).filterNot { case (key, _) =>
      Seq(Configs, Path, Referred).exists(key.startsWith)
    }
    Json.merge(
      JObject(own.toList),
      "kind" -> JString("function"),
      "language" -> JString("sql"),
      "body" -> JString(spark.getOrElse(Expression, spark(Query))),
      "is_query" -> JBool(spark.contains(Query)),
      "is_table" -> JBool(spark.get(IsTable).contains("true")),
      "catalog" -> Json.text(path.headOption.filter(_ != catalog).orNull),
      "namespace" -> Json.texts(path.drop(1)),
      "configs" -> strings(configs),
      "properties" -> strings(rest))
  }

  /** The map that Spark reads such a function from again, without where its names are resolved. */
  def toSpark(stored: JObject): Map[String, String] = {
    val own = texts.flatMap { case (key, member) => Json.optionalString(stored, member).map(key -> _) }
    val isQuery = Json.get(stored, "is_query").contains(JBool(true))
    val isTable = Json.get(stored, "is_table").contains(JBool(true))
    Map.from(own) ++ map(stored, "properties") ++
      map(stored, "configs").map { case (key, value) =>
        (Configs + key) -> value
      } +
      ((if (isQuery) Query else Expression) -> Json.string(stored, "body")) + (IsTable -> isTable.toString)
  }

  /** The catalog and the namespace that a body's names are in. */
  def path(stored: JObject, catalog: String): Seq[String] =
    Json.optionalString(stored, "catalog").getOrElse(catalog) +:
      Json.get(stored, "namespace").map(Json.stringList).getOrElse(Nil)

  def ofClass(className: String, resources: Seq[(String, String)]): JObject = Json.obj(
    "kind" -> JString("function"),
    "language" -> JString("java"),
    "body" -> JString(className),
    "resources" -> JArray(resources.map { case (kind, url) => Json.texts(Seq(kind, url)) }.toList))

  def resources(stored: JObject): Seq[(String, String)] =
    Json.get(stored, "resources").collect { case JArray(all) =>
      all.map(Json.stringList).collect { case List(kind, url) => kind -> url }
    }.getOrElse(Nil)

  private def map(stored: JObject, member: String): Map[String, String] =
    Json.get(stored, member).map(_ => Json.stringMap(stored, member)).getOrElse(Map.empty)

  private def strings(values: Map[String, String]): JValue =
    JObject(values.toList.sorted.map { case (key, value) => key -> JString(value) })
}
