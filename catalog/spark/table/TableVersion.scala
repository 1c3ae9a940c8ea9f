package org.apache.spark.sql.lakelog.table

import org.apache.spark.sql.lakelog.wire

/**
 * What Spark knows a version of a table by, and hands back when it has looked at all rows of it. It has the id, as another
 * table may have the name by then.
 */
private[lakelog] final case class TableVersion(id: String, version: Long, step: Long) {

  override def toString: String = if (step == 0) s"$id@$version" else s"$id@$version+$step"

  /** How requests name this version, at the place of `table`. */
  def referenceIn(table: TableFacts): wire.LoadedTable = table.referenceOf(version).copy(id = id, step = step)
}

private[lakelog] object TableVersion {
  private val Form = """(.*)@(\d+)(?:\+(\d+))?""".r

  def of(table: TableFacts): TableVersion = TableVersion(table.id, table.version, table.step)

  def parse(text: String): TableVersion = text match {
    case Form(id, version, step) => TableVersion(id, version.toLong, Option(step).map(_.toLong).getOrElse(0L))
    case other => throw new IllegalStateException(s"'$other' is not a version of a lakelog table")
  }
}
