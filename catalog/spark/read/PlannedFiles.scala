package org.apache.spark.sql.lakelog

/**
 * The files that a scan has to read, in arrays of the same length. Paths are relative to the table, or absolute;
 * `footers` are CRC-32s of the files' footers, where they are known; names and constants are JSON, null where a file has
 * none.
 */
private[lakelog] final class PlannedFiles(
    val paths: Array[String], val sizes: Array[Long], val rows: Array[Long],
    val footers: Array[Option[Long]], val names: Array[String], val constants: Array[String]) {

  /** The places of the files of each shape. */
  lazy val shapes: Map[FileShape, Array[Int]] = {
    val known = scala.collection.mutable.Map.empty[(String, String), FileShape]
    paths.indices.toArray.groupBy { i =>
      if (names(i) == null && constants(i) == null) FileShape.Own
      else known.getOrElseUpdate((names(i), constants(i)), FileShape.of(Option(names(i)), Option(constants(i))))
    }
  }

  def totalRows: Long = rows.sum

  def totalBytes: Long = sizes.sum

  /** The first files that together hold at least `limit` rows, or all. */
  def first(limit: Int): PlannedFiles = {
    val before = rows.scanLeft(0L)(_ + _)
    val count = before.take(rows.length).count(_ < limit)
    new PlannedFiles(
      paths.take(count), sizes.take(count), rows.take(count), footers.take(count),
      names.take(count), constants.take(count))
  }
}
