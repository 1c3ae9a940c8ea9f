package org.apache.spark.sql.lakelog

import org.apache.spark.sql.catalyst.InternalRow

/**
 * The files that a scan has to read, in arrays of the same length. Paths are relative to `location`, or absolute; `rows`
 * counts those that are not deleted; `footers` are CRC-32s of the files' footers, where they are known; names, constants
 * and deletes are JSON, null where a file has none; `ids` are those of the first rows. `keys` are the values of the partition
 * fields that the plan was asked for; None where some file is not partitioned by all of these.
 */
private[lakelog] final class PlannedFiles(
    val paths: Array[String], val sizes: Array[Long], val rows: Array[Long],
    val footers: Array[Option[Long]], val names: Array[String], val constants: Array[String],
    val deletes: Array[String], ids: Array[Option[Long]], versions: Array[Option[Long]], location: String,
    val keys: Option[Array[InternalRow]]) {

  /** What the file at that place is called in the metadata column. */
  def name(i: Int): String = Locations.url(Locations.file(location, paths(i)))

  /** The version that has added the file at that place; None where that is not known, or is still to come. */
  def version(i: Int): Option[Long] = versions(i).filter(_ != PlannedFiles.Uncommitted)

  /** The id of its first row, others following; None where rows have no ids, or are still to get them. */
  def firstRow(i: Int): Option[Long] = ids(i).filter(_ => !versions(i).contains(PlannedFiles.Uncommitted))

  /** The places of the files of each shape. */
  lazy val shapes: Map[FileShape, Array[Int]] = {
    val known = scala.collection.mutable.Map.empty[(String, String, Boolean), FileShape]
    paths.indices.toArray.groupBy { i =>
      val hasDeletes = deletes(i) != null
      if (names(i) == null && constants(i) == null && !hasDeletes) FileShape.Own
      else known.getOrElseUpdate(
        (names(i), constants(i), hasDeletes),
        FileShape.of(Option(names(i)), Option(constants(i)), hasDeletes))
    }
  }

  def totalRows: Long = rows.sum

  def totalBytes: Long = sizes.sum

  /** The others stand for partitions that are empty. */
  def withRows: PlannedFiles = at(paths.indices.filter(rows(_) > 0).toArray)

  /** The first files that together hold at least `limit` rows, or all. */
  def first(limit: Int): PlannedFiles = {
    val before = rows.scanLeft(0L)(_ + _)
    at(paths.indices.take(before.take(rows.length).count(_ < limit)).toArray)
  }

  /** The files at these places. */
  def at(places: Array[Int]): PlannedFiles = new PlannedFiles(
    places.map(paths(_)), places.map(sizes(_)), places.map(rows(_)), places.map(footers(_)), places.map(names(_)),
    places.map(constants(_)), places.map(deletes(_)), places.map(ids(_)), places.map(versions(_)), location,
    keys.map(all => places.map(all(_))))
}

private object PlannedFiles {

  /** The version of what a transaction adds: which one that will be, and which ids it will give, is not known yet. */
  val Uncommitted = 0L
}
