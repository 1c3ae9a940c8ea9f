package org.apache.spark.sql.lakelog.files

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow

/**
 * What is known of planned files, a column of each kind, as [[PlannedFiles]] says; a column that no file has anything in
 * is None, and a number that is not known is [[FileColumns.Unknown]]. `keyOf` is each file's place in `keys`.
 *
 * Of a million files these are some 100 MB, of which paths are most.
 */
private[lakelog] final class FileColumns(
    val location: String, val paths: Texts, val sizes: Array[Long], val rows: Array[Long],
    val footers: Option[Array[Long]], val firstRows: Option[Array[Long]], val versions: Option[Array[Long]],
    val names: Option[Array[String]], val constants: Option[Array[String]], val deletes: Option[Texts],
    val keys: Option[Array[InternalRow]], val keyOf: Array[Int])

private[lakelog] object FileColumns {

  val Unknown: Long = -1L

  /** Takes files as they come. What many of them have in common is kept once. */
  final class Builder(location: String) {
    private var count = 0
    private val paths = new Texts.Builder
    private val sizes, rows = mutable.ArrayBuilder.make[Long]
    private val footers, firstRows, versions = new Numbers
    private val names, constants = new Shared
    private val deletes = new Rare
    private val keyPlaces = mutable.HashMap.empty[InternalRow, Int]
    private val keyOf = mutable.ArrayBuilder.make[Int]
    private var areKeyed = true

    /** Adds files: of each column, what it has for the file at a place among these, and None if none has anything. */
    def add(
        more: Int, path: Int => Array[Byte], size: Int => Long, live: Int => Long,
        numbers: String => Option[Int => Long],
        texts: String => Option[Int => Array[Byte]], keys: Option[Iterator[InternalRow]]): Unit = {
      paths.add(more, path)
      (0 until more).foreach { i =>
        sizes += size(i)
        rows += live(i)
      }
      footers.add(count, more, numbers("footer"))
      firstRows.add(count, more, numbers("first_row"))
      versions.add(count, more, numbers("version"))
      names.add(count, more, texts("names"))
      constants.add(count, more, texts("constants"))
      deletes.add(count, more, texts("deletes"))
      areKeyed &&= keys.isDefined
      if (areKeyed) keys.get.foreach(key => keyOf += keyPlaces.getOrElseUpdate(key, keyPlaces.size))
      count += more
    }

    def result(): FileColumns = {
      val known = new Array[InternalRow](keyPlaces.size)
      keyPlaces.foreach { case (key, place) => known(place) = key }
      new FileColumns(
        location, paths.result(), sizes.result(), rows.result(), footers.result(count), firstRows.result(count),
        versions.result(count), names.result(count), constants.result(count), deletes.result(count),
        if (areKeyed) Some(known) else None, if (areKeyed) keyOf.result() else Array.empty)
    }
  }

  /** A column that the first of the files may lack, and the last ones. */
  private abstract class Column[V, All] {
    private var filled = 0

    protected def put(count: Int, value: Option[Int => V]): Unit
    protected def made(): All

    def add(before: Int, more: Int, value: Option[Int => V]): Unit = value.foreach { some =>
      if (before > filled) put(before - filled, None)
      put(more, Some(some))
      filled = before + more
    }

    def result(count: Int): Option[All] =
      if (filled == 0) None
      else {
        if (count > filled) put(count - filled, None)
        Some(made())
      }
  }

  private final class Numbers extends Column[Long, Array[Long]] {
    private val values = mutable.ArrayBuilder.make[Long]

    override protected def put(count: Int, value: Option[Int => Long]): Unit =
      (0 until count).foreach(i => values += value.fold(Unknown)(_(i)))

    override protected def made(): Array[Long] = values.result()
  }

  /** Texts that many files have in common. */
  private final class Shared extends Column[Array[Byte], Array[String]] {
    private val values = mutable.ArrayBuilder.make[String]
    private val known = mutable.HashMap.empty[String, String]

    override protected def put(count: Int, value: Option[Int => Array[Byte]]): Unit = (0 until count).foreach { i =>
      val bytes = value.map(_(i)).orNull
      values += (if (bytes == null) null
                 else {
                   val text = new String(bytes, java.nio.charset.StandardCharsets.UTF_8)
                   known.getOrElseUpdate(text, text)
                 })
    }

    override protected def made(): Array[String] = values.result()
  }

  /** Texts of which each is of one file. */
  private final class Rare extends Column[Array[Byte], Texts] {
    private val values = new Texts.Builder

    override protected def put(count: Int, value: Option[Int => Array[Byte]]): Unit =
      values.add(count, i => value.map(_(i)).orNull)

    override protected def made(): Texts = values.result()
  }
}
