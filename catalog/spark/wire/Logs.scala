// Written by scripts/wire from lakelog.catalog.core.logs: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * Makes a retry the same request as the first attempt. It has the commit id, and each log's version at the first
 * attempt. A client that may have to retry (after a crash of its own, or of the process that answers) gets a token
 * first.
 */
private[lakelog] final case class Token(private[wire] val kept: JObject)
  extends Message {
  override def members: Members = kept.obj
}

private[lakelog] object Token extends Companion[Token] {

  /** What stands in a request for the answer to another that comes first. */
  val ToCome: Token = Token(JObject(Nil))

  override def of(json: JObject): Token = Token(json)
}
