// Written by scripts/wire from lakelog.catalog.core.files: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** What is known of one column in one file; None: not known. `min` and `max` are JSON literals (see `literals`). */
private[lakelog] final case class ColumnStats(
    nulls: Option[Long] = None,
    min: Option[Scalar] = None,
    max: Option[Scalar] = None,
    nans: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "nulls" -> putIfAny(nulls),
    "min" -> putIfAny(min),
    "max" -> putIfAny(max),
    "nans" -> putIfAny(nans))
}

private[lakelog] object ColumnStats extends Companion[ColumnStats] {
  override def of(json: JObject): ColumnStats = ColumnStats(
    takeIfAny[Long](json, "nulls"),
    takeIfAny[Scalar](json, "min"),
    takeIfAny[Scalar](json, "max"),
    takeIfAny[Long](json, "nans"))
}

/** The value of all rows of a file: a JSON literal of the atomic type `type`, which the column may no longer have. */
private[lakelog] final case class Constant(`type`: String, value: Option[Scalar])
  extends Message {
  override def members: Members = List("type" -> put(`type`), "value" -> putOrNull(value))
}

private[lakelog] object Constant extends Companion[Constant] {
  override def of(json: JObject): Constant = Constant(take[String](json, "type"), takeIfAny[Scalar](json, "value"))
}

/**
 * How many rows of a file are deleted, and where their positions are: `inline` (Base64), or in `path` at `offset`.
 * `size_bytes` and `crc` (a CRC-32) are of the vector itself; `path` is relative to the table's location, or absolute
 * where it is another table's of the same warehouse, and `object_size_bytes` the size of what is there.
 */
private[lakelog] final case class Deletes(
    rows: Long,
    size: Long,
    crc: Long,
    inline: Option[String] = None,
    path: Option[String] = None,
    offset: Option[Long] = None,
    `object`: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "rows" -> put(rows),
    "size" -> put(size),
    "crc" -> put(crc),
    "inline" -> putIfAny(inline),
    "path" -> putIfAny(path),
    "offset" -> putIfAny(offset),
    "object" -> putIfAny(`object`))
}

private[lakelog] object Deletes extends Companion[Deletes] {
  override def of(json: JObject): Deletes = Deletes(
    take[Long](json, "rows"),
    take[Long](json, "size"),
    take[Long](json, "crc"),
    takeIfAny[String](json, "inline"),
    takeIfAny[String](json, "path"),
    takeIfAny[Long](json, "offset"),
    takeIfAny[Long](json, "object"))
}

/**
 * One immutable Parquet file of a table. `path` is relative to the table's location, or absolute (a path or a URL) for
 * a file from elsewhere. `partition` has a JSON literal for each field of the spec, by field id; `stats` has what is
 * known, by column id. `crc` is the CRC-32 of the file and `footer_crc` that of the bytes from its Parquet footer's
 * first to the last, None where not known. A file that lakelog has not written has `names`: what the field of each
 * column id is called in it, nested ones among their siblings. A field that is not in `names` is not in the file, even
 * if the file has one of the same name. `constants` are values of columns, by id, that the file does not store, and
 * that all of its rows have. Of the file's rows, `deletes` says which are deleted, and `rows` counts the others.
 * `first_row` is the id of the first one, and `version` the version that added the file (see `row_ids`); None for files
 * from before there were ids. All rows lie between `curve_low` and `curve_high` on the curve of the generation `curve`
 * of the table's clustering (see `schema.curve`); None where that is not known. What clusters a table plans by it, and
 * no reader does.
 */
private[lakelog] final case class DataFile(
    path: String,
    size: Long,
    rows: Long,
    spec: Long = 0,
    partition: Map[Long, Scalar] = Map.empty,
    stats: Map[Long, ColumnStats] = Map.empty,
    write: String = "",
    crc: Option[Long] = None,
    footer: Option[Long] = None,
    names: Option[Map[Long, String]] = None,
    constants: Map[Long, Constant] = Map.empty,
    deletes: Option[Deletes] = None,
    firstRow: Option[Long] = None,
    version: Option[Long] = None,
    curve: Option[Long] = None,
    curveLow: Option[Long] = None,
    curveHigh: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "path" -> put(path),
    "size" -> put(size),
    "rows" -> put(rows),
    "spec" -> putUnless(spec)(0),
    "partition" -> putUnless(partition)(Map.empty),
    "stats" -> putUnless(stats)(Map.empty),
    "write" -> putUnless(write)(""),
    "crc" -> putIfAny(crc),
    "footer" -> putIfAny(footer),
    "names" -> putIfAny(names),
    "constants" -> putUnless(constants)(Map.empty),
    "deletes" -> putIfAny(deletes),
    "first_row" -> putIfAny(firstRow),
    "version" -> putIfAny(version),
    "curve" -> putIfAny(curve),
    "curve_low" -> putIfAny(curveLow),
    "curve_high" -> putIfAny(curveHigh))
}

private[lakelog] object DataFile extends Companion[DataFile] {
  override def of(json: JObject): DataFile = DataFile(
    take[String](json, "path"),
    take[Long](json, "size"),
    take[Long](json, "rows"),
    takeIfAny[Long](json, "spec").getOrElse(0),
    takeIfAny[Map[Long, Scalar]](json, "partition").getOrElse(Map.empty),
    takeIfAny[Map[Long, ColumnStats]](json, "stats").getOrElse(Map.empty),
    takeIfAny[String](json, "write").getOrElse(""),
    takeIfAny[Long](json, "crc"),
    takeIfAny[Long](json, "footer"),
    takeIfAny[Map[Long, String]](json, "names"),
    takeIfAny[Map[Long, Constant]](json, "constants").getOrElse(Map.empty),
    takeIfAny[Deletes](json, "deletes"),
    takeIfAny[Long](json, "first_row"),
    takeIfAny[Long](json, "version"),
    takeIfAny[Long](json, "curve"),
    takeIfAny[Long](json, "curve_low"),
    takeIfAny[Long](json, "curve_high"))
}

/** Rows of a file, as an engine sends them: `positions` is a Roaring bitmap in its portable form, as Base64. */
private[lakelog] final case class Positions(path: String, positions: String)
  extends Message {
  override def members: Members = List("path" -> put(path), "positions" -> put(positions))
}

private[lakelog] object Positions extends Companion[Positions] {
  override def of(json: JObject): Positions = Positions(take[String](json, "path"), take[String](json, "positions"))
}
