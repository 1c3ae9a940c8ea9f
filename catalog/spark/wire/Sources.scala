// Written by scripts/wire from lakelog.spark.requests.sources: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * A file of another writer. `schema` is the number of its schema among all, and `stats` are by paths in the file.
 * `footer` is the CRC-32 of its footer. With `old_calendar`, days before the year 1582 are days of the Julian calendar.
 */
private[lakelog] final case class FooterFound(
    path: String,
    size: Long,
    rows: Long,
    footer: Long,
    schema: Long,
    partition: Map[String, Scalar],
    stats: Seq[(Seq[String], ColumnStats)],
    oldCalendar: Boolean)
  extends Message {
  override def members: Members = List(
    "path" -> put(path),
    "size" -> put(size),
    "rows" -> put(rows),
    "footer" -> put(footer),
    "schema" -> put(schema),
    "partition" -> put(partition),
    "stats" -> put(stats),
    "old_calendar" -> put(oldCalendar))
}

private[lakelog] object FooterFound extends Companion[FooterFound] {
  override def of(json: JObject): FooterFound = FooterFound(
    take[String](json, "path"),
    take[Long](json, "size"),
    take[Long](json, "rows"),
    take[Long](json, "footer"),
    take[Long](json, "schema"),
    take[Map[String, Scalar]](json, "partition"),
    take[Seq[(Seq[String], ColumnStats)]](json, "stats"),
    take[Boolean](json, "old_calendar"))
}

/** The folder of a partition, and the values of its columns as texts; None stands for NULL. */
private[lakelog] final case class PartitionPlace(path: String, values: Map[String, Option[String]])
  extends Message {
  override def members: Members = List("path" -> put(path), "values" -> put(values))
}

private[lakelog] object PartitionPlace extends Companion[PartitionPlace] {
  override def of(json: JObject): PartitionPlace = PartitionPlace(
    take[String](json, "path"),
    take[Map[String, Option[String]]](json, "values"))
}

/** The place of another writer's files: below a path, or in a table of the session catalog. */
private[lakelog] final case class ForeignSource(path: Option[String] = None, table: Option[Seq[String]] = None)
  extends Message {
  override def members: Members = List("path" -> putIfAny(path), "table" -> putIfAny(table))
}

private[lakelog] object ForeignSource extends Companion[ForeignSource] {
  override def of(json: JObject): ForeignSource = ForeignSource(
    takeIfAny[String](json, "path"),
    takeIfAny[Seq[String]](json, "table"))
}
