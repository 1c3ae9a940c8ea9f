package org.apache.spark.sql.lakelog.files

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.lakelog.names.Locations

/**
 * The files that a scan has to read, by their places from 0 on: all in `columns`, or those that are there at `places`.
 * Paths are relative to the table's location, or absolute; rows are those that are not deleted; footers are CRC-32s of the
 * files' footers; names, constants and deletes are JSON, null if a file has none.
 */
private[lakelog] final class PlannedFiles(columns: FileColumns, places: Option[Array[Int]] = None) {

  private val chosen: Array[Int] = places.orNull

  private def there(i: Int): Int = if (chosen == null) i else chosen(i)

  val length: Int = if (chosen == null) columns.sizes.length else chosen.length

  def indices: Range = 0 until length

  def isEmpty: Boolean = length == 0

  def path(i: Int): String = columns.paths(there(i))

  def paths: IndexedSeq[String] = indices.map(path)

  def size(i: Int): Long = columns.sizes(there(i))

  def rows(i: Int): Long = columns.rows(there(i))

  /** None if it is not known. */
  def footer(i: Int): Option[Long] = number(columns.footers, i)

  def constants(i: Int): String = columns.constants.map(_(there(i))).orNull

  /** Where it stands which of its rows are deleted, if any are. */
  def deletes(i: Int): Option[DeletionVector] =
    columns.deletes.flatMap(all => Option(all(there(i)))).map(DeletionVector.parse(_, rows(i), columns.location))

  /** What the file at that place is called in the metadata column. */
  def name(i: Int): String = Locations.url(file(i))

  def file(i: Int): Path = Locations.file(columns.location, path(i))

  /** The version that has added the file at that place; None if that is not known, or is still to come. */
  def version(i: Int): Option[Long] = number(columns.versions, i).filter(_ != PlannedFiles.Uncommitted)

  /** The id of its first row, others following; None if rows have no ids, or are still to get them. */
  def firstRow(i: Int): Option[Long] =
    number(columns.firstRows, i).filter(_ => !number(columns.versions, i).contains(PlannedFiles.Uncommitted))

  private def number(column: Option[Array[Long]], i: Int): Option[Long] =
    column.map(_(there(i))).filter(_ != FileColumns.Unknown)

  /** The files of each shape, in their order. */
  lazy val shapes: Seq[(FileShape, PlannedFiles)] = {
    val plain = columns.names.isEmpty && columns.constants.isEmpty && columns.deletes.isEmpty
    if (isEmpty) Nil
    else if (plain) Seq((FileShape.Own, this))
    else {
      val known = mutable.LinkedHashMap.empty[(String, String, Boolean), mutable.ArrayBuilder.ofInt]
      indices.foreach { i =>
        val at = there(i)
        val likeness = (
          columns.names.map(_(at)).orNull, columns.constants.map(_(at)).orNull, columns.deletes.exists(_(at) != null))
        known.getOrElseUpdate(likeness, new mutable.ArrayBuilder.ofInt) += i
      }
      val byShape = mutable.LinkedHashMap.empty[FileShape, mutable.ArrayBuilder.ofInt]
      known.foreach { case ((names, constants, hasDeletes), found) =>
        val shape =
          if (names == null && constants == null && !hasDeletes) FileShape.Own
          else FileShape.of(Option(names), Option(constants), hasDeletes)
        byShape.getOrElseUpdate(shape, new mutable.ArrayBuilder.ofInt) ++= found.result()
      }
      byShape.toSeq.map { case (shape, found) =>
        val at = found.result()
        java.util.Arrays.sort(at)
        (shape, this.at(at))
      }
    }
  }

  lazy val totalRows: Long = sum(rows)

  lazy val totalBytes: Long = sum(size)

  private def sum(number: Int => Long): Long = {
    var total = 0L
    indices.foreach(i => total += number(i))
    total
  }

  /** The others stand for partitions that are empty. */
  def withRows: PlannedFiles = where(rows(_) > 0)

  /** The first files that together hold at least `limit` rows, or all. */
  def first(limit: Int): PlannedFiles = {
    var (before, count) = (0L, 0)
    while (count < length && before < limit) {
      before += rows(count)
      count += 1
    }
    if (count == length) this else at(Array.range(0, count))
  }

  def where(isWanted: Int => Boolean): PlannedFiles = {
    val found = new mutable.ArrayBuilder.ofInt
    indices.foreach(i => if (isWanted(i)) found += i)
    at(found.result())
  }

  /** The files at these places. */
  def at(wanted: Array[Int]): PlannedFiles =
    new PlannedFiles(columns, Some(if (chosen == null) wanted else wanted.map(chosen(_))))

  /** The values of the partition fields that the plan was asked for; None if some file is not partitioned by all of these. */
  lazy val keys: Option[Seq[(InternalRow, PlannedFiles)]] = columns.keys.map { known =>
    val places = mutable.LinkedHashMap.empty[Int, mutable.ArrayBuilder.ofInt]
    indices.foreach(i => places.getOrElseUpdate(columns.keyOf(there(i)), new mutable.ArrayBuilder.ofInt) += i)
    places.toSeq.map { case (key, found) => (known(key), at(found.result())) }
  }
}

private object PlannedFiles {

  /** The version of what a transaction adds: which one that will be, and which ids it will give, is not known yet. */
  val Uncommitted = 0L
}
