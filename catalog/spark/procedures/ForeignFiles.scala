package org.apache.spark.sql.lakelog.procedures

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.lakelog.files.ForeignFile
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations

/** Where files of other writers are: below a folder, partitioned as Hive does or not, or in a table of the session. */
private[lakelog] object ForeignFiles {

  private val NullPartition = "__HIVE_DEFAULT_PARTITION__"

  /** All files at `source`. Folders at its end that are partitions of known columns count as such. */
  def below(source: String, settings: Map[String, String], isColumn: String => Boolean): Seq[ForeignFile] = {
    val root = Locations.file("", source)
    val found = FooterInternals.filesBelow(Seq(root), settings)
    if (found.isEmpty) throw Failures.invalid(s"There are no files at $source: check the path.")
    val folder = if (found.exists(_._1 == root)) root.getParent else root
    val around = folder.toUri.getPath.split("/").toSeq.reverse.map(partition)
      .takeWhile(_.exists(part => isColumn(part._1))).flatten.reverse
    found.map { case (path, size) => ForeignFile(path, size, around ++ partitionsBetween(folder, path)) }
  }

  /** The files of a Parquet table of the session catalog, by its name there. */
  def ofTable(name: Seq[String], settings: Map[String, String]): Seq[ForeignFile] =
    FooterInternals.placesOfTable(name).flatMap { case (place, spec) =>
      FooterInternals.filesBelow(Seq(place), settings).map { case (path, size) =>
        val partition = spec.map(_.toSeq.map { case (column, text) => column -> partitionValue(text) })
        ForeignFile(path, size, partition.getOrElse(partitionsBetween(place, path)))
      }
    }

  /** The value of a partition's column as the catalog spells it; None stands for NULL. */
  def partitionValue(text: String): Option[String] = Option(text).filterNot(_ == NullPartition)

  private def partitionsBetween(root: Path, file: Path): Seq[(String, Option[String])] = {
    val (top, full) = (root.toUri.getPath.stripSuffix("/"), file.toUri.getPath)
    val folders = if (full == top) Nil else full.stripPrefix(s"$top/").split("/").toSeq.init
    folders.map(folder =>
      partition(folder).getOrElse(throw Failures.invalid(
          s"$file lies in the folder $folder, which is not a partition (name=value): add that folder alone.")))
  }

  private def partition(folder: String): Option[(String, Option[String])] = folder.indexOf('=') match {
    case at if at > 0 =>
      val value = folder.drop(at + 1)
      val text = if (value == NullPartition) None else Some(FooterInternals.unescaped(value))
      Some(FooterInternals.unescaped(folder.take(at)) -> text)
    case _ => None
  }
}
