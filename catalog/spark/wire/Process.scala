// Written by scripts/wire from lakelog.spark.requests.process: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** The first request: `version` is the jar's, and has to be this package's; `spark` is that of Spark. */
private[lakelog] final case class Hello(version: String, spark: String)
  extends Request[Welcome]("hello") {
  override def members: Members = List("version" -> put(version), "spark" -> put(spark))
  override def answer(json: JObject): Welcome = Welcome.of(json)
}

private[lakelog] object Hello extends Companion[Hello] {
  override def of(json: JObject): Hello = Hello(take[String](json, "version"), take[String](json, "spark"))
}

/** `version` is that of the Python package. */
private[lakelog] final case class Welcome(version: String)
  extends Message {
  override def members: Members = List("version" -> put(version))
}

private[lakelog] object Welcome extends Companion[Welcome] {
  override def of(json: JObject): Welcome = Welcome(take[String](json, "version"))
}

/** Open a catalog with these settings, which shares nothing with others that are open. */
private[lakelog] final case class OpenCatalog(settings: Map[String, String])
  extends Request[Opened]("open_catalog") {
  override def members: Members = List("settings" -> put(settings))
  override def answer(json: JObject): Opened = Opened.of(json)
}

private[lakelog] object OpenCatalog extends Companion[OpenCatalog] {
  override def of(json: JObject): OpenCatalog = OpenCatalog(take[Map[String, String]](json, "settings"))
}

/** `catalog` is what requests call it. */
private[lakelog] final case class Opened(catalog: Long)
  extends Message {
  override def members: Members = List("catalog" -> put(catalog))
}

private[lakelog] object Opened extends Companion[Opened] {
  override def of(json: JObject): Opened = Opened(take[Long](json, "catalog"))
}

/** Forget a catalog, and roll back what is open in it. */
private[lakelog] final case class CloseCatalog(catalog: Long)
  extends Request[Closed]("close_catalog") {
  override def members: Members = List("catalog" -> put(catalog))
  override def answer(json: JObject): Closed = Closed.of(json)
}

private[lakelog] object CloseCatalog extends Companion[CloseCatalog] {
  override def of(json: JObject): CloseCatalog = CloseCatalog(take[Long](json, "catalog"))
}

/** It is closed. */
private[lakelog] final case class Closed()
  extends Message {
  override def members: Members = List()
}

private[lakelog] object Closed extends Companion[Closed] {
  override def of(json: JObject): Closed = Closed()
}

/** Why a request was not answered. Unless `outcome_known`, what it was to change may have changed. */
private[lakelog] final case class Failed(kind: String, message: String, outcomeKnown: Boolean = false)
  extends Message {
  override def members: Members = List(
    "kind" -> put(kind),
    "message" -> put(message),
    "outcome_known" -> putUnless(outcomeKnown)(false))
}

private[lakelog] object Failed extends Companion[Failed] {
  override def of(json: JObject): Failed = Failed(
    take[String](json, "kind"),
    take[String](json, "message"),
    takeIfAny[Boolean](json, "outcome_known").getOrElse(false))
}

/** What identifies a request when it is retried: `member` is what its answer becomes. */
private[lakelog] final case class First(method: String, params: JObject, as: String)
  extends Message {
  override def members: Members = List("method" -> put(method), "params" -> put(params), "as" -> put(as))
}

private[lakelog] object First extends Companion[First] {
  override def of(json: JObject): First = First(
    take[String](json, "method"),
    take[JObject](json, "params"),
    take[String](json, "as"))
}

/**
 * What a request is made of. `catalog` is the open catalog that it is about; the process has no need of one. `first` is
 * what is to be answered before, whose answer becomes a member of the request.
 */
private[lakelog] final case class Asked(
    method: String,
    params: JObject,
    catalog: Option[Long] = None,
    first: Option[First] = None)
  extends Message {
  override def members: Members = List(
    "method" -> put(method),
    "params" -> put(params),
    "catalog" -> putIfAny(catalog),
    "first" -> putIfAny(first))
}

private[lakelog] object Asked extends Companion[Asked] {
  override def of(json: JObject): Asked = Asked(
    take[String](json, "method"),
    take[JObject](json, "params"),
    takeIfAny[Long](json, "catalog"),
    takeIfAny[First](json, "first"))
}
