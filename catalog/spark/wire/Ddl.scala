// Written by scripts/wire from lakelog.catalog.core.ddl: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * A prepared table: everything that its commit needs, decided when it was staged. `identifier` is None for a table that
 * is only known by its place. `replaced` is the version of the table that is replaced, None for a new table. `url` is
 * where its files go, under `data/`, with `write.id` in their names.
 */
private[lakelog] final case class Stage(private[wire] val kept: JObject)
  extends Message {
  override def members: Members = kept.obj
  def write: WriteRef = Stage.part[WriteRef](kept, "write")
}

private[lakelog] object Stage extends Companion[Stage] {

  /** What stands in a request for the answer to another that comes first. */
  val ToCome: Stage = Stage(JObject(Nil))

  override def of(json: JObject): Stage = Stage(json)
}
