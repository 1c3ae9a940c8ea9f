package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.{JObject, JString}

/** What is added to any request: the transaction that it belongs to, and who wants the change that it asks for. */
private[lakelog] final case class Scope(transaction: Option[String] = None, query: Option[UserStatement] = None) {

  def on(request: Request[_]): JObject = Json.merge(
    request.json,
    transaction.map("transaction" -> JString(_)).toSeq ++ query.map("query" -> _.json): _*)
}

private[lakelog] object Scope {
  def of(json: JObject): Scope = Scope(
    Json.get(json, "transaction").collect { case JString(id) => id },
    Json.get(json, "query").collect { case query: JObject => UserStatement.of(query) })
}
