// Written by scripts/wire from lakelog.log: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** A write: its id, which is part of its files' names, and the version of the log that it started from. */
private[lakelog] final case class WriteRef(id: String, version: Long)
  extends Message {
  override def members: Members = List("id" -> put(id), "version" -> put(version))
}

private[lakelog] object WriteRef extends Companion[WriteRef] {
  override def of(json: JObject): WriteRef = WriteRef(take[String](json, "id"), take[Long](json, "version"))
}
