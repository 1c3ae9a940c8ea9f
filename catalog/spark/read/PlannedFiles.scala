package org.apache.spark.sql.lakelog

/**
 * The files that a scan has to read, in arrays of the same length. Paths are relative to the table; `footers` are CRC-32s
 * of the files' footers, where they are known.
 */
private[lakelog] final class PlannedFiles(
    val paths: Array[String], val sizes: Array[Long], val rows: Array[Long], val footers: Array[Option[Long]]) {

  def totalRows: Long = rows.sum

  def totalBytes: Long = sizes.sum

  /** The first files that together hold at least `limit` rows, or all. */
  def first(limit: Int): PlannedFiles = {
    val before = rows.scanLeft(0L)(_ + _)
    val count = before.take(rows.length).count(_ < limit)
    new PlannedFiles(paths.take(count), sizes.take(count), rows.take(count), footers.take(count))
  }
}
