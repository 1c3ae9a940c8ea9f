// Written by scripts/wire from lakelog.catalog.core.files: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/**
 * The known statistics of a column in a file; None is unknown. `min` and `max`, which are stored as `lo` and `hi`, are
 * JSON literals (see `literals`).
 */
private[lakelog] final case class ColumnStats(
    nulls: Option[Long] = None,
    lo: Option[Scalar] = None,
    hi: Option[Scalar] = None,
    nans: Option[Long] = None)
  extends Message {
  override def members: Members = List(
    "nulls" -> putIfAny(nulls),
    "lo" -> putIfAny(lo),
    "hi" -> putIfAny(hi),
    "nans" -> putIfAny(nans))
}

private[lakelog] object ColumnStats extends Companion[ColumnStats] {
  override def of(json: JObject): ColumnStats = ColumnStats(
    takeIfAny[Long](json, "nulls"),
    takeIfAny[Scalar](json, "lo"),
    takeIfAny[Scalar](json, "hi"),
    takeIfAny[Long](json, "nans"))
}

/**
 * How many rows of a file are deleted, and their positions: `inline` (Base64), or in `path` at `offset`. `size_bytes`
 * and `crc` (a CRC-32) are of the vector itself. `path` is relative to the table's location, or absolute if it belongs
 * to another table of the same warehouse. `object_size_bytes` is the size of the object at `path`.
 */
private[lakelog] final case class DeletionVector(
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

private[lakelog] object DeletionVector extends Companion[DeletionVector] {
  override def of(json: JObject): DeletionVector = DeletionVector(
    take[Long](json, "rows"),
    take[Long](json, "size"),
    take[Long](json, "crc"),
    takeIfAny[String](json, "inline"),
    takeIfAny[String](json, "path"),
    takeIfAny[Long](json, "offset"),
    takeIfAny[Long](json, "object"))
}

/**
 * An immutable Parquet file of a table. `path` is relative to the table's location, or absolute (a path or a URL) for a
 * file from elsewhere. `partition` has a JSON literal for each field of the spec, by field id; `stats` has the known
 * statistics, by column id. `crc` is the CRC-32 of the file. `footer_crc` is the CRC-32 of the bytes from its Parquet
 * footer's start to the file's end. Both are None if not known. A file that lakelog has not written has `names`: the
 * name in the file of the field of each column id, which a nested field has among its siblings. A field that is not in
 * `names` is not in the file, even if the file has a field of the same name. `constants` are values of columns, by id,
 * that the file does not store, and that all of its rows have. `deletes` says which of the file's rows are deleted, and
 * `rows` counts the other rows. `first_row` is the id of the first row, and `version` the version that added the file
 * (see `row_ids`); None for files from before there were ids. All rows lie between `curve_low` and `curve_high` on the
 * curve of the generation `curve` of the table's clustering (see `schema.curve`); None if that is not known. Only
 * clustering plans by it, and no reader does.
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
    constants: Map[Long, TypedValue] = Map.empty,
    deletes: Option[DeletionVector] = None,
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
    takeIfAny[Map[Long, TypedValue]](json, "constants").getOrElse(Map.empty),
    takeIfAny[DeletionVector](json, "deletes"),
    takeIfAny[Long](json, "first_row"),
    takeIfAny[Long](json, "version"),
    takeIfAny[Long](json, "curve"),
    takeIfAny[Long](json, "curve_low"),
    takeIfAny[Long](json, "curve_high"))
}

/** Rows of a file, as an engine sends them. `positions` is a Roaring bitmap in its portable form, as Base64. */
private[lakelog] final case class DeletedPositions(path: String, positions: String)
  extends Message {
  override def members: Members = List("path" -> put(path), "positions" -> put(positions))
}

private[lakelog] object DeletedPositions extends Companion[DeletedPositions] {
  override def of(json: JObject): DeletedPositions = DeletedPositions(
    take[String](json, "path"),
    take[String](json, "positions"))
}
