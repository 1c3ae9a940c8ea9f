package org.apache.spark.sql.lakelog.files

import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.lakelog.internals.ColumnInternals
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * What files have in common that are read in one way: what they call the columns, by id, which columns they have as
 * constants, and whether some of their rows are deleted.
 *
 * `names` is None for files whose columns have the table's physical names. A column that is not in the names is not in
 * the file, whatever that has under the same name.
 */
private[lakelog] final case class FileShape(names: Option[Map[Long, String]], constants: Seq[Long], hasDeletes: Boolean)

private[lakelog] object FileShape {

  /** What ends the name of a column that a file does not have: Python refuses files that have a column whose name ends so. */
  val NotThere = "__not_in_this_file"

  /** lakelog's own files, with all of their rows. */
  val Own: FileShape = FileShape(None, Nil, hasDeletes = false)

  def of(names: Option[String], constants: Option[String], hasDeletes: Boolean): FileShape = FileShape(
    names.map(wire.Json.read[Map[Long, String]](_)),
    constants.map(FileShape.constants(_).keys.toSeq.sorted).getOrElse(Nil), hasDeletes)

  /** The constants of a file, by column id. */
  def constants(text: String): Map[Long, wire.TypedValue] = wire.Json.read[Map[Long, wire.TypedValue]](text)
}

/**
 * What of a file of a shape is read: columns by the file's names, with the positions of the rows among them if these
 * are wanted or needed, then constants of the file; and what each wanted column is made of.
 */
private[lakelog] final case class ShapedSchema(
    columns: StructType, constants: StructType, meanings: Seq[FileConstant], order: Array[ReadColumn]) {

  def types: Array[DataType] = (columns.fields ++ constants.fields).map(_.dataType)

  /** Where the positions are among the columns. */
  def position: Option[Int] = Some(columns.fieldNames.indexOf(ShapedSchema.Position)).filter(_ >= 0)

  /** Whether what is read is what is wanted. */
  def isPlain: Boolean = constants.isEmpty && order.toSeq == columns.indices.map(ReadColumn.AsItIs(_))
}

private[lakelog] object ShapedSchema {

  /** Under this name, Spark's reader gives the position of each row in its file. */
  val Position: String = ColumnInternals.RowPosition

  /** What the constants of a file are called that are no columns of the table: nothing in a file is. */
  def constant(name: String): String = name + FileShape.NotThere
}

/** What is the same for all rows of a file. */
private[lakelog] sealed trait FileConstant
private[lakelog] object FileConstant {

  /** A column of the table, by its id. */
  final case class OfColumn(id: Long) extends FileConstant
  case object Name extends FileConstant

  /** The id of its first row. */
  case object FirstRow extends FileConstant

  /** The version that has added it. */
  case object Version extends FileConstant
}

private[lakelog] final class ShapedPartition(val shape: FileShape, val inner: InputPartition) extends InputPartition {
  override def preferredLocations(): Array[String] = inner.preferredLocations()
}
