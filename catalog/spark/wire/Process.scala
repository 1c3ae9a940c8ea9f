// Written by scripts/wire from lakelog.spark.requests.process: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** The first request. `version` is the jar's version, and has to be this package's. `spark` is Spark's version. */
private[lakelog] final case class Hello(version: String, spark: String)
  extends Request[Welcome]("hello") {
  override def members: Members = List("version" -> put(version), "spark" -> put(spark))
  override def answer(json: JObject): Welcome = Welcome.of(json)
}

private[lakelog] object Hello extends Companion[Hello] {
  override def of(json: JObject): Hello = Hello(take[String](json, "version"), take[String](json, "spark"))
}

/** `version` is the version of the Python package. */
private[lakelog] final case class Welcome(version: String)
  extends Message {
  override def members: Members = List("version" -> put(version))
}

private[lakelog] object Welcome extends Companion[Welcome] {
  override def of(json: JObject): Welcome = Welcome(take[String](json, "version"))
}

/** Open a catalog with these settings. It shares nothing with other open catalogs. */
private[lakelog] final case class OpenCatalog(settings: Map[String, String])
  extends Request[OpenedCatalog]("open_catalog") {
  override def members: Members = List("settings" -> put(settings))
  override def answer(json: JObject): OpenedCatalog = OpenedCatalog.of(json)
}

private[lakelog] object OpenCatalog extends Companion[OpenCatalog] {
  override def of(json: JObject): OpenCatalog = OpenCatalog(take[Map[String, String]](json, "settings"))
}

/** `catalog` is the catalog's number in requests. */
private[lakelog] final case class OpenedCatalog(catalog: Long)
  extends Message {
  override def members: Members = List("catalog" -> put(catalog))
}

private[lakelog] object OpenedCatalog extends Companion[OpenedCatalog] {
  override def of(json: JObject): OpenedCatalog = OpenedCatalog(take[Long](json, "catalog"))
}

/** Forget a catalog, and roll back its open transactions. */
private[lakelog] final case class CloseCatalog(catalog: Long)
  extends Request[ClosedCatalog]("close_catalog") {
  override def members: Members = List("catalog" -> put(catalog))
  override def answer(json: JObject): ClosedCatalog = ClosedCatalog.of(json)
}

private[lakelog] object CloseCatalog extends Companion[CloseCatalog] {
  override def of(json: JObject): CloseCatalog = CloseCatalog(take[Long](json, "catalog"))
}

/** The catalog is closed. */
private[lakelog] final case class ClosedCatalog()
  extends Message {
  override def members: Members = List()
}

private[lakelog] object ClosedCatalog extends Companion[ClosedCatalog] {
  override def of(json: JObject): ClosedCatalog = ClosedCatalog()
}

/** The error of a request. Unless `outcome_known`, its change may have happened. */
private[lakelog] final case class FailedRequest(kind: String, message: String, outcomeKnown: Boolean = false)
  extends Message {
  override def members: Members = List(
    "kind" -> put(kind),
    "message" -> put(message),
    "outcome_known" -> putUnless(outcomeKnown)(false))
}

private[lakelog] object FailedRequest extends Companion[FailedRequest] {
  override def of(json: JObject): FailedRequest = FailedRequest(
    take[String](json, "kind"),
    take[String](json, "message"),
    takeIfAny[Boolean](json, "outcome_known").getOrElse(false))
}

/** A request whose answer identifies the retries of another request. The answer becomes its `member`. */
private[lakelog] final case class FirstRequest(method: String, params: JObject, as: String)
  extends Message {
  override def members: Members = List("method" -> put(method), "params" -> put(params), "as" -> put(as))
}

private[lakelog] object FirstRequest extends Companion[FirstRequest] {
  override def of(json: JObject): FirstRequest = FirstRequest(
    take[String](json, "method"),
    take[JObject](json, "params"),
    take[String](json, "as"))
}

/**
 * The parts of a request. `catalog` is the open catalog that it is about. Requests to the process have none. `first` is
 * a request to be answered before. Its answer becomes a member of this request.
 */
private[lakelog] final case class SentRequest(
    method: String,
    params: JObject,
    catalog: Option[Long] = None,
    first: Option[FirstRequest] = None)
  extends Message {
  override def members: Members = List(
    "method" -> put(method),
    "params" -> put(params),
    "catalog" -> putIfAny(catalog),
    "first" -> putIfAny(first))
}

private[lakelog] object SentRequest extends Companion[SentRequest] {
  override def of(json: JObject): SentRequest = SentRequest(
    take[String](json, "method"),
    take[JObject](json, "params"),
    takeIfAny[Long](json, "catalog"),
    takeIfAny[FirstRequest](json, "first"))
}
