package org.apache.spark.sql.lakelog.internals.functions

import org.apache.spark.sql.lakelog.wire

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

  private val Parameters = "sqlFunction.inputParam"
  private val Returns = "sqlFunction.returnType"
  private val Comment = "sqlFunction.comment"

  /** What is stored for a function of SQL of the catalog of that name. */
  def toStored(spark: Map[String, String], path: Seq[String], catalog: String): wire.FunctionDefinition = {
    val configs = spark.collect { case (key, value) if key.startsWith(Configs) => key.drop(Configs.length) -> value }
    wire.FunctionDefinition(
      language = "sql",
      body = spark.getOrElse(Expression, spark(Query)),
      parameters = spark.get(Parameters),
      returns = spark.get(Returns),
      isTable = spark.get(IsTable).contains("true"),
      isQuery = spark.contains(Query),
      comment = spark.get(Comment),
      catalog = path.headOption.filter(_ != catalog),
      namespace = path.drop(1),
      configs = configs,
      properties = withoutOwn(spark))
  }

  /** What of a function has no other place than its properties. */
  private def withoutOwn(spark: Map[String, String]): Map[String, String] =
    spark.removedAll(Seq(Expression, Query, IsTable, Parameters, Returns, Comment)).filterNot {
      case (key, _) => Seq(Configs, Path, Referred).exists(key.startsWith)
    }

  /** The map that Spark reads such a function from again, without where its names are resolved. */
  def toSpark(stored: wire.FunctionDefinition): Map[String, String] = {
    val own = stored.parameters.map(Parameters -> _) ++ stored.returns.map(Returns -> _) ++
      stored.comment.map(Comment -> _)
    // A client can store any properties: none may stand for what has a member of its own, and was looked at there.
    withoutOwn(stored.properties) ++ own ++ stored.configs.map { case (key, value) =>
      (Configs + key) -> value
    } +
      ((if (stored.isQuery) Query else Expression) -> stored.body) + (IsTable -> stored.isTable.toString)
  }

  /** The catalog and the namespace that a body's names are in. */
  def path(stored: wire.FunctionDefinition, catalog: String): Seq[String] =
    stored.catalog.getOrElse(catalog) +: stored.namespace

  /** `resources` are kinds and urls of files. */
  def ofClass(className: String, resources: Seq[(String, String)]): wire.FunctionDefinition =
    wire.FunctionDefinition(language = "java", body = className, resources = resources)
}
