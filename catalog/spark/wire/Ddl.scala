// Written by scripts/wire from lakelog.catalog.core.ddl: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * A prepared table: everything that its commit needs, decided when it was staged. `identifier` is None for a table that
 * is only known by its place. `replaced` is the version of the table that is replaced, None for a new table. `url` is
 * the parent of its files, which go under `data/` with `write.id` in their names.
 */
private[lakelog] final case class StagedTable(private[wire] val kept: JObject)
  extends Message {
  override def members: Members = kept.obj
  def write: WriteRef = StagedTable.part[WriteRef](kept, "write")
}

private[lakelog] object StagedTable extends Companion[StagedTable] {

  /** What stands in a request for the answer to another that comes first. */
  val ToCome: StagedTable = StagedTable(JObject(Nil))

  override def of(json: JObject): StagedTable = StagedTable(json)
}
